#include "src/ops/resample_backward.h"

#include <array>
#include <cmath>
#include <memory>

#include "src/ops/plane_scatter.h"

namespace sconce::cpu {
namespace {

// How one output coordinate draws on input coordinates: up to four of them with their weights.
template <class T>
struct Taps {
  std::array<int64_t, 4> at{};
  std::array<T, 4> weight{};
};

struct Axis {
  int64_t input = 1, output = 1;
  std::optional<double> scale;
};

template <class T>
T step(const Axis& axis, bool align_corners) noexcept {
  if (align_corners) return axis.output > 1 ? static_cast<T>(axis.input - 1) / static_cast<T>(axis.output - 1) : T(0);
  if (axis.scale && *axis.scale > 0) return static_cast<T>(1.0 / *axis.scale);
  return static_cast<T>(axis.input) / static_cast<T>(axis.output);
}

template <class T>
Taps<T> linear_taps(const Axis& axis, bool align_corners, int64_t o) noexcept {
  if (axis.input == axis.output) return {{o, o, o, o}, {1, 0, 0, 0}};
  const T scale = step<T>(axis, align_corners);
  T real = align_corners ? scale * static_cast<T>(o) : scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
  if (real < 0) real = 0;
  const int64_t first = std::min(static_cast<int64_t>(real), axis.input - 1);
  const T second_weight = std::clamp(real - static_cast<T>(first), T(0), T(1));
  return {{first, std::min(first + 1, axis.input - 1), first, first}, {1 - second_weight, second_weight, 0, 0}};
}

template <class T>
Taps<T> cubic_taps(const Axis& axis, bool align_corners, int64_t o) noexcept {
  constexpr T kA = T(-0.75);
  const T scale = step<T>(axis, align_corners);
  const T real = align_corners ? scale * static_cast<T>(o) : scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
  const auto first = static_cast<int64_t>(std::floor(real));
  const T t = real - static_cast<T>(first);
  const auto near = [](T x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](T x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  Taps<T> taps{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (size_t i = 0; i < 4; ++i)
    taps.at[i] = std::clamp<int64_t>(first - 1 + static_cast<int64_t>(i), 0, axis.input - 1);
  return taps;
}

// Gradients of a separable resize: `axes` depth, height, width; `taps_used` per pooled axis.
template <class T>
void resize_plane(const std::array<Axis, 3>& axes, const std::array<const Taps<T>*, 3>& taps, size_t used,
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
                       bool align_corners, std::array<std::optional<double>, 3> scales, int dims, bool cubic) {
  const auto n = static_cast<size_t>(dims);
  SCONCE_CHECK(output_size.size() == n && input_size.size() == n + 2, kInvalidArgument, name, ": It is expected ", dims,
               " output sizes and ", dims + 2, " input sizes, got ", to_string(output_size), " and ",
               to_string(input_size));
  std::array<Axis, 3> axes;
  for (size_t d = 0; d < n; ++d) axes[3 - n + d] = {input_size[d + 2], output_size[d], scales[3 - n + d]};
  for (const Axis& axis : axes)
    SCONCE_CHECK(axis.input > 0 && axis.output > 0, kInvalidArgument, name,
                 ": Input and output sizes should be greater than 0, but got input ", to_string(input_size),
                 ", output ", to_string(output_size));
  SCONCE_CHECK(input_size[0] >= 0 && input_size[1] >= 0, kInvalidArgument, name, ": input sizes ",
               to_string(input_size), " are negative");
  bool fits = grad_output.dim() == static_cast<int64_t>(n) + 2;
  for (int64_t d = 0; fits && d < grad_output.dim(); ++d)
    fits =
        grad_output.size(d) == (d < 2 ? input_size[static_cast<size_t>(d)] : output_size[static_cast<size_t>(d) - 2]);
  SCONCE_CHECK(fits, kInvalidArgument, name, ": Expected grad_output to have the same shape as output; output_size ",
               to_string(output_size), ", input_size ", to_string(input_size), " but got grad_output of ",
               to_string(grad_output.sizes()));
  if (!is_floating(grad_output.dtype())) fail_dispatch(grad_output.dtype(), name);
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
      // A cubic resize to the same sizes copies, whatever the scales say.
      const bool same = axes[1].input == axes[1].output && axes[2].input == axes[2].output;
      for (size_t a = 0; a < 3; ++a) {
        taps[a] = next;
        for (int64_t o = 0; o < axes[a].output; ++o)
          *next++ = cubic && !same && a >= 3 - n ? cubic_taps<T>(axes[a], align_corners, o)
                                                 : linear_taps<T>(axes[a], align_corners, o);
      }
      for_planes(from.count, from.size + to.size, [&](int64_t plane) noexcept {
        resize_plane<T>(axes, taps, cubic ? 4 : 2, grads.data_as<T>() + plane * from.size,
                        sums.data_as<T>() + plane * to.size);
      });
    });
  return in_format(name, sums, grad_output.dtype(), cubic ? MemoryFormat::kContiguous : suggested_format(grad_output));
}

Tensor replication_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan padding,
                            int dims) {
  SCONCE_CHECK(padding.size() == static_cast<size_t>(2 * dims), kInvalidArgument, name,
               ": padding size is expected to be ", 2 * dims, ", got ", padding.size());
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": expected ", dims + 1,
               "D or ", dims + 2, "D input, got ", to_string(self.sizes()));
  std::array<int64_t, 2> in{1, 1}, out{1, 1}, before{0, 0};  // height, width
  for (int d = 0; d < dims; ++d) {
    const auto to = static_cast<size_t>(2 - dims + d), pair = 2 * static_cast<size_t>(dims - 1 - d);
    in[to] = self.size(self.dim() - dims + d);
    before[to] = padding[pair];
    SCONCE_CHECK(!__builtin_add_overflow(in[to], padding[pair], &out[to]) &&
                     !__builtin_add_overflow(out[to], padding[pair + 1], &out[to]),
                 kInvalidArgument, name, ": padding ", to_string(padding), " is too large");
  }
  bool fits = grad_output.dim() == self.dim() && grad_output.dtype() == self.dtype();
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t axis = d - (self.dim() - dims);
    fits = grad_output.size(d) == (axis < 0 ? self.size(d) : out[static_cast<size_t>(2 - dims + axis)]);
  }
  SCONCE_CHECK(fits, kInvalidArgument, name, ": gradOutput ", describe(grad_output), " unexpected for an input ",
               describe(self), " and padding ", to_string(padding));
  if (!is_floating(self.dtype()) && !is_complex(self.dtype())) fail_dispatch(self.dtype(), name);
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
            for (int64_t h = 0; h < out[0]; ++h) {
              T* row = target + std::clamp<int64_t>(h - before[0], 0, in[0] - 1) * in[1];
              for (int64_t w = 0; w < out[1]; ++w) row[std::clamp<int64_t>(w - before[1], 0, in[1] - 1)] += *grad++;
            }
          });
        });
  return in_format(name, sums, self.dtype(), dims == 2 ? suggested_format(self) : MemoryFormat::kContiguous);
}

}  // namespace

Tensor upsample_linear1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                  bool align_corners, std::optional<double> scales) {
  return resize_backward("upsample_linear1d_backward", grad_output, output_size, input_size, align_corners,
                         {std::nullopt, std::nullopt, scales}, 1, false);
}
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   bool align_corners, std::optional<double> scales_h, std::optional<double> scales_w) {
  return resize_backward("upsample_bicubic2d_backward", grad_output, output_size, input_size, align_corners,
                         {std::nullopt, scales_h, scales_w}, 2, true);
}
Tensor upsample_trilinear3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                     bool align_corners, std::optional<double> scales_d, std::optional<double> scales_h,
                                     std::optional<double> scales_w) {
  return resize_backward("upsample_trilinear3d_backward", grad_output, output_size, input_size, align_corners,
                         {scales_d, scales_h, scales_w}, 3, false);
}
Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return replication_backward("replication_pad1d_backward", grad_output, self, padding, 1);
}
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return replication_backward("replication_pad2d_backward", grad_output, self, padding, 2);
}

}  // namespace sconce::cpu
