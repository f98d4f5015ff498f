// Pooling over the last two or three dimensions of [N, C, (D,) H, W] (N optional), its gradients, and max unpooling.
// Checks and windows are shared with the CPU (src/tensor/spatial/pool_axes.h). Match ATen's CUDA kernels (torch 2.15),
// memory formats included. Gradients are summed in a fixed order.
#include <algorithm>

#include "sconce/check.h"
#include "src/cuda/pooling/pooling_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/pool_axes.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

using Axes = std::array<PoolAxis, 3>;

// Strides for batch, channel, depth, height and width.
void five_strides(const Tensor& t, int dims, int64_t (&strides)[5]) {
  std::fill(strides, strides + 5, 0);
  const int64_t rank = t.dim();
  for (int i = 0; i < dims; ++i) strides[5 - dims + i] = t.stride(rank - dims + i);
  strides[1] = t.stride(rank - dims - 1);
  if (rank == dims + 2) strides[0] = t.stride(0);
}

bool is_last(MemoryFormat format) {
  return format == MemoryFormat::kChannelsLast || format == MemoryFormat::kChannelsLast3d;
}

// Whether some window has no element in the input, because its dilated steps skip it.
bool has_empty_windows(const PoolAxis& a) {
  if (a.adaptive || a.dilation == 1) return false;
  for (int64_t o = 0; o < a.output; ++o) {
    const int64_t begin = o * a.stride - a.padding;
    const int64_t first = begin < 0 ? begin + (-begin + a.dilation - 1) / a.dilation * a.dilation : begin;
    if (first >= std::min(begin + (a.kernel - 1) * a.dilation + 1, a.input)) return true;
  }
  return false;
}

// A pooling operator over the last `dims` dimensions of an input.
struct Pooling {
  const char* name;
  const Tensor& self;
  int dims;
  Axes axes;
  // Whether results have the input's memory format; else they are row-major.
  bool follows = dims == 2;
  // Of averages.
  bool include_padding = false;
  int64_t divisor = 0;

  int dtype() const { return static_cast<int>(self.dtype()); }
  MemoryFormat format() const {
    return follows && self.dim() == dims + 2 ? suggested_format(self) : MemoryFormat::kContiguous;
  }
  Tensor empty(IntSpan sizes, DType type) const { return empty_in_format(name, sizes, type, format(), self.device()); }
  PoolWalk walk(const Tensor& whole, const Tensor& pooled) const {
    PoolWalk walk{};
    for (size_t i = 0; i < 3; ++i) {
      const PoolAxis& a = axes[i];
      walk.lines[i] = {a.input, a.output, a.kernel, a.stride, a.padding, a.dilation, a.adaptive};
    }
    walk.batch = whole.dim() == dims + 2 ? whole.size(0) : 1;
    walk.channels = whole.size(whole.dim() - dims - 1);
    five_strides(whole, dims, walk.whole);
    five_strides(pooled, dims, walk.pooled);
    walk.channels_last = is_last(format());
    return walk;
  }
  Shape sizes() const { return pooled_sizes(self, axes, dims); }
};

// The pooled input or, given the gradient of that, the input's: whatever launch(walk, out) writes.
template <class Launch>
Tensor pooled(const Pooling& p, const Tensor* grad, const Launch& launch) {
  const DeviceScope scope(p.self.device());
  Tensor out = p.empty(grad ? Shape(p.self.sizes()) : p.sizes(), p.self.dtype());
  if (out.numel() == 0) return out;
  PoolWalk walk = grad ? p.walk(out, *grad) : p.walk(p.self, out);
  check_launch(p.name, launch(walk, out.data()), p.self.dtype());
  return out;
}

std::array<Tensor, 2> maxima(const Pooling& p) {
  const DeviceScope scope(p.self.device());
  Tensor indices = p.empty(p.sizes(), DType::kInt64);
  Tensor out = pooled(p, nullptr, [&](PoolWalk& walk, void* to) {
    five_strides(indices, p.dims, walk.indices);
    return launch_max_pool(walk, p.dtype(), p.self.data(), to, indices.data_as<int64_t>(), current_stream());
  });
  return {std::move(out), std::move(indices)};
}

Tensor averages(const Pooling& p) {
  return pooled(p, nullptr, [&](const PoolWalk& walk, void* to) {
    return launch_average_pool(walk, p.dtype(), p.self.data(), to, p.include_padding, p.divisor, current_stream());
  });
}

// For a channels-last gradient of the input, the same values with adjacent channels: kernels take several at once.
Tensor in_format_of(const Pooling& p, const Tensor& t) {
  if (!is_last(p.format()) || t.stride(t.dim() - p.dims - 1) == 1 || t.numel() == 0) return t;
  const DeviceScope scope(t.device());
  Tensor placed = p.empty(t.sizes(), t.dtype());
  copy(t, placed, false);
  return placed;
}

