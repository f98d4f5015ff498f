#include "src/loader/preflight.h"

#include <doctest/doctest.h>
#include <elf.h>

#include <algorithm>

#include "sconce/error.h"
#include "src/device/sleef.h"
#include "src/loader/cpu_features.h"
#include "tests/errors.h"
#include "tests/loader/sample_file.h"

using namespace sconce;
using namespace sconce::loader;

namespace {

ModelSpec spec_of(const std::string& name) {
  ModelSpec spec;
  spec.name = name;
  spec.device_key = "cpu";
  spec.platform = "linux";
  spec.machine = "x86_64";
  spec.cpu_isa = "AVX2";
  spec.march = "native";
  return spec;
}

std::vector<std::string> reasons_against(const ModelSpec& spec, std::span<const std::byte> bytes) {
  return incompatibilities(spec, ElfImage(bytes, "model"));
}

bool mentions(const std::vector<std::string>& reasons, std::string_view text) {
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const std::string& reason) { return reason.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("preflight: a model that can run") {
  for (const char* name : {"preflight_fine", "preflight_bare"})
    CHECK(reasons_against(spec_of(name), sample(name)) == std::vector<std::string>{});
  preflight(spec_of("preflight_fine"), ElfImage(sample("preflight_fine"), "preflight_fine"));
}

TEST_CASE("preflight: names of libtorch that no model calls keep none from running, but a library of operators") {
  CHECK(reasons_against(spec_of("sample_uncalled"), sample("sample_uncalled")).empty());
  const std::vector<std::byte> bytes = sample("sample_uncalled");
  CHECK_THROWS_AS(check_op_library(ElfImage(bytes, "sample_uncalled")), Error);
}

TEST_CASE("preflight: SLEEF is opened for a model that imports it") {
  const std::vector<std::byte> bytes = sample("preflight_sleef");
  CHECK(reasons_against(spec_of("preflight_sleef"), bytes) == std::vector<std::string>{});
  CHECK(sleef_library().open.load());
}

TEST_CASE("preflight: every missing symbol is named, by what can be done about it") {
  const std::vector<std::string> reasons = reasons_against(spec_of("preflight_missing"), sample("preflight_missing"));
  CHECK(reasons.size() == 4);
  CHECK(mentions(reasons,
                 "it needs CUDA operators, which are not loaded or not in this build: "
                 "aoti_torch_cuda_no_such_kernel"));
  CHECK(mentions(reasons, "it needs operators that this build does not have: aoti_torch_cpu_no_such_kernel"));
  CHECK(mentions(reasons, "at::no_such_function(int)"));
  CHECK(mentions(reasons, "custom operator's C functions"));
  CHECK(mentions(reasons, "my_custom_operator"));
  const std::string text = error_from(ErrorCode::kIncompatible, [&] {
    preflight(spec_of("preflight_missing"), ElfImage(sample("preflight_missing"), "preflight_missing"));
  });
  CHECK(text.starts_with("the model cannot run here: preflight_missing: "));
  for (const std::string& reason : reasons) CHECK(contains(text, reason));
}

TEST_CASE("preflight: versions of libraries newer than the host's") {
  // libsconce provides the newer strtol. Symbols that are missing are named with their version.
  CHECK(!mentions(reasons_against(spec_of("sample_new_glibc"), sample("sample_new_glibc")), "newer libraries"));
  const auto reasons = reasons_against(spec_of("preflight_future"), sample("preflight_future"));
  CHECK(mentions(reasons, "it needs symbols of newer libraries"));
  CHECK(mentions(reasons, "future_function of libc.so.6 GLIBC_2.99"));
  CHECK(!mentions(reasons, "__isoc23_strtol"));
}

TEST_CASE("preflight: a library that is not installed") {
  const auto reasons = reasons_against(spec_of("preflight_absent"), sample("preflight_absent"));
  CHECK(mentions(reasons, "it needs the library libabsent.so.7, which cannot be opened"));
  CHECK(mentions(reasons, "absent_function"));
}

TEST_CASE("preflight: all that the package records is held against the host") {
  const std::vector<std::byte> bytes = sample("preflight_fine");
  ModelSpec spec = spec_of("m");
  spec.platform = "windows";
  spec.machine = "aarch64";
  spec.device_key = "xpu";
  spec.cpu_isa = "ASIMD";
  spec.march = "armv8-a";
  const auto reasons = reasons_against(spec, bytes);
  CHECK(reasons.size() == 5);
  CHECK(mentions(reasons, "compiled for the machine aarch64, this is x86_64"));
  CHECK(mentions(reasons, "compiled for the platform windows, this is linux"));
  CHECK(mentions(reasons, "compiled for the device xpu"));
  CHECK(mentions(reasons, "AOTI_CPU_ISA is ASIMD"));
  CHECK(mentions(reasons, "-march=armv8-a"));
  // Packages of torch 2.6 to 2.9 record no instruction set, which is no reason against them.
  CHECK(reasons_against(ModelSpec{}, bytes).empty());
}

TEST_CASE("preflight: instruction sets that this CPU lacks") {
  const std::vector<std::byte> bytes = sample("preflight_fine");
  ModelSpec spec = spec_of("m");
  // No CPU has both instruction sets.
  spec.march = "bdver4";
  spec.cpu_isa = "AVX512 AVX512_VNNI AMX_TILE";
  const auto reasons = reasons_against(spec, bytes);
  CHECK(!reasons.empty());
  const CpuFeatures lacking = features_of_march("bdver4")->without(CpuFeatures::host());
  CHECK(mentions(reasons, "this CPU lacks " + lacking.names() + " (compiled with -march=bdver4)") != lacking.empty());
  const CpuFeatures tiles = features_of_isa(spec.cpu_isa)->without(CpuFeatures::host());
  CHECK(mentions(reasons, "this CPU lacks " + tiles.names() + " (AOTI_CPU_ISA is " + spec.cpu_isa + ")") !=
        tiles.empty());
  spec.march = "native";
  spec.cpu_isa.clear();
  spec.isa_flags = "avx2 fma4 amx-tile unheard-of";
  CHECK(mentions(reasons_against(spec, bytes), "(its compile command names them)"));
  spec.isa_flags = "avx2 fma f16c";
  spec.march = "x86-64-v3";
  spec.cpu_isa = "AVX2";
  CHECK(reasons_against(spec, bytes).empty());
}

TEST_CASE("preflight: packages that are too old, or no packages") {
  CHECK(mentions(reasons_against(spec_of("m"), sample("preflight_old")), "a torch older than 2.6"));
  CHECK(mentions(reasons_against(spec_of("m"), sample("sample_model")), "no AOTInductorModelContainer functions"));
  std::vector<std::byte> foreign = sample("preflight_fine");
  reinterpret_cast<Elf64_Ehdr*>(foreign.data())->e_machine = EM_AARCH64;
  CHECK(mentions(reasons_against(spec_of("m"), foreign), "its code is not x86-64: ELF machine 183"));
}
