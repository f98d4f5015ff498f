// Checks the arguments of observed quantisation. Match aten::_fused_moving_avg_obs_fq_helper, torch 2.15.
#pragma once

#include <cstdint>

#include "sconce/tensor.h"

namespace sconce {

// self as [outer, channels, inner].
struct FakeQuantisedRows {
  int64_t outer, channels, inner, axis;
};
// Ranges and grids that were never used get their size. kInvalidArgument; kUnsupported for dtypes.
FakeQuantisedRows check_moving_average(const Tensor& self, Tensor& running_min, Tensor& running_max, Tensor& scale,
                                       Tensor& zero_point, int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                       bool per_row_fake_quant);

}  // namespace sconce
