#include "src/cpu/pooling/fractional_pooling.h"

#include <limits>

#include "sconce/check.h"
#include "src/cpu/pooling/plane_scatter.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// Where window `o` of an axis begins. Every step in T, as ATen rounds.
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

FractionalAxes fractional_axes(std::string_view name, const Tensor& self, IntSpan kernel_size, IntSpan output_size,
                               int dims) {
  const auto n = static_cast<size_t>(dims);
  SCONCE_CHECK(kernel_size.size() == n && output_size.size() == n, kInvalidArgument, name,
               ": kernel_size and output_size must hold ", dims, " numbers");
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": Expected ", dims + 1,
               "D or ", dims + 2, "D tensor, but got: ", to_string(self.sizes()));
  for (int64_t d = 1; d < self.dim(); ++d)
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, name,
                 ": Expected input to have non-zero size for non-batch dimensions, but got ", to_string(self.sizes()));
  FractionalAxes axes;
  for (int d = 0; d < dims; ++d) {
    const auto k = static_cast<size_t>(d);
    axes[static_cast<size_t>(3 - dims + d)] = {self.size(self.dim() - dims + d), output_size[k], kernel_size[k]};
    SCONCE_CHECK(output_size[k] > 0 && kernel_size[k] > 0, kInvalidArgument, name, ": kernel_size ",
                 to_string(kernel_size), " and output_size ", to_string(output_size), " must be positive");
    SCONCE_CHECK(output_size[k] + kernel_size[k] - 1 <= self.size(self.dim() - dims + d), kInvalidArgument, name,
                 ": pool size ", kernel_size[k], " too large relative to input size ",
                 self.size(self.dim() - dims + d));
  }
  return axes;
}

Shape fractional_sizes(const Tensor& self, IntSpan output_size) {
  Shape sizes(self.sizes());
  for (size_t d = 0; d < output_size.size(); ++d)
    sizes[sizes.rank() - static_cast<int>(output_size.size() - d)] = output_size[d];
  return sizes;
}

void check_fractional_samples(std::string_view name, const Tensor& self, const Tensor& random_samples, int dims) {
  const Planes planes = planes_of(self.sizes(), dims);
  SCONCE_CHECK(random_samples.dtype() == self.dtype(), kInvalidArgument, name,
               ": Expect _random_samples to have the same dtype as input");
  SCONCE_CHECK(random_samples.dim() == 3 && random_samples.size(2) == dims &&
                   random_samples.size(0) * random_samples.size(1) >= planes.count,
               kInvalidArgument, name, ": _random_samples of sizes ", to_string(random_samples.sizes()),
               " do not fit an input of ", to_string(self.sizes()));
}

Shape check_fractional_gradient(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                IntSpan output_size, const Tensor& indices, int dims) {
  SCONCE_CHECK(output_size.size() == static_cast<size_t>(dims) && (self.dim() == dims + 1 || self.dim() == dims + 2),
               kInvalidArgument, name, ": output_size ", to_string(output_size), " does not fit an input of ",
               to_string(self.sizes()));
  const Shape sizes = fractional_sizes(self, output_size);
  for (const Tensor* t : {&grad_output, &indices})
    SCONCE_CHECK(std::equal(t->sizes().begin(), t->sizes().end(), IntSpan(sizes).begin(), IntSpan(sizes).end()),
                 kInvalidArgument, name, ": expected sizes ", to_string(sizes), ", got ", to_string(t->sizes()));
  SCONCE_CHECK(indices.dtype() == DType::kInt64 && grad_output.dtype() == self.dtype(), kInvalidArgument, name,
               ": indices must be int64 and grad_output ", dtype_name(self.dtype()));
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  return sizes;
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
  return fractional_backward("fractional_max_pool2d_backward", grad_output, self, output_size, indices, 2);
}
Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntSpan, IntSpan output_size,
                                      const Tensor& indices) {
  return fractional_backward("fractional_max_pool3d_backward", grad_output, self, output_size, indices, 3);
}

}  // namespace sconce::cpu
