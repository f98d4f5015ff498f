// Resampling with a low-pass filter: the weights of the filters, and the arguments of the operators, checked.
// Matches aten::_upsample_bilinear2d_aa, _upsample_bicubic2d_aa and _upsample_lanczos2d_aa, torch 2.15.
#pragma once

#include <cstdint>
#include <vector>

#include "sconce/tensor.h"
#include "src/tensor/spatial/resample_taps.h"

namespace sconce {

// The elements of a line that contribute to each element of the resampled line. None, if a given scale puts them
// outside.
struct LineWindows {
  struct Window {
    int64_t first, count;
  };
  std::vector<Window> windows;  // one per element of the result
  std::vector<double> weights;  // `width` of them per window
  int64_t width = 0;
  // If an element may occur twice, its index in each of the `width` positions of a window: infinity times each weight
  // differs from infinity times their sum. Else empty: neighbours are consecutive from `first` on.
  std::vector<int64_t> places = {};

  int64_t place(int64_t window, int64_t neighbour) const noexcept {
    return places.empty() ? windows[static_cast<size_t>(window)].first + neighbour
                          : places[static_cast<size_t>(window * width + neighbour)];
  }
};

enum class LowPass { kBilinear, kBicubic, kLanczos };
// The name of the operator.
const char* low_pass_name(LowPass filter) noexcept;
// The windows of a line of `to` elements over one of `from`. Positions are computed in the dtype, for half types in
// float32.
LineWindows low_pass_windows(LowPass filter, DType dtype, int64_t from, int64_t to, bool align_corners, OptScale scale);
// The arguments of the operators and of their gradients.
void check_low_pass(LowPass filter, const Tensor& self, IntSpan output_size);
void check_low_pass_gradient(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size);

// A device's kernels for all filters.
using LowPassKernel = Tensor(LowPass filter, const Tensor& self, IntSpan output_size, bool align_corners,
                             OptScale scales_h, OptScale scales_w);
using LowPassGradient = Tensor(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                               bool align_corners, OptScale scales_h, OptScale scales_w);
// The operators of one filter.
template <LowPassKernel* kKernel, LowPass kFilter>
Tensor upsample_aa(const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h, OptScale scales_w) {
  return kKernel(kFilter, self, output_size, align_corners, scales_h, scales_w);
}
template <LowPassGradient* kKernel, LowPass kFilter>
Tensor upsample_aa_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size, bool align_corners,
                            OptScale scales_h, OptScale scales_w) {
  return kKernel(kFilter, grad_output, output_size, input_size, align_corners, scales_h, scales_w);
}

}  // namespace sconce