Tensor max_backward(const Pooling& p, const Tensor& given, const Tensor& places) {
  check_pool_gradient(p.name, given, p.self, p.axes, p.dims);
  check_pool_indices(p.name, places, given);
  const Tensor grad = in_format_of(p, given), indices = in_format_of(p, places);
  return pooled(p, &grad, [&](PoolWalk& walk, void* to) {
    five_strides(indices, p.dims, walk.indices);
    // ATen's 3d kernel adds wherever indices say. Its 2d kernel asks only the windows that reach an element.
    walk.stray_indices = p.dims == 3 && std::ranges::any_of(p.axes, has_empty_windows);
    return launch_max_pool_backward(walk, p.dtype(), grad.data(), indices.data_as<int64_t>(), to, current_stream());
  });
}

Tensor average_backward(const Pooling& p, const Tensor& given) {
  check_pool_gradient(p.name, given, p.self, p.axes, p.dims);
  const Tensor grad = in_format_of(p, given);
  return pooled(p, &grad, [&](const PoolWalk& walk, void* to) {
    return launch_average_pool_backward(walk, p.dtype(), grad.data(), to, p.include_padding, p.divisor,
                                        current_stream());
  });
}

Pooling max_pool(const char* name, const Tensor& self, int dims, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                 IntSpan dilation, bool ceil_mode) {
  return {name, self, dims, pool_axes(name, self, dims, kernel_size, stride, padding, dilation, ceil_mode), true};
}

Pooling average_pool(const char* name, const Tensor& self, int dims, IntSpan kernel_size, IntSpan stride,
                     IntSpan padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  const Axes axes = average_axes(name, self, dims, kernel_size, stride, padding, ceil_mode, divisor);
  return {name, self, dims, axes, dims == 2, count_include_pad, divisor.value_or(0)};
}

Pooling adaptive_pool(const char* name, const Tensor& self, int dims, IntSpan output_size, bool channels_may_be_empty) {
  return {name, self, dims, adaptive_axes(name, self, dims, output_size, channels_may_be_empty)};
}
Pooling adaptive_gradient(const char* name, const Tensor& grad, const Tensor& self, int dims) {
  return {name, self, dims, adaptive_gradient_axes(name, grad, self, dims)};
}

Tensor unpool(const char* name, const Tensor& self, const Tensor& indices, IntSpan output_size, int dims) {
  const Shape sizes = unpooled_sizes(name, self, indices, output_size, dims);
  SCONCE_CHECK(self.itemsize() <= 8, kUnsupported, name, ": not implemented for '", dtype_name(self.dtype()),
               "' on CUDA");
  const DeviceScope scope(self.device());
  // Always row-major, as in ATen.
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  fill_zero(out);
  if (self.numel() > 0) {
    const Planes planes = planes_of(self.sizes(), dims);
    launch_unpool(static_cast<int>(self.itemsize()), cuda::contiguous(self).data(),
                  cuda::contiguous(indices).data_as<int64_t>(), out.data(), planes.count, planes.size,
                  planes_of(sizes, dims).size, noted_by_kernels(), static_cast<int>(Noted::kScatter), current_stream());
    SCONCE_CUDA(cudaGetLastError());
    check_noted();
  }
  return out;
}

}  // namespace

std::array<Tensor, 2> max_pool2d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maxima(max_pool("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode));
}
std::array<Tensor, 2> max_pool3d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maxima(max_pool("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode));
}
Tensor avg_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor) {
  return averages(
      average_pool("avg_pool2d", self, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor));
}
Tensor avg_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor) {
  return averages(
      average_pool("avg_pool3d", self, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor));
}
Tensor _adaptive_avg_pool2d(const Tensor& self, IntSpan output_size) {
  return averages(adaptive_pool("adaptive_avg_pool2d", self, 2, output_size, true));
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntSpan output_size) {
  return averages(adaptive_pool("adaptive_avg_pool3d", self, 3, output_size, false));
}
std::array<Tensor, 2> adaptive_max_pool2d(const Tensor& self, IntSpan output_size) {
  return maxima(adaptive_pool("adaptive_max_pool2d", self, 2, output_size, false));
}
std::array<Tensor, 2> adaptive_max_pool3d(const Tensor& self, IntSpan output_size) {
  return maxima(adaptive_pool("adaptive_max_pool3d", self, 3, output_size, false));
}

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward(max_pool("max_pool2d_backward", self, 2, kernel_size, stride, padding, dilation, ceil_mode),
                      grad_output, indices);
}
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward(max_pool("max_pool3d_backward", self, 3, kernel_size, stride, padding, dilation, ceil_mode),
                      grad_output, indices);
}
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  return average_backward(
      average_pool("avg_pool2d_backward", self, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor),
      grad_output);
}
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  return average_backward(
      average_pool("avg_pool3d_backward", self, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor),
      grad_output);
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward(adaptive_gradient("adaptive_avg_pool2d_backward", grad_output, self, 2), grad_output);
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward(adaptive_gradient("adaptive_avg_pool3d_backward", grad_output, self, 3), grad_output);
}
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return max_backward(adaptive_gradient("adaptive_max_pool2d_backward", grad_output, self, 2), grad_output, indices);
}
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return max_backward(adaptive_gradient("adaptive_max_pool3d_backward", grad_output, self, 3), grad_output, indices);
}

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  return unpool("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan output_size, IntSpan stride, IntSpan padding) {
  check_unpool3d(stride, padding);
  return unpool("max_unpool3d", self, indices, output_size, 3);
}

}  // namespace sconce::cuda
