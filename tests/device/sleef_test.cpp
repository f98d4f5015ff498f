#include "src/device/sleef.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <immintrin.h>

#include <cmath>
#include <string>
#include <vector>

#include "sconce/error.h"

using namespace sconce;

// As a model declares them.
extern "C" {
__m256 Sleef_expf8_u10(__m256);
__m256 Sleef_powf8_u10(__m256, __m256);
__m256 Sleef_fmodf8(__m256, __m256);
__m256d Sleef_lgammad4_u10(__m256d);
__m256d Sleef_hypotd4_u05(__m256d, __m256d);
}

namespace {

constexpr const char* kNames[] = {
#define SCONCE_SLEEF(name, function) #name,
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF
};

__attribute__((target("avx512f"))) void check_wide() {
  using F16 = __m512(__m512);
  using D8 = __m512d(__m512d, __m512d);
  auto* tanh = reinterpret_cast<F16*>(dlsym(RTLD_DEFAULT, "Sleef_tanhf16_u10"));
  auto* atan2 = reinterpret_cast<D8*>(dlsym(RTLD_DEFAULT, "Sleef_atan2d8_u10"));
  REQUIRE((tanh != nullptr));
  REQUIRE((atan2 != nullptr));
  alignas(64) float x[16], y[16];
  alignas(64) double a[8], b[8], c[8];
  for (int i = 0; i < 16; ++i) x[i] = 0.37F * static_cast<float>(i - 8);
  for (int i = 0; i < 8; ++i) a[i] = i - 3.5, b[i] = 2.25 - i;
  _mm512_store_ps(y, tanh(_mm512_load_ps(x)));
  _mm512_store_pd(c, atan2(_mm512_load_pd(a), _mm512_load_pd(b)));
  for (int i = 0; i < 16; ++i) CHECK(y[i] == doctest::Approx(std::tanh(x[i])).epsilon(1e-6));
  for (int i = 0; i < 8; ++i) CHECK(c[i] == doctest::Approx(std::atan2(a[i], b[i])).epsilon(1e-14));
}

}  // namespace

TEST_CASE("sleef: a call before the library is open is an exception, afterwards every vector lane is right") {
  // Sharing a process with other tests: whoever opens it first.
  if (!sleef_library().open.load()) CHECK_THROWS_AS(Sleef_expf8_u10(_mm256_set1_ps(1)), Error);
  require_library(sleef_library());
  alignas(32) float x[8], y[8], z[8];
  alignas(32) double a[4], b[4], c[4];
  for (int i = 0; i < 8; ++i) x[i] = 0.5F + static_cast<float>(i), y[i] = 1.75F - static_cast<float>(i);
  for (int i = 0; i < 4; ++i) a[i] = 0.25 + i, b[i] = 3.5 - i;
  const __m256 vx = _mm256_load_ps(x), vy = _mm256_load_ps(y);
  const __m256d va = _mm256_load_pd(a), vb = _mm256_load_pd(b);
  _mm256_store_ps(z, Sleef_expf8_u10(vx));
  for (int i = 0; i < 8; ++i) CHECK(z[i] == doctest::Approx(std::exp(x[i])).epsilon(1e-6));
  _mm256_store_ps(z, Sleef_powf8_u10(vx, vy));
  for (int i = 0; i < 8; ++i) CHECK(z[i] == doctest::Approx(std::pow(x[i], y[i])).epsilon(1e-6));
  _mm256_store_ps(z, Sleef_fmodf8(vx, vy));
  for (int i = 0; i < 8; ++i) CHECK(z[i] == std::fmod(x[i], y[i]));
  _mm256_store_pd(c, Sleef_lgammad4_u10(va));
  for (int i = 0; i < 4; ++i) CHECK(c[i] == doctest::Approx(std::lgamma(a[i])).epsilon(1e-14));
  _mm256_store_pd(c, Sleef_hypotd4_u05(va, vb));
  for (int i = 0; i < 4; ++i) CHECK(c[i] == doctest::Approx(std::hypot(a[i], b[i])).epsilon(1e-14));
  if (__builtin_cpu_supports("avx512f"))
    check_wide();
  else
    MESSAGE("skipped the 512-bit functions: this CPU has no AVX-512");
}

TEST_CASE("sleef: every listed name is exported and leads to the function of its own vector width") {
  require_library(sleef_library());
  const LazyLibrary& library = sleef_library();
  REQUIRE(std::size(kNames) == library.count);
  for (size_t i = 0; i < library.count; ++i) {
    const std::string name = kNames[i], function = library.functions[i];
    CAPTURE(name);
    CHECK(dlsym(RTLD_DEFAULT, name.c_str()) != nullptr);
    const bool narrow = name.find("f8") != std::string::npos || name.find("d4") != std::string::npos;
    CHECK((function == name + (narrow ? "avx2" : "avx512f") || function == name + (narrow ? "_avx2" : "_avx512f")));
    CHECK(library.targets[i] == dlsym(dlopen(library.soname, RTLD_NOW | RTLD_NOLOAD), library.functions[i]));
  }
}
