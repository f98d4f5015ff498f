#include "src/device/sleef.h"

#include <immintrin.h>

#include <cmath>
#include <iterator>

#include "sconce/check.h"

namespace {

// Duplicates the elements into both halves, so that no other number triggers SLEEF's slow paths.
inline __m256 wide(__m128 x) { return _mm256_broadcast_ps(&x); }
inline __m256d wide(__m128d x) { return _mm256_broadcast_pd(&x); }
inline __m128 half(__m256 x) { return _mm256_castps256_ps128(x); }
inline __m128d half(__m256d x) { return _mm256_castpd256_pd128(x); }

}  // namespace

extern "C" {
extern void* sconce_sleef_targets[];

// Called before the library is open. The model gets an exception, as from any failing call.
[[noreturn, gnu::visibility("hidden")]] void sconce_sleef_closed() {
  SCONCE_FAIL(kInternal, "a SLEEF function was called before the library was opened");
}

// The functions of sleef_lanes.def for vectors, for single elements and for 128-bit vectors.
#define SCONCE_LANES_FUNCTION(type, name, parameters, arguments, value) \
  type name parameters;                                                 \
  type name parameters { return value arguments; }
#define SCONCE_LANES_v(function, f8, d4)                                                              \
  SCONCE_LANES_FUNCTION(float, sconce_lane_##function##_f, (float x), (x), std::function)             \
  SCONCE_LANES_FUNCTION(double, sconce_lane_##function##_d, (double x), (x), std::function)           \
  __m256 f8(__m256);                                                                                  \
  __m256d d4(__m256d);                                                                                \
  SCONCE_LANES_FUNCTION(__m128, _ZGVbN4v_sconce_lane_##function##_f, (__m128 x), (f8(wide(x))), half) \
  SCONCE_LANES_FUNCTION(__m128d, _ZGVbN2v_sconce_lane_##function##_d, (__m128d x), (d4(wide(x))), half)
#define SCONCE_LANES_vv(function, f8, d4)                                                                              \
  SCONCE_LANES_FUNCTION(float, sconce_lane_##function##_f, (float x, float y), (x, y), std::function)                  \
  SCONCE_LANES_FUNCTION(double, sconce_lane_##function##_d, (double x, double y), (x, y), std::function)               \
  __m256 f8(__m256, __m256);                                                                                           \
  __m256d d4(__m256d, __m256d);                                                                                        \
  SCONCE_LANES_FUNCTION(__m128, _ZGVbN4vv_sconce_lane_##function##_f, (__m128 x, __m128 y), (f8(wide(x), wide(y))),    \
                        half)                                                                                          \
  SCONCE_LANES_FUNCTION(__m128d, _ZGVbN2vv_sconce_lane_##function##_d, (__m128d x, __m128d y), (d4(wide(x), wide(y))), \
                        half)
#define SCONCE_LANES(function, parameters, name, accuracy) \
  SCONCE_LANES_##parameters(function, Sleef_##name##f8##accuracy, Sleef_##name##d4##accuracy)
#include "src/device/sleef_lanes.def"
#undef SCONCE_LANES
}

namespace sconce {
namespace {

constexpr const char* kFunctions[] = {
#define SCONCE_SLEEF(name, function) #function,
#include "src/device/sleef_functions.def"
#undef SCONCE_SLEEF
};

LazyLibrary library{"SLEEF", "libsleef.so.3", "libsleef3", kFunctions, sconce_sleef_targets, std::size(kFunctions), {}};

}  // namespace

LazyLibrary& sleef_library() noexcept { return library; }

}  // namespace sconce
