// Sums and means, called by name. Signatures follow src/cpu/reduction/sum.h and moments.h.
#pragma once

#include <optional>

#include "sconce/tensor.h"

namespace sconce::cuda {

Tensor sum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);
Tensor sum_all(const Tensor& self, std::optional<DType> dtype);
Tensor mean(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);
Tensor mean_all(const Tensor& self, std::optional<DType> dtype);

}  // namespace sconce::cuda
