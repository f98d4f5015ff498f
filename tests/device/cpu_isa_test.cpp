#include "src/device/cpu_isa.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

using namespace sconce;

// ctest runs this program a second time with SCONCE_CPU_ISA=avx2.
TEST_CASE("cpu isa: what the processor has, or AVX2 where the environment says so") {
  const char* chosen = std::getenv("SCONCE_CPU_ISA");
  if (chosen && std::string_view(chosen) == "avx2") {
    CHECK(only_avx2());
    CHECK_FALSE(has_avx512());
    CHECK_FALSE(has_avx512_bf16());
    CHECK_FALSE(has_avx512_vnni());
    CHECK_FALSE(has_avx512_fp16());
    CHECK_FALSE(has_amx_bf16());
    return;
  }
  CHECK_FALSE(only_avx2());
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  CHECK(has_avx512() == wide);
  CHECK(has_avx512_bf16() == (wide && __builtin_cpu_supports("avx512bf16")));
  CHECK(has_avx512_vnni() == (wide && __builtin_cpu_supports("avx512vnni")));
  CHECK((wide || !has_avx512_fp16()));
  CHECK((has_avx512_bf16() || !has_amx_bf16()));
}
