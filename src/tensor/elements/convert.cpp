#include "src/tensor/elements/convert.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "src/device/cpu_isa.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {
namespace {

// Elements per step of a conversion through an intermediate type: fits the first-level cache.
constexpr int64_t kChunk = 1024;

template <class From, class To>
void convert_run(const void* source, void* destination, int64_t n) noexcept {
  To* __restrict d = static_cast<To*>(destination);
  if constexpr (std::is_same_v<From, bool>) {
    const uint8_t* __restrict s = static_cast<const uint8_t*>(source);  // bytes vectorise
    for (int64_t i = 0; i < n; ++i) d[i] = convert_value<To>(std::min(s[i], uint8_t{1}));
  } else {
    const From* __restrict s = static_cast<const From*>(source);
    for (int64_t i = 0; i < n; ++i) d[i] = convert_value<To>(s[i]);
  }
}

// All 256 numbers of a float8 type.
template <class T>
struct Float8Table {
  float values[256];
  constexpr Float8Table() noexcept : values() {
    for (int code = 0; code < 256; ++code) {
      T x{};
      x.bits = static_cast<uint8_t>(code);
      values[code] = static_cast<float>(x);
    }
  }
};
template <class T>
void float8_to_float(const void* source, float* __restrict destination, int64_t n) noexcept {
  static constexpr Float8Table<T> kTable;
  const auto* __restrict s = static_cast<const uint8_t*>(source);
  for (int64_t i = 0; i < n; ++i) destination[i] = kTable.values[s[i]];
}

template <class From, class To>
__attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512"))) void convert_run_avx512(
    const void* source, void* destination, int64_t n) noexcept {
  const From* __restrict s = static_cast<const From*>(source);
  To* __restrict d = static_cast<To*>(destination);
  for (int64_t i = 0; i < n; ++i) d[i] = convert_value<To>(s[i]);
}

template <class T>
void float_to_float8(const void* source, void* destination, int64_t n) noexcept {
  (has_avx512() ? convert_run_avx512<float, T> : convert_run<float, T>)(source, destination, n);
}

using Run = void (*)(const void*, void*, int64_t) noexcept;

template <class From, class To>
Run run_for() {
  // AVX2 has no instruction for these.
  constexpr bool kFloatAndInt64 = (std::is_floating_point_v<From> && std::is_same_v<To, int64_t>) ||
                                  (std::is_floating_point_v<To> && std::is_same_v<From, int64_t>);
  if constexpr (kFloatAndInt64)
    if (has_avx512()) return convert_run_avx512<From, To>;
  return convert_run<From, To>;
}

// The types that are converted directly; every other type uses one of these as its intermediate.
template <class F>
decltype(auto) dispatch_direct(DType dtype, F&& f) {
  return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kUInt8,
                               DType::kInt8, DType::kInt16, DType::kBool, DType::kUInt16, DType::kUInt32,
                               DType::kUInt64, DType::kComplex64, DType::kComplex128>(dtype, "copy", f);
}

Run direct_run(DType from, DType to) {
  return dispatch_direct(from, [to]<class From>() -> Run {
    return dispatch_direct(to, []<class To>() -> Run { return run_for<From, To>(); });
  });
}

DType intermediate(DType dtype) {
  if (is_float8(dtype) || dtype == DType::kFloat16 || dtype == DType::kBFloat16) return DType::kFloat32;
  return dtype == DType::kComplex32 ? DType::kComplex64 : dtype;
}

void widen(DType from, const void* source, void* destination, int64_t n) {
  auto* out = static_cast<float*>(destination);
  switch (from) {
    case DType::kFloat16:
      return half_to_float(static_cast<const Half*>(source), out, n);
    case DType::kComplex32:
      return half_to_float(static_cast<const Half*>(source), out, 2 * n);
    case DType::kBFloat16:
      return bfloat16_to_float(static_cast<const BFloat16*>(source), out, n);
    case DType::kFloat8E5M2:
      return float8_to_float<Float8E5M2>(source, out, n);
    case DType::kFloat8E4M3FN:
      return float8_to_float<Float8E4M3FN>(source, out, n);
    case DType::kFloat8E5M2FNUZ:
      return float8_to_float<Float8E5M2FNUZ>(source, out, n);
    case DType::kFloat8E4M3FNUZ:
      return float8_to_float<Float8E4M3FNUZ>(source, out, n);
    default:
      return float8_to_float<Float8E8M0FNU>(source, out, n);
  }
}

