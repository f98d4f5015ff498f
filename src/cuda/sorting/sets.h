// Distinct elements and counts, called by name. Signatures follow src/cpu/sorting/sets.h.
#pragma once

#include <array>

#include "sconce/tensor.h"

namespace sconce::cuda {

std::array<Tensor, 3> _unique2(const Tensor& self, bool sorted, bool return_inverse, bool return_counts);
Tensor bincount(const Tensor& self, const Tensor* weights, int64_t minlength);

}  // namespace sconce::cuda
