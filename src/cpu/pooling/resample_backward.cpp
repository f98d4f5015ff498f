#include "src/cpu/pooling/resample_backward.h"

#include <array>
#include <memory>

#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/padded_sides.h"
#include "src/tensor/spatial/resized_axes.h"

namespace sconce::cpu {
namespace {

using enum ResampleMode;
constexpr OptScale kNone;

// Gradients of a separable resize: `axes` depth, height, width; `taps_used` per pooled axis.
template <class T>
void resize_plane(const std::array<ResampledAxis, 3>& axes, const std::array<const Taps<T>*, 3>& taps, size_t used,
                  const T* grad, T* sums) noexcept {
  const size_t used_d = axes[0].output == 1 && axes[0].input == 1 ? 1 : used;
  const size_t used_h = axes[1].output == 1 && axes[1].input == 1 ? 1 : used;
  for (int64_t od = 0; od < axes[0].output; ++od)
    for (int64_t oh = 0; oh < axes[1].output; ++oh)
      for (int64_t ow = 0; ow < axes[2].output; ++ow, ++grad)
        for (size_t d = 0; d < used_d; ++d)
          for (size_t h = 0; h < used_h; ++h) {
            const T outer = used_d == 1 ? T(1) : taps[0][od].weight[d];
            const T weight = outer * (used_h == 1 ? T(1) : taps[1][oh].weight[h]) * *grad;
            T* row = sums + (taps[0][od].at[d] * axes[1].input + taps[1][oh].at[h]) * axes[2].input;
            for (size_t w = 0; w < used; ++w) row[taps[2][ow].at[w]] += weight * taps[2][ow].weight[w];
          }
}

Tensor resize_backward(std::string_view name, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                       bool align_corners, std::array<OptScale, 3> scales, int dims, ResampleMode mode) {
  const std::array<ResampledAxis, 3> axes = resized_axes(name, grad_output, output_size, input_size, scales, dims);
  const ResampleModes modes = resample_modes(axes, dims, mode);
  const DType dtype = summed_dtype(grad_output.dtype());
  const Tensor grads = contiguous(to_dtype(grad_output, dtype));
  Tensor sums = Tensor::empty(input_size, dtype);
  zero(sums);
  const Planes from = planes_of(grads.sizes(), dims), to = planes_of(input_size, dims);
  if (grads.numel() > 0)
    dispatch_float_double(dtype, name, [&]<class T>() {
      const int64_t coordinates = axes[0].output + axes[1].output + axes[2].output;
      const auto table = std::make_unique<Taps<T>[]>(static_cast<size_t>(coordinates));
      Taps<T>* next = table.get();
      std::array<const Taps<T>*, 3> taps;
      for (size_t a = 0; a < 3; ++a) {
        taps[a] = next;
        for (int64_t o = 0; o < axes[a].output; ++o) *next++ = make_taps<T>(modes[a], axes[a], align_corners, o);
      }
      for_planes(from.count, from.size + to.size, [&](int64_t plane) noexcept {
        resize_plane<T>(axes, taps, taps_of(mode), grads.data_as<T>() + plane * from.size,
                        sums.data_as<T>() + plane * to.size);
      });
    });
  const bool nearest = mode == kNearest || mode == kNearestExact;
  const bool row_major = mode == kCubic || (nearest && dims == 3);
  return in_format(name, sums, grad_output.dtype(),
                   row_major ? MemoryFormat::kContiguous : suggested_format(grad_output));
}

Tensor padding_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan padding, int dims,
                        bool reflect) {
  const PaddedSides sides = padded_sides(name, grad_output, self, padding, dims);
  const auto &in = sides.in, &out = sides.out;
  const DType dtype = summed_dtype(self.dtype());
  const Tensor grads = contiguous(to_dtype(grad_output, dtype));
  Tensor sums = Tensor::empty(self.sizes(), dtype);
  zero(sums);
  const Planes from = planes_of(grads.sizes(), dims), to = planes_of(self.sizes(), dims);
  if (grads.numel() > 0 && to.size > 0)
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128>(
        dtype, name, [&]<class T>() {
          for_planes(from.count, from.size, [&](int64_t plane) noexcept {
            const T* grad = grads.data_as<T>() + plane * from.size;
            T* target = sums.data_as<T>() + plane * to.size;
            const auto from_axis = [&](size_t axis, int64_t at) { return sides.source(axis, at, reflect); };
            for (int64_t d = 0; d < out[0]; ++d)
              for (int64_t h = 0; h < out[1]; ++h) {
                T* row = target + (from_axis(0, d) * in[1] + from_axis(1, h)) * in[2];
                for (int64_t w = 0; w < out[2]; ++w) row[from_axis(2, w)] += *grad++;
              }
          });
        });
  return in_format(name, sums, self.dtype(), suggested_format(self));
}

}  // namespace

