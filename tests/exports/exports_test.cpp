// The dynamic symbol tables of the product, name by name. libsconce exports three groups: the C ABI of packages, the
// public API, and the interface of a device's library. libsconce_cuda exports the CUDA side of the C ABI and its
// backend. Each group is compared with where it is declared.
#include <cxxabi.h>
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>

#include "package_format/elf_image.h"
#include "src/device/open_ahead.h"
#include "tests/exports/public_api.h"
#include "tests/files.h"

namespace {

using Names = std::set<std::string>;

Names exports_of(const char* library) {
  const std::string bytes = sconce::content_of(library);
  const sconce::ElfImage image(std::as_bytes(std::span(bytes)), library);
  Names names;
  for (size_t i = 1; i < image.symbol_count(); ++i)
    if (image.symbol(i).st_shndx != SHN_UNDEF) names.emplace(image.symbol_name(i));
  return names;
}

const Names& exports() {
  static const Names names = exports_of(SCONCE_LIBRARY);
  return names;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

// Functions that torch's C headers declare: the first column of tests/aoti_abi/abi_names.tsv.
Names c_abi() {
  std::ifstream file(sconce::source_path("tests/aoti_abi/abi_names.tsv"));
  REQUIRE(file);
  Names names;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with('#')) names.insert(line.substr(0, line.find('\t')));
  return names;
}

const Names kSleef = {
#define SCONCE_SLEEF(name, function) #name,
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF
};

// What compiled code calls of glibc 2.38's headers and of libtorch's in C++.
const Names kLinkedByCode = {
    "_ZN2at14get_thread_numEv",
    "_ZN2at15getCPUAllocatorEv",
    "_ZN2at15get_num_threadsEv",
    "_ZN2at16init_num_threadsEv",
    "_ZN2at18in_parallel_regionEv",
    "_ZN2at3cpu8init_amxEv",
    "_ZN2at6native7cpublas10could_packEN3c1010ScalarTypeE",
    "_ZN2at6native7cpublas14brgemm_releaseEb",
    "_ZN2at6native7cpublas4packEllllN3c1010ScalarTypeES3_PKvPv",
    "_ZN2at6native7cpublas6brgemmEllllllbPKN3c1011Float8_e5m2ES5_Pfb",
    "_ZN2at6native7cpublas6brgemmEllllllbPKN3c1013Float8_e4m3fnES5_Pfb",
    "_ZN2at6native7cpublas6brgemmEllllllbPKN3c104HalfES5_Pfb",
    "_ZN2at6native7cpublas6brgemmEllllllbPKN3c108BFloat16ES5_Pfb",
    "_ZN2at6native7cpublas6brgemmEllllllbPKaS3_Pib",
    "_ZN2at6native7cpublas6brgemmEllllllbPKfS3_Pfb",
    "_ZN2at6native7cpublas6brgemmEllllllbPKhPKaPib",
    "_ZN2at6native7cpublas6brgemmEllllllbPKhS3_Pib",
    "_ZN2at8internal14set_thread_numEi",
    "_ZN2at8internal21lazy_init_num_threadsEv",
    "_ZN3c1013ParallelGuard10is_enabledEv",
    "_ZN3c1013ParallelGuardC1Eb",
    "_ZN3c1013ParallelGuardC2Eb",
    "_ZN3c1013ParallelGuardD1Ev",
    "_ZN3c1013ParallelGuardD2Ev",
    "_ZN3c1015GetCPUAllocatorEv",
    "_ZN3c1015report_overflowEPKc",
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
    "_ZN3c106detail14torchCheckFailEPKcS2_jS2_",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_NS0_22CompileTimeEmptyStringE",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_RKSs",
    "_ZN3c106detail23torchInternalAssertFailEPKcS2_jS2_S2_",
    "__isoc23_fscanf",
    "__isoc23_scanf",
    "__isoc23_sscanf",
    "__isoc23_strtoimax",
    "__isoc23_strtol",
    "__isoc23_strtoll",
    "__isoc23_strtoul",
    "__isoc23_strtoull",
    "__isoc23_strtoumax",
    "__isoc23_vfscanf",
    "__isoc23_vscanf",
    "__isoc23_vsscanf",
    "__isoc23_wcstol",
    "__isoc23_wcstoll",
    "__isoc23_wcstoul",
    "__isoc23_wcstoull",
};

// The names of symbol versions in src/exports.map.
const Names kVersions = {"SCONCE_ABI", "SCONCE_0.1", "GLIBC_2.38"};

// Functions of include/sconce.h by name, and the version of each one's symbol.
std::map<std::string, std::string> c_api_names() {
  std::ifstream file(sconce::source_path("tests/exports/c_api_names.tsv"));
  REQUIRE(file);
  std::map<std::string, std::string> names;
  for (std::string line; std::getline(file, line);)
    if (const size_t tab = line.find('\t'); !line.starts_with('#') && tab != std::string::npos)
      names[line.substr(0, tab)] = line.substr(tab + 1);
  return names;
}

// Of a device's library: src/aoti_abi/host_services.h.
const Names kDeviceInterface = {"sconce_host_services"};

// What include/sconce declares, and the headers that only the program shares with the library.
const sconce::exports::PublicApi& public_api() {
  static const auto api = [] {
    auto read = sconce::exports::read_public_api(sconce::source_path("include/sconce"));
    for (const std::string shared : {"src/support/error_context.h", "src/support/excerpt.h", "src/support/hash.h",
                                     "src/support/parse_number.h", "src/support/utf8.h", "package_format/description.h",
                                     "package_format/files/host_memory.h", "src/runner/dummy_inputs.h"})
      read.read(sconce::content_of(sconce::source_path(shared)));
    return read;
  }();
  return api;
}

}  // namespace

