#include "src/ops/gemm_integer.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>

#include "sconce/check.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr int64_t kColumns = 256;  // whose sums fit the first-level cache
constexpr int64_t kProductsPerThread = 200'000;

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

// One row of c, columns [j0, j1). Sums are unsigned and at least as wide as C, so that they wrap as C's do.
template <class A, class B, class C>
void row(const MatrixProduct& p, const A* a, const B* b, const C* self, C* c, int64_t j0, int64_t j1, C alpha, C beta) {
  using U = std::conditional_t<sizeof(C) == 8, uint64_t, uint32_t>;
  U sums[kColumns] = {};
  const int64_t n = j1 - j0;
  b += j0 * p.b.column_stride;
  if (p.b.row_stride == 1 && p.b.column_stride != 1) {
    for (int64_t j = 0; j < n; ++j) {
      const B* column = b + j * p.b.column_stride;
      U sum = 0;
      if (p.a.column_stride == 1)
        for (int64_t i = 0; i < p.k; ++i) sum += static_cast<U>(a[i]) * static_cast<U>(column[i]);
      else
        for (int64_t i = 0; i < p.k; ++i) sum += static_cast<U>(a[i * p.a.column_stride]) * static_cast<U>(column[i]);
      sums[j] = sum;
    }
  } else {
    for (int64_t i = 0; i < p.k; ++i) {
      const U factor = static_cast<U>(a[i * p.a.column_stride]);
      const B* line = b + i * p.b.row_stride;
      if (p.b.column_stride == 1)
        for (int64_t j = 0; j < n; ++j) sums[j] += factor * static_cast<U>(line[j]);
      else
        for (int64_t j = 0; j < n; ++j) sums[j] += factor * static_cast<U>(line[j * p.b.column_stride]);
    }
  }
  for (int64_t j = j0; j < j1; ++j) {
    U v = static_cast<U>(alpha) * sums[j - j0];
    if (self) v += static_cast<U>(beta) * static_cast<U>(self[j * p.self.column_stride]);
    c[j * p.c_column_stride] = static_cast<C>(v);
  }
}

template <class A, class B, class C>
void run(const char* name, const MatrixProduct& p) {
  const C alpha = whole<C>(name, "alpha", p.alpha), beta = whole<C>(name, "beta", p.beta);
  const C* self = beta == 0 ? nullptr : static_cast<const C*>(p.self.data);
  const int64_t grain = std::max<int64_t>(1, kProductsPerThread / std::max<int64_t>(1, p.n * p.k));
  parallel_for(0, p.batch * p.m, grain, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t j = 0; j < p.n; j += kColumns)
      for (int64_t r = begin; r < end; ++r) {
        const int64_t i = r / p.m, m = r % p.m;
        row(p, static_cast<const A*>(p.a.data) + i * p.a.batch_stride + m * p.a.row_stride,
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
  if (p.batch == 0 || p.m == 0 || p.n == 0) return;
  if (a_is_signed)
    run<int8_t, int8_t, int32_t>("_int_mm", p);
  else
    run<uint8_t, int8_t, int32_t>("_int_mm", p);
}

}  // namespace sconce
