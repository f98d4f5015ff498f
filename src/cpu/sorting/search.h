// Binary search. Matches aten::searchsorted.Tensor, searchsorted.Scalar and bucketize.Tensor (torch 2.15, CPU): the
// same probes in the same order, so that unsorted sequences and NaNs give what ATen gives.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

// sorted_sequence [..., n] or [n], self [..., m]: for each value its place in the sequence, int64 or int32, row-major.
// side "left" (or right=false): the first place; "right": after the last equal. sorter: int64, of sorted_sequence's
// sizes, positions that sort it. Different dtypes are promoted.
Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter);
Tensor searchsorted_Scalar(const Tensor& sorted_sequence, double self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter);
Tensor searchsorted_number(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter);
// boundaries: [n]
Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right);

}  // namespace sconce::cpu
