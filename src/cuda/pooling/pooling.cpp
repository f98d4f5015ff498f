// Pooling over the last two or three dimensions of [N, C, (D,) H, W] (N optional), its gradients, and max unpooling.
// Checks and windows are shared with the CPU (src/cpu/pooling/pooling_plan.h). Match ATen's CUDA kernels (torch 2.15),
// memory formats included. Gradients are summed in a fixed order, except those of fractional pooling.
#include <algorithm>

#include "sconce/check.h"
#include "src/cpu/pooling/fractional_pooling.h"
#include "src/cpu/pooling/pooling_backward.h"
#include "src/cpu/pooling/pooling_plan.h"
#include "src/cuda/pooling/pooling_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"

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

PoolWalk walk_of(const Axes& axes, int dims, const Tensor& whole, const Tensor& pooled, bool channels_last) {
  PoolWalk walk{};
  for (size_t i = 0; i < 3; ++i) {
    const PoolAxis& a = axes[i];
    walk.lines[i] = {a.input, a.output, a.kernel, a.stride, a.padding, a.dilation, a.adaptive};
  }
  walk.batch = whole.dim() == dims + 2 ? whole.size(0) : 1;
  walk.channels = whole.size(whole.dim() - dims - 1);
  five_strides(whole, dims, walk.whole);
  five_strides(pooled, dims, walk.pooled);
  walk.channels_last = channels_last;
  return walk;
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

// The result's format: the input's if it `follows` that, else row-major.
MemoryFormat format_of(const Tensor& self, int dims, bool follows) {
  return follows && self.dim() == dims + 2 ? suggested_format(self) : MemoryFormat::kContiguous;
}

Tensor empty_in(const char* name, IntSpan sizes, DType dtype, Device device, MemoryFormat format) {
  if (!is_last(format)) return Tensor::empty(sizes, dtype, device);
  Shape strides(sizes);
  format_strides(name, sizes, format, strides.data());
  return Tensor::empty_strided(sizes, strides, dtype, device);
}

Shape pooled_sizes(const Tensor& self, const Axes& axes, int dims) {
  Shape sizes(self.sizes());
  for (int i = 0; i < dims; ++i) sizes[sizes.rank() - dims + i] = axes[static_cast<size_t>(3 - dims + i)].output;
  return sizes;
}

std::array<Tensor, 2> maxima(const char* name, const Tensor& self, const Axes& axes, int dims, bool follows) {
  const DeviceScope scope(self.device());
  const MemoryFormat format = format_of(self, dims, follows);
  const Shape sizes = pooled_sizes(self, axes, dims);
  std::array<Tensor, 2> out{empty_in(name, sizes, self.dtype(), self.device(), format),
                            empty_in(name, sizes, DType::kInt64, self.device(), format)};
  if (out[0].numel() == 0) return out;
  PoolWalk walk = walk_of(axes, dims, self, out[0], is_last(format));
  five_strides(out[1], dims, walk.indices);
  check_launch(name,
               launch_max_pool(walk, static_cast<int>(self.dtype()), self.data(), out[0].data(),
                               out[1].data_as<int64_t>(), current_stream()),
               self.dtype());
  return out;
}

Tensor averages(const char* name, const Tensor& self, const Axes& axes, int dims, bool follows, bool include_padding,
                int64_t divisor) {
  const DeviceScope scope(self.device());
  const MemoryFormat format = format_of(self, dims, follows);
  Tensor out = empty_in(name, pooled_sizes(self, axes, dims), self.dtype(), self.device(), format);
  if (out.numel() == 0) return out;
  check_launch(name,
               launch_average_pool(walk_of(axes, dims, self, out, is_last(format)), static_cast<int>(self.dtype()),
                                   self.data(), out.data(), include_padding, divisor, current_stream()),
               self.dtype());
  return out;
}

void check_pooled(const char* name, const Tensor& given, const Tensor& self, const Axes& axes, int dims) {
  const Shape sizes = pooled_sizes(self, axes, dims);
  SCONCE_CHECK(std::equal(given.sizes().begin(), given.sizes().end(), IntSpan(sizes).begin(), IntSpan(sizes).end()),
               kInvalidArgument, name, ": grad_output or indices of sizes ", to_string(given.sizes()),
               " do not fit an input of ", to_string(self.sizes()));
}

Tensor max_backward(const char* name, const Tensor& grad, const Tensor& self, const Axes& axes, int dims,
                    const Tensor& indices, bool follows) {
  cpu::check_gradient_dtype(name, grad, self);
  check_pooled(name, grad, self, axes, dims);
  check_pooled(name, indices, self, axes, dims);
  SCONCE_CHECK(indices.dtype() == DType::kInt64, kInvalidArgument, name,
               ": expected dtype int64 for `indices` but got ", dtype_name(indices.dtype()));
  const DeviceScope scope(self.device());
  const MemoryFormat format = format_of(self, dims, follows);
  Tensor out = empty_in(name, self.sizes(), self.dtype(), self.device(), format);
  if (out.numel() == 0) return out;
  PoolWalk walk = walk_of(axes, dims, out, grad, is_last(format));
  five_strides(indices, dims, walk.indices);
  // ATen's 3d kernel adds wherever indices say. Its 2d kernel asks only the windows that reach an element.
  walk.stray_indices = dims == 3 && std::ranges::any_of(axes, has_empty_windows);
  check_launch(name,
               launch_max_pool_backward(walk, static_cast<int>(self.dtype()), grad.data(), indices.data_as<int64_t>(),
                                        out.data(), current_stream()),
               self.dtype());
  return out;
}

Tensor average_backward(const char* name, const Tensor& grad, const Tensor& self, const Axes& axes, int dims,
                        bool follows, bool include_padding, int64_t divisor) {
  cpu::check_gradient_dtype(name, grad, self);
  check_pooled(name, grad, self, axes, dims);
  const DeviceScope scope(self.device());
  const MemoryFormat format = format_of(self, dims, follows);
  Tensor out = empty_in(name, self.sizes(), self.dtype(), self.device(), format);
  if (out.numel() == 0) return out;
  check_launch(
      name,
      launch_average_pool_backward(walk_of(axes, dims, out, grad, is_last(format)), static_cast<int>(self.dtype()),
                                   grad.data(), out.data(), include_padding, divisor, current_stream()),
      self.dtype());
  return out;
}

Axes average_axes(const char* name, const Tensor& self, int dims, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                  bool ceil_mode, std::optional<int64_t> divisor) {
  SCONCE_CHECK(!divisor || *divisor != 0, kInvalidArgument, name, ": divisor must be not zero");
  const int64_t one = 1;
  return pool_axes(name, self, dims, kernel_size, stride, padding, IntSpan(&one, 1), ceil_mode);
}

Axes axes_of_gradient(const char* name, const Tensor& grad, const Tensor& self, int dims) {
  SCONCE_CHECK(grad.dim() == self.dim() && self.dim() > dims, kInvalidArgument, name, ": grad_output ", describe(grad),
               " does not fit an input ", describe(self));
  for (int64_t d = 1; d < grad.dim(); ++d)
    SCONCE_CHECK(grad.size(d) > 0, kInvalidArgument, name,
                 ": Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes ",
                 to_string(grad.sizes()));
  return adaptive_axes(name, self, dims, grad.sizes().last(static_cast<size_t>(dims)), true);
}

Tensor unpool(const char* name, const Tensor& self, const Tensor& indices, IntSpan output_size, int dims) {
  SCONCE_CHECK(indices.dtype() == DType::kInt64, kInvalidArgument, name,
               ": elements in indices should be type int64 but got: ", dtype_name(indices.dtype()));
  SCONCE_CHECK(output_size.size() == static_cast<size_t>(dims) && (self.dim() == dims + 1 || self.dim() == dims + 2) &&
                   std::equal(self.sizes().begin(), self.sizes().end(), indices.sizes().begin(), indices.sizes().end()),
               kInvalidArgument, name, ": output_size ", to_string(output_size), ", input ", describe(self),
               " and indices ", describe(indices), " do not fit");
  SCONCE_CHECK(self.itemsize() <= 8, kUnsupported, name, ": not implemented for '", dtype_name(self.dtype()),
               "' on CUDA");
  Shape sizes(self.sizes());
  int64_t planes = 1, plane = 1, out_plane = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool pooled = d >= self.dim() - dims;
    const int64_t size = pooled ? output_size[static_cast<size_t>(d - (self.dim() - dims))] : self.size(d);
    SCONCE_CHECK(size >= 0, kInvalidArgument, name, ": output_size ", to_string(output_size), " is negative");
    SCONCE_CHECK(d == 0 || self.size(d) > 0, kInvalidArgument, name,
                 ": Expected input to have non-zero size for non-batch dimensions, but got ", to_string(self.sizes()));
    sizes[static_cast<int>(d)] = size;
    (pooled ? plane : planes) *= self.size(d);
    if (pooled) out_plane *= size;
  }
  const DeviceScope scope(self.device());
  // Always row-major, as in ATen.
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  fill_zero(out);
  if (self.numel() > 0) {
    launch_unpool(static_cast<int>(self.itemsize()), cuda::contiguous(self).data(),
                  cuda::contiguous(indices).data_as<int64_t>(), out.data(), planes, plane, out_plane,
                  noted_by_kernels(), static_cast<int>(Noted::kScatter), current_stream());
    SCONCE_CUDA(cudaGetLastError());
    check_noted();
  }
  return out;
}

