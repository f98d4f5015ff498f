#include "src/cpu/pooling/resample_antialias.h"

#include "src/cpu/pooling/resample_lines.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {

Tensor low_pass(LowPass filter, const Tensor& self, IntSpan size, bool align_corners, OptScale scales_h,
                OptScale scales_w) {
  check_low_pass(filter, self, size);
  const char* const name = low_pass_name(filter);
  const int64_t planes = self.size(0) * self.size(1);
  const DType dtype = self.dtype();
  if (!is_floating(dtype) && dtype != DType::kUInt8) fail_dispatch(dtype, name);
  const bool small = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  const Tensor in = contiguous(small ? to_dtype(self, DType::kFloat32) : self);
  // Along the last dimension, then the other one; one of the same size is copied, whatever its scale says.
  const auto along = [&](const Tensor& from, int64_t dim, OptScale scale) -> Tensor {
    const bool last = dim == 3;
    const int64_t before = from.size(dim), after = size[last ? 1 : 0];
    if (before == after) return from;
    Shape sizes(from.sizes());
    sizes[static_cast<int>(dim)] = after;
    Tensor to = Tensor::empty(sizes, from.dtype());
    const int64_t outer = last ? planes * self.size(2) : planes, inner = last ? 1 : size[1];
    if (dtype == DType::kUInt8) {
      const LineWindows axis = low_pass_windows(filter, DType::kFloat64, before, after, align_corners, scale);
      const auto [weights, shift] = fixed_point(axis);
      resample(from.data_as<uint8_t>(), to.data_as<uint8_t>(), outer, before, inner, axis, weights, shift);
    } else {
      dispatch_float_double(from.dtype(), name, [&]<class T>() -> void {
        const LineWindows axis = low_pass_windows(filter, from.dtype(), before, after, align_corners, scale);
        const std::vector<T> weights(axis.weights.begin(), axis.weights.end());
        resample(from.data_as<T>(), to.data_as<T>(), outer, before, inner, axis, weights, 0);
      });
    }
    return to;
  };
  Tensor out = along(along(in, 3, scales_w), 2, scales_h);
  if (out.data() == self.data()) out = clone_contiguous(out);
  return in_format(name, out, dtype, suggested_format(self));
}

Tensor low_pass_backward(LowPass filter, const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                         OptScale scales_h, OptScale scales_w) {
  check_low_pass_gradient(filter, grad, size, input_size);
  const char* const name = low_pass_name(filter);
  const int64_t planes = grad.size(0) * grad.size(1);
  const Tensor in = contiguous(grad);
  const int64_t h = input_size[2], w = input_size[3];
  const int64_t between[] = {grad.size(0), grad.size(1), h, size[1]};
  Tensor widened = Tensor::empty(between, in.dtype()), out = Tensor::empty(input_size, in.dtype());
  dispatch_float_double(in.dtype(), name, [&]<class T>() -> void {
    spread(in.data_as<T>(), widened.data_as<T>(), planes, h, size[1],
           low_pass_windows(filter, in.dtype(), h, size[0], align_corners, scales_h));
    spread(widened.data_as<T>(), out.data_as<T>(), planes * h, w, 1,
           low_pass_windows(filter, in.dtype(), w, size[1], align_corners, scales_w));
  });
  return in_format(name, out, grad.dtype(),
                   filter == LowPass::kBilinear ? suggested_format(grad) : MemoryFormat::kContiguous);
}

}  // namespace sconce::cpu
