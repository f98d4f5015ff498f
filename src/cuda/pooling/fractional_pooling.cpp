// Maxima over windows at random places, and their gradients, which are summed in any order. Match
// aten::fractional_max_pool2d, fractional_max_pool3d and their gradients (torch 2.15, CUDA).
#include "src/cuda/pooling/pooling_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/fractional_axes.h"

namespace sconce::cuda {
namespace {

std::array<Tensor, 2> fractional_pool(const char* name, const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                                      const Tensor& random_samples, int dims) {
  const FractionalAxes axes = fractional_axes(name, self, kernel_size, output_size, dims);
  check_fractional_samples(name, self, random_samples, dims);
  const DeviceScope scope(self.device());
  const Shape sizes = fractional_sizes(self, output_size);
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
  const Shape sizes = check_fractional_gradient(name, grad_output, self, output_size, indices, dims);
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