std::array<Tensor, 2> fractional_pool(const char* name, const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                      const Tensor& random_samples, int dims) {
  const cpu::FractionalAxes axes = cpu::fractional_axes(name, self, kernel_size, output_size, dims);
  cpu::check_fractional_samples(name, self, random_samples, dims);
  const DeviceScope scope(self.device());
  const Shape sizes = cpu::fractional_sizes(self, output_size);
  std::array<Tensor, 2> out{Tensor::empty(sizes, self.dtype(), self.device()),
                            Tensor::empty(sizes, DType::kInt64, self.device())};
  if (out[0].numel() == 0) return out;
  FractionalWalk walk{};
  walk.dims = dims;
  walk.planes = self.numel() / (axes[0].input * axes[1].input * axes[2].input);
  for (size_t i = 0; i < 3; ++i) {
    walk.input[i] = axes[i].input;
    walk.output[i] = axes[i].output;
    walk.kernel[i] = axes[i].kernel;
  }
  const Tensor in = cuda::contiguous(self), samples = cuda::contiguous(random_samples);
  check_launch(name,
               launch_fractional_pool(walk, static_cast<int>(self.dtype()), in.data(), samples.data(), out[0].data(),
                                      out[1].data_as<int64_t>(), current_stream()),
               self.dtype());
  return out;
}

