// Operands of matrix products in every layout, and the products' values computed in double (integers: modulo 2^64).
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sconce/float_types.h"
#include "sconce/tensor.h"
#include "src/support/hash.h"

namespace sconce::matrix_testing {

using Ints = std::vector<int64_t>;
using Exact = std::complex<double>;

template <class T>
Exact exact(T v) {
  if constexpr (kIsComplex<T>)
    return Exact(v);
  else
    return Exact(static_cast<double>(v));
}

// Fast, because the large cases need millions of numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() { return mixed_bits(state_ += kGoldenStep); }
  double real() { return static_cast<double>(static_cast<int64_t>((*this)()) >> 11) * 0x1p-52; }  // in [-1, 1)

 private:
  uint64_t state_;
};

template <class T>
T make_value(Random& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    if constexpr (kIsComplex<T>) {
      const auto re = static_cast<typename T::value_type>(random.real());
      return T(re, static_cast<typename T::value_type>(random.real()));
    } else if constexpr (kIsSmallFloat<T>) {
      return T(static_cast<float>(random.real()));
    } else {
      return static_cast<T>(random.real());
    }
  }
}

enum class LayoutOf { kRows, kColumns, kGaps, kColumnGaps, kOffset, kBroadcastRow, kBroadcastColumn, kScalar };
inline constexpr LayoutOf kDenseLayouts[] = {LayoutOf::kRows, LayoutOf::kColumns, LayoutOf::kGaps,
                                             LayoutOf::kColumnGaps, LayoutOf::kOffset};

// [batch, rows, columns] in this layout; [rows, columns] if batch < 0.
inline Tensor make_matrix(DType dtype, int64_t batch, int64_t rows, int64_t columns, LayoutOf layout) {
  int64_t rs = columns, cs = 1, offset = 0;
  switch (layout) {
    case LayoutOf::kRows:
      break;
    case LayoutOf::kColumns:
      rs = 1;
      cs = rows;
      break;
    case LayoutOf::kGaps:
      rs = columns * 2 + 3;
      cs = 2;
      break;
    case LayoutOf::kColumnGaps:
      rs = 1;
      cs = rows + 5;
      break;
    case LayoutOf::kOffset:
      rs = columns + 1;
      offset = 3;
      break;
    case LayoutOf::kBroadcastRow:
      rs = 0;
      break;
    case LayoutOf::kBroadcastColumn:
      rs = 1;
      cs = 0;
      break;
    case LayoutOf::kScalar:
      rs = cs = 0;
      break;
  }
  const int64_t span = std::max<int64_t>(1, std::max(rows * rs, columns * cs) + rows + columns);
  Tensor storage = Tensor::empty(Ints{offset + span * std::max<int64_t>(1, batch)}, dtype);
  std::memset(storage.data(), 0, storage.bytes());
  if (batch < 0) return storage.as_strided(Ints{rows, columns}, Ints{rs, cs}, offset);
  return storage.as_strided(Ints{batch, rows, columns}, Ints{span, rs, cs}, offset);
}

template <class T>
void fill(const Tensor& tensor, Random& random) {
  T* data = static_cast<T*>(tensor.storage()->data());
  for (size_t i = 0; i < tensor.storage()->bytes() / sizeof(T); ++i) data[i] = make_value<T>(random);
}

template <class T>
T& at(const Tensor& tensor, int64_t batch, int64_t row, int64_t column) {
  const int64_t d = tensor.dim();
  return tensor.data_as<T>()[(d == 3 ? batch * tensor.stride(0) : 0) + row * tensor.stride(d - 2) +
                             column * tensor.stride(d - 1)];
}

}  // namespace sconce::matrix_testing
