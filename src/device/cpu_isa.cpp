#include "src/device/cpu_isa.h"

#include <cpuid.h>

#include <cstdlib>
#include <cstring>

namespace sconce {

bool only_avx2() noexcept {
  static const bool only = [] {
    const char* chosen = std::getenv("SCONCE_CPU_ISA");
    return chosen != nullptr && std::strcmp(chosen, "avx2") == 0;
  }();
  return only;
}

bool has_avx512() noexcept {
  static const bool has = !only_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

bool has_avx512_bf16() noexcept {
  static const bool has = has_avx512() && __builtin_cpu_supports("avx512bf16");
  return has;
}

bool has_avx512_vnni() noexcept {
  static const bool has = has_avx512() && __builtin_cpu_supports("avx512vnni");
  return has;
}

// GCC 12 has no names for these bits.
static bool has_feature(unsigned bit) noexcept {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> bit & 1) != 0;
}

bool has_avx512_fp16() noexcept {
  static const bool has = has_avx512() && has_feature(23);
  return has;
}

bool has_amx_bf16() noexcept {
  static const bool has = has_avx512_bf16() && has_feature(22) && has_feature(24);
  return has;
}

}  // namespace sconce
