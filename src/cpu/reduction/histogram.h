// Histograms. Match aten::histc, histogram.* and _histogramdd_* (torch 2.15, CPU).
//
// Any strides; float and double, with a given range also half and bfloat16. Elements outside of the range and NaNs are
// not counted; the last bin includes its right edge. kInvalidArgument for bins, ranges and weights that ATen refuses.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "sconce/tensor.h"
#include "src/operators/arguments.h"

namespace sconce::cpu {

using OptReals = std::optional<std::span<const double>>;

// The edges for _histogramdd_from_bin_cts, [bins + 1] for each dimension.
std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, IntSpan bins, OptReals range, const Tensor* weight,
                                           bool density);
// Between given ascending edges, of self's dtype; one tensor for each of the D dimensions.
Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorList bins, const Tensor* weight, bool density);
std::array<Tensor, 2> histogram_bins_tensor(const Tensor& self, const Tensor& bins, const Tensor* weight, bool density);

}  // namespace sconce::cpu
