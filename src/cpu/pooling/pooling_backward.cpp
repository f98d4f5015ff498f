// Gradients of pooling, and the inverse of max pooling. [N, C, (D,) H, W], N optional; settings as in pooling.cpp.
//
// Any strides; a result is channels-last where ATen's is. Half types are summed in float and rounded once. Indices are
// int64 offsets into a plane; one outside of it is kInvalidArgument (ATen's kernels write out of bounds). Match ATen's
// CPU kernels, torch 2.15.
#include <algorithm>
#include <vector>

#include "src/cpu/pooling/plane_scatter.h"
#include "src/cpu/pooling/pooling_plan.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/spatial/pool_axes.h"

namespace sconce::cpu {
namespace {

// Row-major in the dtype that sums are made in.
Tensor packed(const Tensor& tensor, DType dtype) { return contiguous(to_dtype(tensor, dtype)); }

Tensor by_indices(std::string_view name, const Tensor& grad_output, const Tensor& self, const Tensor& indices, int dims,
                  MemoryFormat format) {
  const DType dtype = summed_dtype(self.dtype());
  const Tensor grads = packed(grad_output, dtype), index = contiguous(indices);
  Tensor sums = Tensor::empty(self.sizes(), dtype);
  if (grads.numel() == 0)
    zero(sums);
  else
    dispatch_float_double(dtype, name, [&]<class T>() {
      scatter_planes<T, true>(name, grads.data_as<T>(), index.data_as<int64_t>(), planes_of(grads.sizes(), dims),
                              sums.data_as<T>(), planes_of(self.sizes(), dims).size);
    });
  return in_format(name, sums, self.dtype(), format);
}

// One image [C, D, H, W] of a channels-last batch.
bool is_channels_last_image(const Tensor& t) {
  if (t.is_contiguous()) return false;
  const int64_t sizes[] = {1, t.size(0), t.size(1), t.size(2), t.size(3)};
  const int64_t strides[] = {t.numel(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
  return is_channels_last_3d(t.as_strided(sizes, strides, t.storage_offset()));
}

Tensor max_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, int dims, IntSpan kernel_size,
                    IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode, const Tensor& indices) {
  const auto axes = pool_axes(name, self, dims, kernel_size, stride, padding, dilation, ceil_mode);
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  check_pool_gradient(name, grad_output, self, axes, dims);
  check_pool_indices(name, indices, grad_output);
  if (dims == 2 || self.dim() == 5) return by_indices(name, grad_output, self, indices, dims, suggested_format(self));
  // For a single image, ATen looks at the layout of the gradient.
  Tensor result = by_indices(name, grad_output, self, indices, dims, MemoryFormat::kContiguous);
  if (!is_channels_last_image(grad_output)) return result;
  const int64_t c = self.size(0), h = self.size(2), w = self.size(3), strides[] = {1, h * w * c, w * c, c};
  Tensor last = Tensor::empty_strided(self.sizes(), strides, self.dtype());
  copy(result, last);
  return last;
}

std::array<PoolAxis, 3> floating_gradient_axes(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                               int dims) {
  const auto axes = adaptive_gradient_axes(name, grad_output, self, dims);
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  return axes;
}

Tensor adaptive_max_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, int dims,
                             const Tensor& indices) {
  const auto axes = floating_gradient_axes(name, grad_output, self, dims);
  check_pool_gradient(name, grad_output, self, axes, dims);
  check_pool_indices(name, indices, grad_output);
  return by_indices(name, grad_output, self, indices, dims,
                    dims == 2 ? suggested_format(self) : MemoryFormat::kContiguous);
}

// The windows along a row, and by how many elements of a row each divides.
struct Across {
  PoolAxis::Window window;
  int64_t size;
};
std::vector<Across> windows_across(const PoolAxis& width, bool include_padding) {
  std::vector<Across> windows;
  for (int64_t ow = 0; ow < width.output; ++ow) {
    const auto w = width.window(ow);
    windows.push_back({w, include_padding ? width.padded_size(ow) : std::max<int64_t>(w.end - w.begin, 1)});
  }
  return windows;
}

// Spreads every gradient evenly over its window. `line` has room for a row of the result: a row of gradients is spread
// over it once and then added to every row of its windows.
template <class T>
void spread(const std::array<PoolAxis, 3>& axes, const Across* across, const T* grad, T* sums, T* line,
            bool include_padding, int64_t divisor) noexcept {
  const auto& [depth, height, width] = axes;
  for (int64_t od = 0; od < depth.output; ++od)
    for (int64_t oh = 0; oh < height.output; ++oh, grad += width.output) {
      const auto d = depth.window(od), h = height.window(oh);
      if (d.empty() || h.empty()) continue;
      const int64_t along =
          include_padding ? depth.padded_size(od) * height.padded_size(oh) : (d.end - d.begin) * (h.end - h.begin);
      std::fill_n(line, width.input, T(0));
      for (int64_t ow = 0; ow < width.output; ++ow) {
        const auto& [w, size] = across[ow];
        const T share = static_cast<T>(grad[ow] / static_cast<T>(divisor ? divisor : along * size));
        for (int64_t iw = w.begin; iw < w.end; ++iw) line[iw] += share;
      }
      for (int64_t id = d.begin; id < d.end; ++id)
        for (int64_t ih = h.begin; ih < h.end; ++ih) {
          T* const row = sums + (id * height.input + ih) * width.input;
          for (int64_t iw = 0; iw < width.input; ++iw) row[iw] += line[iw];
        }
    }
}

Tensor average_backward(std::string_view name, const Tensor& grad_output, const Tensor& self,
                        const std::array<PoolAxis, 3>& axes, int dims, bool include_padding, int64_t divisor,
                        MemoryFormat format) {
  check_pool_gradient(name, grad_output, self, axes, dims);
  const DType dtype = summed_dtype(self.dtype());
  const Tensor grads = packed(grad_output, dtype);
  Tensor sums = Tensor::empty(self.sizes(), dtype);
  zero(sums);
  const Planes from = planes_of(grads.sizes(), dims), to = planes_of(self.sizes(), dims);
  const std::vector<Across> across = windows_across(axes[2], include_padding);
  if (grads.numel() > 0)
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64>(dtype, name, [&]<class T>() {
      const int64_t parts = slice_parts(from.count, from.size + to.size), lines[] = {parts, axes[2].input};
      const Tensor scratch = Tensor::empty(lines, dtype);
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
        for (int64_t part = begin; part < end; ++part)
          for (int64_t plane = from.count * part / parts; plane < from.count * (part + 1) / parts; ++plane)
            spread(axes, across.data(), grads.data_as<T>() + plane * from.size, sums.data_as<T>() + plane * to.size,
                   scratch.data_as<T>() + part * axes[2].input, include_padding, divisor);
      });
    });
  return in_format(name, sums, self.dtype(), format);
}

