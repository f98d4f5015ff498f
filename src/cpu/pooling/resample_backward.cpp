#include "src/cpu/pooling/resample_backward.h"

#include <algorithm>
#include <array>

#include "src/cpu/pooling/resample_draws.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/spatial/padded_sides.h"
#include "src/tensor/spatial/resized_axes.h"

namespace sconce::cpu {
namespace {

using enum ResampleMode;
constexpr OptScale kNone;

// Gradients of a separable resize, row by row of the input: what draws on a row is summed in `line`, as wide as the
// output, then along it.
template <class T>
void resize_plane(const std::array<ResampledAxis, 3>& axes, const std::array<Draws<T>, 3>& draws, const T* grad,
                  T* sums, T* line) noexcept {
  const int64_t width = axes[2].output;
  for (int64_t id = 0; id < axes[0].input; ++id)
    for (int64_t ih = 0; ih < axes[1].input; ++ih, sums += axes[2].input) {
      const auto along_d = draws[0].on(id), along_h = draws[1].on(ih);
      if (along_d.empty() || along_h.empty()) {
        std::fill_n(sums, axes[2].input, T(0));
        continue;
      }
      const T* row = grad + (along_d[0].output * axes[1].output + along_h[0].output) * width;
      const bool alone = along_d.size() * along_h.size() == 1 && along_d[0].weight * along_h[0].weight == T(1);
      if (!alone) {
        bool first = true;
        for (const auto& d : along_d)
          for (const auto& h : along_h) {
            const T weight = d.weight * h.weight;
            row = grad + (d.output * axes[1].output + h.output) * width;
            if (first)
              for (int64_t i = 0; i < width; ++i) line[i] = weight * row[i];
            else
              for (int64_t i = 0; i < width; ++i) line[i] += weight * row[i];
            first = false;
          }
        row = line;
      }
      for (int64_t iw = 0; iw < axes[2].input; ++iw) {
        T sum = 0;
        for (const auto& w : draws[2].on(iw)) sum += row[w.output] * w.weight;
        sums[iw] = sum;
      }
    }
}

Tensor resize_backward(std::string_view name, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                       bool align_corners, std::array<OptScale, 3> scales, int dims, ResampleMode mode) {
  const std::array<ResampledAxis, 3> axes = resized_axes(name, grad_output, output_size, input_size, scales, dims);
  const ResampleModes modes = resample_modes(axes, dims, mode);
  const DType dtype = summed_dtype(grad_output.dtype());
  const Tensor grads = contiguous(to_dtype(grad_output, dtype));
  Tensor sums = Tensor::empty(input_size, dtype);
  const Planes from = planes_of(grads.sizes(), dims), to = planes_of(input_size, dims);
  if (grads.numel() == 0)
    zero(sums);
  else
    dispatch_float_double(dtype, name, [&]<class T>() {
      // Depth and height that are 1 and stay 1 have one tap: others of weight 0 would make NaN of infinity.
      const auto draws_along = [&](size_t a) {
        const bool once = a < 2 && axes[a].input == 1 && axes[a].output == 1;
        return Draws<T>(once ? kNearest : modes[a], axes[a], align_corners);
      };
      const std::array<Draws<T>, 3> draws{draws_along(0), draws_along(1), draws_along(2)};
      const int64_t parts = slice_parts(from.count, from.size + to.size), lines[] = {parts, axes[2].output};
      const Tensor scratch = Tensor::empty(lines, dtype);
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t part = begin; part < end; ++part)
          for (int64_t plane = from.count * part / parts; plane < from.count * (part + 1) / parts; ++plane)
            resize_plane(axes, draws, grads.data_as<T>() + plane * from.size, sums.data_as<T>() + plane * to.size,
                         scratch.data_as<T>() + part * axes[2].output);
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
