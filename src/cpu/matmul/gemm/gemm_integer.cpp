#include "src/cpu/matmul/gemm/gemm_integer.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/onednn_matmul.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr int64_t kColumns = 256;  // whose sums fit the first-level cache
constexpr int64_t kProductsPerThread = 500'000;

// As c10::Scalar::to<T> of a double.
template <class T>
T whole(const char* name, std::string_view what, double value) {
  // Both bounds are exact in double but for the largest int64, which rounds up to 2^63.
  constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::lowest());
  constexpr double kPastLargest = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
  SCONCE_CHECK(value >= kLowest && value < kPastLargest, kInvalidArgument, name, ": ", what,
               " cannot be converted to the tensors' dtype without overflow: ", value);
  return static_cast<T>(value);
}

// Unsigned, so that sums wrap, and no wider than C needs.
template <class C>
using Wrapping = std::conditional_t<sizeof(C) == 8, uint64_t, std::conditional_t<sizeof(C) == 4, uint32_t, uint16_t>>;

// Not in 16 bits: C++ would multiply them as int, whose overflow is undefined.
template <class U>
U times(U a, U b) {
  if constexpr (sizeof(U) == 8)
    return a * b;
  else
    return static_cast<U>(uint32_t{a} * uint32_t{b});
}

// One row of c, columns [j0, j1).
template <class A, class B, class C>
[[gnu::always_inline]] inline void row(const MatrixProduct& p, const A* a, const B* b, const C* self, C* c, int64_t j0,
                                       int64_t j1, C alpha, C beta) {
  using U = Wrapping<C>;
  U sums[kColumns] = {};
  const int64_t n = j1 - j0, a_cs = p.a.column_stride, b_rs = p.b.row_stride, b_cs = p.b.column_stride;
  b += j0 * b_cs;
  const auto factor = [&](int64_t i) { return static_cast<U>(a[i * a_cs]); };
  if (b_rs == 1 && b_cs != 1) {
    for (int64_t j = 0; j < n; ++j) {
      const B* column = b + j * b_cs;
      U sum = 0;
      if (a_cs == 1)
        for (int64_t i = 0; i < p.k; ++i) sum += times(static_cast<U>(a[i]), static_cast<U>(column[i]));
      else
        for (int64_t i = 0; i < p.k; ++i) sum += times(factor(i), static_cast<U>(column[i]));
      sums[j] = sum;
    }
  } else if (b_cs == 1) {
    int64_t i = 0;
    for (; i + 4 <= p.k; i += 4) {
      const U f0 = factor(i), f1 = factor(i + 1), f2 = factor(i + 2), f3 = factor(i + 3);
      const B *l0 = b + i * b_rs, *l1 = l0 + b_rs, *l2 = l1 + b_rs, *l3 = l2 + b_rs;
      for (int64_t j = 0; j < n; ++j)
        sums[j] += times(f0, static_cast<U>(l0[j])) + times(f1, static_cast<U>(l1[j])) +
                   times(f2, static_cast<U>(l2[j])) + times(f3, static_cast<U>(l3[j]));
    }
    for (; i < p.k; ++i) {
      const U f = factor(i);
      const B* line = b + i * b_rs;
      for (int64_t j = 0; j < n; ++j) sums[j] += times(f, static_cast<U>(line[j]));
    }
  } else {
    for (int64_t i = 0; i < p.k; ++i) {
      const U f = factor(i);
      for (int64_t j = 0; j < n; ++j) sums[j] += times(f, static_cast<U>(b[i * b_rs + j * b_cs]));
    }
  }
  for (int64_t j = j0; j < j1; ++j) {
    U v = times(static_cast<U>(alpha), sums[j - j0]);
    if (self) v += times(static_cast<U>(beta), static_cast<U>(self[j * p.self.column_stride]));
    c[j * p.c_column_stride] = static_cast<C>(v);
  }
}

template <class A, class B, class C>
void row_avx2(const MatrixProduct& p, const A* a, const B* b, const C* self, C* c, int64_t j0, int64_t j1, C alpha,
              C beta) {
  row(p, a, b, self, c, j0, j1, alpha, beta);
}
template <class A, class B, class C>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void row_avx512(
    const MatrixProduct& p, const A* a, const B* b, const C* self, C* c, int64_t j0, int64_t j1, C alpha, C beta) {
  row(p, a, b, self, c, j0, j1, alpha, beta);
}

template <class A, class B, class C>
void run(const char* name, const MatrixProduct& p) {
  const C alpha = whole<C>(name, "alpha", p.alpha), beta = whole<C>(name, "beta", p.beta);
  const C* self = beta == 0 ? nullptr : static_cast<const C*>(p.self.data);
  const auto row_of = has_avx512() ? &row_avx512<A, B, C> : &row_avx2<A, B, C>;
  const int64_t grain = std::max<int64_t>(1, kProductsPerThread / std::max<int64_t>(1, p.n * p.k));
  parallel_for(0, p.batch * p.m, grain, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t j = 0; j < p.n; j += kColumns)
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r / p.m, m = r % p.m;
        row_of(p, static_cast<const A*>(p.a.data) + i * p.a.batch_stride + m * p.a.row_stride,
               static_cast<const B*>(p.b.data) + i * p.b.batch_stride,
               self ? self + i * p.self.batch_stride + m * p.self.row_stride : nullptr,
               static_cast<C*>(p.c) + i * p.c_batch_stride + m * p.c_row_stride, j, std::min(p.n, j + kColumns), alpha,
               beta);
      }
  });
}

}  // namespace

void integer_matrix_product(const char* name, const MatrixProduct& p) {
  switch (p.dtype) {
    case DType::kUInt8:
      return run<uint8_t, uint8_t, uint8_t>(name, p);
    case DType::kInt8:
      return run<int8_t, int8_t, int8_t>(name, p);
    case DType::kInt16:
      return run<int16_t, int16_t, int16_t>(name, p);
    case DType::kInt32:
      return run<int32_t, int32_t, int32_t>(name, p);
    case DType::kInt64:
      return run<int64_t, int64_t, int64_t>(name, p);
    default:
      SCONCE_FAIL(kUnsupported, name, ": not implemented for '", dtype_name(p.dtype), "'");
  }
}

void int8_matrix_product(bool a_is_signed, const MatrixProduct& p) {
  if (p.batch == 0 || p.m == 0 || p.n == 0 || onednn::int8_matrix_product(a_is_signed, p)) return;
  if (a_is_signed)
    run<int8_t, int8_t, int32_t>("_int_mm", p);
  else
    run<uint8_t, int8_t, int32_t>("_int_mm", p);
}

}  // namespace sconce
