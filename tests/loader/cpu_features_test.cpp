// Expected sets: GCC's own, from `gcc -march=NAME -Q --help=target` and the manuals of GCC and the vendors.
#include "src/loader/cpu_features.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "sconce/error.h"

using namespace sconce;
using namespace sconce::loader;

TEST_CASE("cpu features: the host has what the kernel lists, under the kernel's names") {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::set<std::string> listed;
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags")) {
      std::istringstream words(line);
      for (std::string word; words >> word;) listed.insert(word);
      break;
    }
  REQUIRE(listed.count("avx2") == 1);
  const std::pair<const char*, const char*> names[] = {
      {"sse3", "pni"},
      {"ssse3", "ssse3"},
      {"cx16", "cx16"},
      {"sse4.1", "sse4_1"},
      {"sse4.2", "sse4_2"},
      {"movbe", "movbe"},
      {"popcnt", "popcnt"},
      {"avx", "avx"},
      {"f16c", "f16c"},
      {"fma", "fma"},
      {"bmi", "bmi1"},
      {"avx2", "avx2"},
      {"bmi2", "bmi2"},
      {"avx512f", "avx512f"},
      {"avx512dq", "avx512dq"},
      {"avx512ifma", "avx512ifma"},
      {"avx512cd", "avx512cd"},
      {"avx512bw", "avx512bw"},
      {"avx512vl", "avx512vl"},
      {"avx512vbmi", "avx512vbmi"},
      {"avx512vbmi2", "avx512_vbmi2"},
      {"gfni", "gfni"},
      {"avx512vnni", "avx512_vnni"},
      {"avx512bitalg", "avx512_bitalg"},
      {"avx512vpopcntdq", "avx512_vpopcntdq"},
      {"amx-bf16", "amx_bf16"},
      {"avx512fp16", "avx512_fp16"},
      {"amx-tile", "amx_tile"},
      {"amx-int8", "amx_int8"},
      {"avxvnni", "avx_vnni"},
      {"avx512bf16", "avx512_bf16"},
      {"sahf", "lahf_lm"},
      {"lzcnt", "abm"},
      {"sse4a", "sse4a"},
      {"xop", "xop"},
      {"fma4", "fma4"},
      {"tbm", "tbm"},
  };
  for (const auto& [ours, kernels] : names) {
    CAPTURE(ours);
    CHECK(CpuFeatures::host().has(CpuFeatures::of(ours)) == (listed.count(kernels) == 1));
  }
}

TEST_CASE("cpu features: sets") {
  const CpuFeatures small = CpuFeatures::of("avx2 fma"), large = CpuFeatures::of(" fma  avx512f avx2");
  CHECK(large.has(small));
  CHECK(!small.has(large));
  CHECK(large.without(small) == CpuFeatures::of("avx512f"));
  CHECK(large.without(large).empty());
  CHECK(small.names() == "fma, avx2");
  CHECK(CpuFeatures::of("").names() == "");
  CHECK(large.any_of(CpuFeatures::of("avx512f sse3")));
  CHECK(!large.any_of(CpuFeatures::of("sse3")));
  CHECK(CpuFeatures::known_of("avx2 mmx3 fma") == small);
  CHECK_THROWS_WITH_AS(CpuFeatures::of("avx2 mmx3"), "unknown CPU feature: mmx3", Error);
}

TEST_CASE("cpu features: what -march stands for") {
  const auto march = [](const char* name) {
    const auto features = features_of_march(name);
    REQUIRE(features);
    return *features;
  };
  CHECK(march("x86-64").empty());
  CHECK(march("haswell") == march("x86-64-v3"));
  CHECK(march("x86-64-v3").has(CpuFeatures::of("sse4.2 popcnt avx2 fma f16c bmi bmi2 lzcnt movbe")));
  CHECK(!march("x86-64-v3").has(CpuFeatures::of("avx512f")));
  CHECK(march("skylake-avx512") == march("x86-64-v4"));
  CHECK(march("cascadelake").without(march("skylake-avx512")) == CpuFeatures::of("avx512vnni"));
  CHECK(march("sapphirerapids").has(CpuFeatures::of("amx-tile avx512fp16 avx512bf16 avx512vbmi2")));
  CHECK(!march("icelake-server").has(CpuFeatures::of("avx512bf16")));
  CHECK(!march("alderlake").has(CpuFeatures::of("avx512f")));
  CHECK(march("znver3").names() == (march("x86-64-v3") | CpuFeatures::of("sse4a")).names());
  CHECK(march("znver4").has(march("x86-64-v4")));
  CHECK(!march("znver4").has(CpuFeatures::of("avxvnni")));
  CHECK(march("znver5").has(march("znver4") | CpuFeatures::of("avxvnni")));
  for (const char* name : {"native", "armv8-a+sve+bf16", "x86-64-v9", ""}) CHECK(!features_of_march(name));
}

TEST_CASE("cpu features: what torch records") {
  CHECK(features_of_isa("AVX2") == CpuFeatures::of("avx2 fma f16c"));
  CHECK(features_of_isa("AVX512 AVX512_VNNI") == CpuFeatures::of("avx512f avx512dq avx512vl avx512bw fma avx512vnni"));
  CHECK(features_of_isa("AVX512 AVX512_VNNI AMX_TILE")->has(CpuFeatures::of("amx-tile amx-bf16 amx-int8")));
  CHECK(features_of_isa("")->empty());
  CHECK(features_of_isa("INVALID_VEC_ISA")->empty());
  CHECK(!features_of_isa("ASIMD"));
  CHECK(!features_of_isa("AVX2 AVX10"));
}

TEST_CASE("cpu features: AMX is enabled where it exists, and only there") {
  CHECK(enable_amx() == CpuFeatures::host().has(CpuFeatures::of("amx-tile")));
}