TEST_CASE("exports: nothing but the C ABI, the public API and the interface of a device's library") {
  const Names abi = c_abi();
  const auto c_functions = c_api_names();
  CHECK(abi.size() > 550);
  CHECK(exports().size() > 500);
  for (const std::string& name : exports()) {
    if (abi.contains(name) || kSleef.contains(name) || kLinkedByCode.contains(name) ||
        kDeviceInterface.contains(name) || kVersions.contains(name) || c_functions.contains(name))
      continue;
    const std::string full = demangled(name);
    CHECK_MESSAGE(public_api().declares(full), full << " (" << name << ") is in no group of src/exports.map");
  }
}

TEST_CASE("exports: every operator and every SLEEF function") {
#define SCONCE_OP(name, ...) CHECK_MESSAGE(exports().contains("aoti_torch_cpu_" #name), #name);
#include "src/operators/cpu_table.def"
#undef SCONCE_OP
#define SCONCE_OP(name, ...) CHECK_MESSAGE(exports().contains("aoti_torch_aten_" #name), #name);
#include "src/operators/aten_table.def"
#undef SCONCE_OP
  for (const std::string& name : kSleef) CHECK_MESSAGE(exports().contains(name), name);
}

TEST_CASE("exports: the names that compiled code links to, and the interface of a device's library") {
  for (const Names* names : {&kLinkedByCode, &kDeviceInterface})
    for (const std::string& name : *names) CHECK_MESSAGE(exports().contains(name), name);
}

TEST_CASE("exports: the public API, whole") {
  Names exported;
  for (const std::string& name : exports()) exported.insert(sconce::exports::name_of(demangled(name)));
  CHECK(public_api().undefined.size() > 100);
  for (const std::string& name : public_api().undefined) CHECK_MESSAGE(exported.contains("sconce::" + name), name);
}

TEST_CASE("exports: the C API has the names of its list, each in its version, and no others") {
  const auto listed = c_api_names();
  // What sconce.h declares: the word before the parenthesis of each declaration that ends with SCONCE_NOEXCEPT.
  static const std::regex comment(R"(/\*[^]*?\*/)"), declared(R"(\b(sconce_\w+)\([^;{]*\)\s*SCONCE_NOEXCEPT;)");
  const std::string header =
      std::regex_replace(sconce::content_of(sconce::source_path("include/sconce.h")), comment, "");
  Names functions;
  for (std::sregex_iterator it(header.begin(), header.end(), declared), end; it != end; ++it)
    functions.insert((*it)[1]);
  for (const std::string& name : functions)
    CHECK_MESSAGE(listed.contains(name), name << " is to be added to tests/exports/c_api_names.tsv and exports.map");
  void* const library = dlopen(SCONCE_LIBRARY, RTLD_NOW | RTLD_LOCAL);  // for good
  REQUIRE(library);
  for (const auto& [name, version] : listed) {
    CHECK_MESSAGE(functions.contains(name), name << " was published: sconce.h must keep it");
    CHECK_MESSAGE(exports().contains(name), name << " was published: it must stay exported");
    CHECK_MESSAGE(dlvsym(library, name.c_str(), version.c_str()), name << " is not of version " << version);
    CHECK(kVersions.contains(version));
  }
  CHECK(listed.size() >= 57);  // raise it with every name that is added
  // A program that was linked before there were versions, and packages, ask for none.
  CHECK(dlsym(library, "aoti_torch_get_dtype"));
  CHECK(dlvsym(library, "aoti_torch_get_dtype", "SCONCE_ABI"));
  // What was compiled with glibc 2.38 or later asks for its version.
  CHECK(dlvsym(library, "__isoc23_strtol", "GLIBC_2.38"));
}

#ifdef SCONCE_CUDA_LIBRARY
TEST_CASE("exports: libsconce_cuda's are the C ABI and its backend") {
  const Names names = exports_of(SCONCE_CUDA_LIBRARY), abi = c_abi();
  for (const std::string& name : names)
    CHECK_MESSAGE((abi.contains(name) || name.starts_with("sconce_cuda_")),
                  demangled(name) << " is no part of src/cuda/exports.map");
  for (const char* own : {"sconce_cuda_backend", sconce::kMakeContext, sconce::kOpenLibraries})
    CHECK_MESSAGE(names.contains(own), own);
#define SCONCE_OP(name, ...) CHECK_MESSAGE(names.contains("aoti_torch_cuda_" #name), #name);
#include "src/operators/cuda_table.def"
#undef SCONCE_OP
}
#endif

#ifdef SCONCE_GRPC_LIBRARY
TEST_CASE("exports: libsconce_grpc has one function") {
  CHECK(exports_of(SCONCE_GRPC_LIBRARY) == Names{"sconce_grpc_open_3"});
}
#endif