// grad [N, C, size...] -> [input_size...] = [N, C, ...]. d, h, w: output over input along depth, height and width; 0 or
// none: from the sizes.
Tensor upsample_linear1d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                  OptScale w) {
  return resize_backward("upsample_linear1d_backward", grad, size, input_size, align_corners, {kNone, kNone, w}, 1,
                         kLinear);
}
Tensor upsample_bicubic2d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners, OptScale h,
                                   OptScale w) {
  return resize_backward("upsample_bicubic2d_backward", grad, size, input_size, align_corners, {kNone, h, w}, 2,
                         kCubic);
}
Tensor upsample_trilinear3d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                     OptScale d, OptScale h, OptScale w) {
  return resize_backward("upsample_trilinear3d_backward", grad, size, input_size, align_corners, {d, h, w}, 3, kLinear);
}
Tensor upsample_bilinear2d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                    OptScale h, OptScale w) {
  return resize_backward("upsample_bilinear2d_backward", grad, size, input_size, align_corners, {kNone, h, w}, 2,
                         kLinear);
}
Tensor upsample_nearest1d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale w) {
  return resize_backward("upsample_nearest1d_backward", grad, size, input_size, false, {kNone, kNone, w}, 1, kNearest);
}
Tensor upsample_nearest2d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale h, OptScale w) {
  return resize_backward("upsample_nearest2d_backward", grad, size, input_size, false, {kNone, h, w}, 2, kNearest);
}
Tensor upsample_nearest3d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale d, OptScale h,
                                   OptScale w) {
  return resize_backward("upsample_nearest3d_backward", grad, size, input_size, false, {d, h, w}, 3, kNearest);
}
Tensor _upsample_nearest_exact1d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale w) {
  return resize_backward("_upsample_nearest_exact1d_backward", grad, size, input_size, false, {kNone, kNone, w}, 1,
                         kNearestExact);
}
Tensor _upsample_nearest_exact2d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale h,
                                          OptScale w) {
  return resize_backward("_upsample_nearest_exact2d_backward", grad, size, input_size, false, {kNone, h, w}, 2,
                         kNearestExact);
}
Tensor _upsample_nearest_exact3d_backward(const Tensor& grad, IntSpan size, IntSpan input_size, OptScale d, OptScale h,
                                          OptScale w) {
  return resize_backward("_upsample_nearest_exact3d_backward", grad, size, input_size, false, {d, h, w}, 3,
                         kNearestExact);
}

Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("replication_pad1d_backward", grad_output, self, padding, 1, false);
}
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("replication_pad2d_backward", grad_output, self, padding, 2, false);
}
Tensor replication_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("replication_pad3d_backward", grad_output, self, padding, 3, false);
}

Tensor reflection_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("reflection_pad1d_backward", grad_output, self, padding, 1, true);
}
Tensor reflection_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("reflection_pad2d_backward", grad_output, self, padding, 2, true);
}
Tensor reflection_pad3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_backward("reflection_pad3d_backward", grad_output, self, padding, 3, true);
}

}  // namespace sconce::cpu
