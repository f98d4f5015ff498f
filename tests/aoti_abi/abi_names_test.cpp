// Every C function that torch's headers declare for CPU packages is exported or refused on purpose.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "src/loader/refusals.h"
#include "tests/files.h"

namespace {

// Name -> header, from tests/aoti_abi/abi_names.tsv.
std::map<std::string, std::string> declared() {
  std::ifstream file(sconce::source_path("tests/aoti_abi/abi_names.tsv"));
  REQUIRE(file);
  std::map<std::string, std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string name, since, until, header;
    std::getline(fields, name, '\t');
    std::getline(fields, since, '\t');
    std::getline(fields, until, '\t');
    std::getline(fields, header, '\t');
    names.emplace(name, header);
  }
  return names;
}

// A number that the CPU's side defines too.
bool names_cuda_type(const std::string& name) {
  return name == "aoti_torch_device_type_cuda" || name.starts_with("torch_tag_");
}

}  // namespace

TEST_CASE("abi names: exported, or refused with a reason") {
  void* const library = dlopen(SCONCE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(library, dlerror());
  const auto names = declared();
  CHECK(names.size() > 550);
  for (const auto& [name, header] : names) {
    // These belong to libsconce_cuda, which a host without the CUDA toolkit does not build.
    if (header == "generated/c_shim_cuda.h" || (name.find("cuda") != std::string::npos && !names_cuda_type(name)))
      continue;
    CAPTURE(name);
    const bool exported = dlsym(library, name.c_str()) != nullptr;
    const bool refused = !sconce::loader::refusal_of(name).empty();
    CHECK_MESSAGE(!(exported && refused), "refused, and there all the same");
    CHECK_MESSAGE((exported || refused), "neither in libsconce nor in src/loader/refusals.cpp");
  }
  dlclose(library);
}

TEST_CASE("abi names: what is refused says why") {
  using sconce::loader::refusal_of;
  CHECK(refusal_of("aoti_torch_cpu_to_sparse").find("sparse") != std::string_view::npos);
  CHECK(refusal_of("aoti_torch__scaled_dot_product_flash_attention_v2").find("CUDA tensors") != std::string_view::npos);
  CHECK(refusal_of("aoti_torch_cpu__c10d_functional_all_reduce_").find("processes") != std::string_view::npos);
  CHECK(refusal_of("torch_tensor_to_pyobject").find("Python") != std::string_view::npos);
  CHECK(refusal_of("aoti_torch_mps_mm_out").find("MPS") != std::string_view::npos);
  CHECK(refusal_of("aoti_torch_cuda__to_sparse").find("sparse") != std::string_view::npos);
  CHECK(refusal_of("aoti_torch_cuda__scaled_dot_product_fused_attention_overrideable_backward").find("third-party") !=
        std::string_view::npos);
  CHECK(refusal_of("aoti_torch_cpu_mm_out").empty());
  CHECK(refusal_of("aoti_torch_cuda__scaled_dot_product_flash_attention_quantized").empty());
}
