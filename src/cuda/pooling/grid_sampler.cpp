// Sampling at given places, and its gradients. Match aten::grid_sampler_3d, its gradient and grid_sampler_2d's
// (torch 2.15, CUDA). Half types compute in float32 and round once. The gradient by input is summed in any order, as in
// PyTorch.
#include "src/cuda/pooling/resample_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/grid_geometry.h"

namespace sconce::cuda {
namespace {

std::array<Tensor, 2> grid_slopes(const char* name, const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                  int64_t interpolation, int64_t padding, bool align_corners,
                                  std::span<const int32_t> output_mask, int dims) {
  GridGeometry geometry = grid_geometry(name, input, grid, interpolation, padding, align_corners, dims);
  if (geometry.interpolation != GridInterpolation::kCubic) geometry.nan = GridNan::kOutside;
  const Shape sizes = grid_sampled_sizes(input, grid);
  check_grid_gradient(name, grad_output, input, sizes, output_mask);
  const DeviceScope scope(input.device());
  const DType dtype = input.dtype();
  Tensor by_input;
  if (output_mask[0]) by_input = zeros(input.sizes(), summed_dtype(dtype), input.device());
  Tensor by_grid = Tensor::empty(grid.sizes(), dtype, input.device());
  const Tensor grads = cuda::contiguous(grad_output), in = cuda::contiguous(input), places = cuda::contiguous(grid);
  check_launch(name,
               launch_grid_slopes(geometry, static_cast<int>(dtype), grads.data(), in.data(), places.data(),
                                  by_input.defined() ? by_input.data() : nullptr, by_grid.data(), current_stream()),
               dtype);
  return {by_input.defined() ? converted(by_input, dtype) : Tensor(), by_grid};
}

}  // namespace

Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  constexpr const char* kName = "grid_sampler_3d";
  const GridGeometry geometry = grid_geometry(kName, input, grid, interpolation_mode, padding_mode, align_corners, 3);
  const DeviceScope scope(input.device());
  Tensor out = Tensor::empty(grid_sampled_sizes(input, grid), input.dtype(), input.device());
  const Tensor in = cuda::contiguous(input), places = cuda::contiguous(grid);
  check_launch(kName,
               launch_grid_sample(geometry, static_cast<int>(input.dtype()), in.data(), places.data(), out.data(),
                                  current_stream()),
               input.dtype());
  return out;
}
std::array<Tensor, 2> grid_sampler_2d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                               std::span<const int32_t> output_mask) {
  return grid_slopes("grid_sampler_2d_backward", grad_output, input, grid, interpolation_mode, padding_mode,
                     align_corners, output_mask, 2);
}
std::array<Tensor, 2> grid_sampler_3d_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                               std::span<const int32_t> output_mask) {
  return grid_slopes("grid_sampler_3d_backward", grad_output, input, grid, interpolation_mode, padding_mode,
                     align_corners, output_mask, 3);
}

}  // namespace sconce::cuda
