// Rows of elements, sorted or selected from: shared by sorting operators.
#pragma once

#include <array>
#include <cstdint>

#include "src/cuda/runtime/copy.h"
#include "src/tensor/rows/slices.h"

namespace sconce::cuda {

// Longer rows are reduced by selection before they are sorted.
constexpr int64_t kLongRow = 2048;

// Throws kUnsupported for complex elements.
void check_sortable(const char* name, const Tensor& self);

// Writes `kept` elements, from `first` on, of each sorted row [..., length] to packed values and indices.
void sort_rows(const char* name, const Tensor& rows, const Tensor* labels, int64_t first, int64_t kept, bool descending,
               Tensor& values, Tensor& indices);
// The first `count` elements of each sorted row, or the last one of them.
void select_rows(const char* name, const Tensor& rows, int64_t count, bool descending, bool last_only, Tensor& values,
                 Tensor& indices);
// Values and indices of a tensor of no dimensions.
void only_element(const Tensor& self, std::array<Tensor, 2>& out);

// Calls fill_rows with packed [..., n] tensors for out[0] and out[1], with `dim` moved last: the results themselves if
// they have that layout, else temporaries that are copied back.
template <class F>
void by_rows(std::array<Tensor, 2>& out, int64_t dim, F fill_rows) {
  std::array<Tensor, 2> turned{move_last(out[0], dim), move_last(out[1], dim)}, packed = turned;
  for (Tensor& t : packed)
    if (!t.is_contiguous()) t = Tensor::empty(t.sizes(), t.dtype(), t.device());
  fill_rows(packed[0], packed[1]);
  for (size_t i = 0; i < 2; ++i)
    if (!turned[i].is_contiguous()) copy(packed[i], turned[i], false);
}

}  // namespace sconce::cuda