void narrow(const void* source, DType to, void* destination, int64_t n) {
  const auto* in = static_cast<const float*>(source);
  switch (to) {
    case DType::kFloat16:
      return half_from_float(in, static_cast<Half*>(destination), n);
    case DType::kComplex32:
      return half_from_float(in, static_cast<Half*>(destination), 2 * n);
    case DType::kBFloat16:
      return bfloat16_from_float(in, static_cast<BFloat16*>(destination), n);
    case DType::kFloat8E5M2:
      return float_to_float8<Float8E5M2>(in, destination, n);
    case DType::kFloat8E4M3FN:
      return float_to_float8<Float8E4M3FN>(in, destination, n);
    case DType::kFloat8E5M2FNUZ:
      return float_to_float8<Float8E5M2FNUZ>(in, destination, n);
    case DType::kFloat8E4M3FNUZ:
      return float_to_float8<Float8E4M3FNUZ>(in, destination, n);
    default:
      return float_to_float8<Float8E8M0FNU>(in, destination, n);
  }
}

// bfloat16 NaNs of every payload become one; SIMD lanes are 32 bits wide.
__m256i round_to_bfloat16(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7FC0), nan);
}

}  // namespace

void half_to_float(const Half* source, float* destination, int64_t n) noexcept {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(destination + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
  for (; i < n; ++i) destination[i] = source[i];
}

void half_from_float(const float* source, Half* destination, int64_t n) noexcept {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(destination + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i) destination[i] = Half(source[i]);
}

void bfloat16_to_float(const BFloat16* source, float* destination, int64_t n) noexcept {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
    const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(packed), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(destination + i), wide);
  }
  for (; i < n; ++i) destination[i] = source[i];
}

void bfloat16_from_float(const float* source, BFloat16* destination, int64_t n) noexcept {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i low = round_to_bfloat16(_mm256_loadu_ps(source + i));
    const __m256i high = round_to_bfloat16(_mm256_loadu_ps(source + i + 8));
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(destination + i), packed);
  }
  for (; i < n; ++i) destination[i] = BFloat16(source[i]);
}

void convert(DType from, const void* source, DType to, void* destination, int64_t n) {
  if (n == 0) return;
  if (from == to) {
    if (source != destination) std::memcpy(destination, source, static_cast<size_t>(n) * dtype_bytes(from));
    return;
  }
  const DType wide_from = intermediate(from), wide_to = intermediate(to);
  if (wide_from != from && wide_from == to) return widen(from, source, destination, n);
  if (wide_to != to && wide_to == from) return narrow(source, to, destination, n);
  if (wide_from == from && wide_to == to) return direct_run(from, to)(source, destination, n);

  const Run run = wide_from == wide_to ? nullptr : direct_run(wide_from, wide_to);
  alignas(64) std::byte first[kChunk * sizeof(ComplexFloat)];
  alignas(64) std::byte second[kChunk * sizeof(ComplexFloat)];
  const auto* in = static_cast<const std::byte*>(source);
  auto* out = static_cast<std::byte*>(destination);
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t count = std::min(kChunk, n - i);
    const void* at = in + i * static_cast<int64_t>(dtype_bytes(from));
    void* target = out + i * static_cast<int64_t>(dtype_bytes(to));
    if (wide_from != from) {
      widen(from, at, first, count);
      at = first;
    }
    if (run) {
      void* const into = wide_to != to ? second : target;
      run(at, into, count);
      at = into;
    }
    if (wide_to != to) narrow(at, to, target, count);
  }
}

}  // namespace sconce