// Adds the gradients at their indices in each plane.
Tensor fractional_gradient(const char* name, const Tensor& grad_output, const Tensor& self, IntSpan output_size,
                           const Tensor& indices, int dims) {
  const Shape sizes = cpu::check_fractional_gradient(name, grad_output, self, output_size, indices, dims);
  const DeviceScope scope(self.device());
  const Planes whole = planes_of(self.sizes(), dims), pooled = planes_of(sizes, dims);
  const DType dtype = summed_dtype(self.dtype());
  const int64_t from[] = {pooled.count, pooled.size}, from_strides[] = {pooled.size, 1};
  const int64_t to[] = {whole.count, whole.size}, to_strides[] = {whole.size, 1};
  Tensor sums = zeros(self.sizes(), dtype, self.device());
  if (grad_output.numel() > 0) {
    const Tensor grads = cuda::contiguous(converted(grad_output, dtype)), places = cuda::contiguous(indices);
    Tensor planes = sums.as_strided(to, to_strides, 0);
    scatter_reduce_two_out(planes, planes, 1, places.as_strided(from, from_strides, places.storage_offset()),
                           grads.as_strided(from, from_strides, grads.storage_offset()), "sum", true);
  }
  return converted(sums, self.dtype());
}

}  // namespace

std::array<Tensor, 2> max_pool2d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maxima("max_pool2d", self, pool_axes("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode),
                2, true);
}
std::array<Tensor, 2> max_pool3d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maxima("max_pool3d", self, pool_axes("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode),
                3, true);
}
Tensor avg_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor) {
  return averages("avg_pool2d", self,
                  average_axes("avg_pool2d", self, 2, kernel_size, stride, padding, ceil_mode, divisor), 2, true,
                  count_include_pad, divisor.value_or(0));
}
Tensor avg_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor) {
  return averages("avg_pool3d", self,
                  average_axes("avg_pool3d", self, 3, kernel_size, stride, padding, ceil_mode, divisor), 3, false,
                  count_include_pad, divisor.value_or(0));
}
Tensor _adaptive_avg_pool2d(const Tensor& self, IntSpan output_size) {
  return averages("adaptive_avg_pool2d", self, adaptive_axes("adaptive_avg_pool2d", self, 2, output_size, true), 2,
                  true, false, 0);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntSpan output_size) {
  return averages("adaptive_avg_pool3d", self, adaptive_axes("adaptive_avg_pool3d", self, 3, output_size, false), 3,
                  false, false, 0);
}
std::array<Tensor, 2> adaptive_max_pool2d(const Tensor& self, IntSpan output_size) {
  return maxima("adaptive_max_pool2d", self, adaptive_axes("adaptive_max_pool2d", self, 2, output_size, false), 2,
                true);
}
std::array<Tensor, 2> adaptive_max_pool3d(const Tensor& self, IntSpan output_size) {
  return maxima("adaptive_max_pool3d", self, adaptive_axes("adaptive_max_pool3d", self, 3, output_size, false), 3,
                false);
}

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward("max_pool2d_backward", grad_output, self,
                      pool_axes("max_pool2d_backward", self, 2, kernel_size, stride, padding, dilation, ceil_mode), 2,
                      indices, true);
}
Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size,
                                        IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode,
                                        const Tensor& indices) {
  return max_backward("max_pool3d_backward", grad_output, self,
                      pool_axes("max_pool3d_backward", self, 3, kernel_size, stride, padding, dilation, ceil_mode), 3,
                      indices, true);
}
Tensor avg_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  return average_backward(
      "avg_pool2d_backward", grad_output, self,
      average_axes("avg_pool2d_backward", self, 2, kernel_size, stride, padding, ceil_mode, divisor), 2, true,
      count_include_pad, divisor.value_or(0));
}
Tensor avg_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan kernel_size, IntSpan stride,
                           IntSpan padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  return average_backward(
      "avg_pool3d_backward", grad_output, self,
      average_axes("avg_pool3d_backward", self, 3, kernel_size, stride, padding, ceil_mode, divisor), 3, false,
      count_include_pad, divisor.value_or(0));
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward("adaptive_avg_pool2d_backward", grad_output, self,
                          axes_of_gradient("adaptive_avg_pool2d_backward", grad_output, self, 2), 2, true, false, 0);
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward("adaptive_avg_pool3d_backward", grad_output, self,
                          axes_of_gradient("adaptive_avg_pool3d_backward", grad_output, self, 3), 3, false, false, 0);
}
Tensor adaptive_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return max_backward("adaptive_max_pool2d_backward", grad_output, self,
                      axes_of_gradient("adaptive_max_pool2d_backward", grad_output, self, 2), 2, indices, true);
}
Tensor adaptive_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices) {
  return max_backward("adaptive_max_pool3d_backward", grad_output, self,
                      axes_of_gradient("adaptive_max_pool3d_backward", grad_output, self, 3), 3, indices, false);
}

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntSpan output_size) {
  return unpool("max_unpool2d", self, indices, output_size, 2);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntSpan output_size, IntSpan stride, IntSpan padding) {
  cpu::check_unpool3d(stride, padding);
  return unpool("max_unpool3d", self, indices, output_size, 3);
}

std::array<Tensor, 2> fractional_max_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                            const Tensor& random_samples) {
  return fractional_pool("fractional_max_pool2d", self, kernel_size, output_size, random_samples, 2);
}
std::array<Tensor, 2> fractional_max_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                            const Tensor& random_samples) {
  return fractional_pool("fractional_max_pool3d", self, kernel_size, output_size, random_samples, 3);
}
Tensor fractional_max_pool2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan output_size,
                                      const Tensor& indices) {
  return fractional_gradient("fractional_max_pool2d_backward", grad_output, self, output_size, indices, 2);
}
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan output_size,
                                      const Tensor& indices) {
  return fractional_gradient("fractional_max_pool3d_backward", grad_output, self, output_size, indices, 3);
}

}  // namespace sconce::cuda
