// Argument checks that all scatters share. Messages are ATen's.
#pragma once

#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// The wrapped dim. src is null if a single value is scattered.
int64_t check_scatter(std::string_view name, const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor* src);
void check_scatter_bounds(const int64_t* bad, int64_t dim, int64_t size);

}  // namespace sconce
