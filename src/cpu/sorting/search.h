// Binary search. Matches aten::searchsorted.Tensor, searchsorted.Scalar and bucketize.Tensor (torch 2.15, CPU): the
// same probes in the same order, so that unsorted sequences and NaNs give ATen's results.
#pragma once

#include <optional>
#include <string_view>

#include "sconce/tensor.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

// searchsorted_Scalar of a number of any kind.
Tensor searchsorted_number(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter);

}  // namespace sconce::cpu
