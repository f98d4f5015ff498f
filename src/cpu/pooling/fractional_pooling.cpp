// Fractional max pooling and its gradient: windows whose places are drawn from given random samples.
//
// self [N, C, (D,) H, W], N optional, random_samples [N, C, dims] in [0, 1) of self's dtype (2-D: width, then height;
// 3-D: depth, height, width). Floating dtypes, any strides; results are row-major; indices int64 offsets into a plane,
// which the gradients take as they lie in memory, as ATen's kernels for CPUs do.
// Match aten::fractional_max_pool2d and 3d (torch 2.15, CPU). kInvalidArgument; kUnsupported for dtypes.
#include <limits>

#include "src/cpu/pooling/plane_scatter.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/fractional_axes.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// The beginning of window `o` of an axis. Each step is rounded to T, as in ATen.
template <class T>
int64_t window_begin(const FractionalAxis& axis, T sample, int64_t o) noexcept {
  using C = ComputeType<T>;
  if (o == axis.output - 1) return axis.input - axis.kernel;
  const T alpha(T(static_cast<C>(axis.input - axis.kernel)) / T(static_cast<C>(axis.output - 1)));
  const T shifted(T(static_cast<C>(o)) + sample);
  const int64_t begin = static_cast<int64_t>(T(shifted * alpha)) - static_cast<int64_t>(T(sample * alpha));
  return std::clamp<int64_t>(begin, 0, axis.input - axis.kernel);  // samples outside of [0, 1) stay in bounds
}

template <class T>
void pool_plane(const FractionalAxes& axes, const std::array<T, 3>& samples, const T* in, T* out,
                int64_t* indices) noexcept {
  const auto& [depth, height, width] = axes;
  constexpr int64_t kBlock = 128;  // results of a row at a time
  int64_t begins[kBlock];
  for (int64_t first = 0; first < width.output; first += kBlock) {
    const int64_t count = std::min(kBlock, width.output - first);
    for (int64_t i = 0; i < count; ++i) begins[i] = window_begin(width, samples[2], first + i);
    for (int64_t od = 0; od < depth.output; ++od) {
      const int64_t d = window_begin(depth, samples[0], od);
      for (int64_t oh = 0; oh < height.output; ++oh) {
        const int64_t h = window_begin(height, samples[1], oh), to = (od * height.output + oh) * width.output + first;
        for (int64_t i = 0; i < count; ++i) {
          T best(-std::numeric_limits<ComputeType<T>>::infinity());
          int64_t at = (d * height.input + h) * width.input + begins[i];
          for (int64_t id = d; id < d + depth.kernel; ++id)
            for (int64_t ih = h; ih < h + height.kernel; ++ih) {
              const int64_t row = (id * height.input + ih) * width.input + begins[i];
              for (int64_t k = row; k < row + width.kernel; ++k) {
                const T value = in[k];
                const bool taken = (value > best) | (value != value);  // without a branch: nothing predicts it
                best = taken ? value : best;
                at = taken ? k : at;
              }
            }
          out[to + i] = best;
          indices[to + i] = at;
        }
      }
    }
  }
}

std::array<Tensor, 2> fractional_pool(std::string_view name, const Tensor& self, IntSpan kernel_size,
                                      IntSpan output_size, const Tensor& random_samples, int dims) {
  const FractionalAxes axes = fractional_axes(name, self, kernel_size, output_size, dims);
  const Planes planes = planes_of(self.sizes(), dims);
  check_fractional_samples(name, self, random_samples, dims);
  const Shape sizes = fractional_sizes(self, output_size);
  Tensor out = Tensor::empty(sizes, self.dtype()), indices = Tensor::empty(sizes, DType::kInt64);
  const int64_t out_plane = planes_of(sizes, dims).size;
  const Tensor in = contiguous(self), samples = contiguous(random_samples);
  dispatch_floating(self.dtype(), name, [&]<class T>() {
    for_planes(planes.count, planes.size, [&](int64_t plane) noexcept {
      const T* sample = samples.data_as<T>() + plane * dims;
      const std::array<T, 3> order = dims == 3 ? std::array<T, 3>{sample[0], sample[1], sample[2]}
                                               : std::array<T, 3>{T(0.0f), sample[1], sample[0]};
      pool_plane(axes, order, in.data_as<T>() + plane * planes.size, out.data_as<T>() + plane * out_plane,
                 indices.data_as<int64_t>() + plane * out_plane);
    });
  });
  return {std::move(out), std::move(indices)};
}

// ATen's kernel reads gradients by their strides, but indices in the order of memory, whatever their strides. This does
// the same, so that a model gives the same answer. If that order would lead outside of the storage, where ATen reads
// anything, indices are read by their strides.
Tensor in_memory_order(const Tensor& indices) {
  const Storage& storage = *indices.storage();
  const size_t first = static_cast<size_t>(indices.storage_offset()) * sizeof(int64_t);
  if (storage.bytes() < first + static_cast<size_t>(indices.numel()) * sizeof(int64_t)) return contiguous(indices);
  Shape strides(indices.sizes());
  format_strides("indices", indices.sizes(), MemoryFormat::kContiguous, strides.data());
  return indices.as_strided(indices.sizes(), strides, indices.storage_offset());
}

Tensor fractional_backward(std::string_view name, const Tensor& grad_output, const Tensor& self, IntSpan output_size,
                           const Tensor& indices, int dims) {
  const Shape sizes = check_fractional_gradient(name, grad_output, self, output_size, indices, dims);
  const DType dtype = summed_dtype(self.dtype());
  const Tensor grads = contiguous(to_dtype(grad_output, dtype)), index = in_memory_order(indices);
  Tensor sums = Tensor::empty(self.sizes(), dtype);
  dispatch_float_double(dtype, name, [&]<class T>() {
    scatter_planes<T, true>(name, grads.data_as<T>(), index.data_as<int64_t>(), planes_of(sizes, dims),
                            sums.data_as<T>(), planes_of(self.sizes(), dims).size);
  });
  return in_format(name, sums, self.dtype(), MemoryFormat::kContiguous);
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
  return fractional_backward("fractional_max_pool2d_backward", grad_output, self, output_size, indices, 2);
}
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan output_size,
                                      const Tensor& indices) {
  return fractional_backward("fractional_max_pool3d_backward", grad_output, self, output_size, indices, 3);
}

}  // namespace sconce::cpu