Tensor avg_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, int dims, IntSpan kernel_size,
                    IntSpan stride, IntSpan padding, bool ceil_mode, bool include_padding,
                    std::optional<int64_t> divisor, MemoryFormat format) {
  const auto axes = average_axes(name, self, dims, kernel_size, stride, padding, ceil_mode, divisor);
  const bool half = summed_dtype(self.dtype()) != self.dtype();
  if ((!is_floating(self.dtype()) && self.dtype() != DType::kInt64) || (half && dims == 3))
    fail_dispatch(self.dtype(), name);
  return average_backward(name, grad_output, self, axes, dims, include_padding, divisor.value_or(0), format);
}

Tensor adaptive_avg_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, int dims,
                             MemoryFormat format) {
  const auto axes = floating_gradient_axes(name, grad_output, self, dims);
  return average_backward(name, grad_output, self, axes, dims, false, 0, format);
}

Tensor unpool(std::string_view name, const Tensor& self, const Tensor& indices, IntSpan output_size, int dims) {
  const Shape sizes = unpooled_sizes(name, self, indices, output_size, dims);
  const Tensor values = contiguous(self), index = contiguous(indices);
  Tensor out = Tensor::empty(sizes, self.dtype());
  if (values.numel() == 0)
    zero(out);
  else
    dispatch_floating(self.dtype(), name, [&]<class T>() {
      scatter_planes<T, false>(name, values.data_as<T>(), index.data_as<int64_t>(), planes_of(self.sizes(), dims),
                               out.data_as<T>(), planes_of(sizes, dims).size);
    });
  return in_format(name, out, self.dtype(), dims == 2 ? suggested_format(self) : MemoryFormat::kContiguous);
}

}  // namespace

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward("max_pool2d_backward", grad_output, self, 2, kernel_size, stride, padding, dilation, ceil_mode,
                      indices);
}
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward("max_pool3d_backward", grad_output, self, 3, kernel_size, stride, padding, dilation, ceil_mode,
                      indices);
}
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return avg_backward("avg_pool2d_backward", grad_output, self, 2, kernel_size, stride, padding, ceil_mode,
                      count_include_pad, divisor_override, suggested_format(self));
}
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad,
                           std::optional<int64_t> divisor_override) {
  return avg_backward("avg_pool3d_backward", grad_output, self, 3, kernel_size, stride, padding, ceil_mode,
                      count_include_pad, divisor_override, MemoryFormat::kContiguous);
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  return adaptive_avg_backward("adaptive_avg_pool2d_backward", grad_output, self, 2, suggested_format(self));
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  return adaptive_avg_backward("adaptive_avg_pool3d_backward", grad_output, self, 3, MemoryFormat::kContiguous);
}
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return adaptive_max_backward("adaptive_max_pool2d_backward", grad_output, self, 2, indices);
}
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return adaptive_max_backward("adaptive_max_pool3d_backward", grad_output, self, 3, indices);
}

// Zeros but for the elements of self, which lie at their indices. Of two at one place the last stays.
Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  return unpool("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan output_size, IntSpan stride, IntSpan padding) {
  check_unpool3d(stride, padding);
  return unpool("max_unpool3d", self, indices, output_size, 3);
}

}  // namespace sconce::cpu
