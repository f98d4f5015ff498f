#include "src/cpu/pooling/resample_antialias.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/pooling/resample_lines.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

using OptScale = std::optional<double>;

struct Filter {
  const char* name;
  int width;  // of the filter at scale 1
  double (*weight)(double x);
};

double triangle(double x) {
  x = std::fabs(x);
  return x < 1 ? 1 - x : 0;
}
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
double sinc(double x) { return x == 0 ? 1 : std::sin(M_PI * x) / (M_PI * x); }
double lanczos(double x) { return x > -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

constexpr Filter kBilinear{"_upsample_bilinear2d_aa", 2, triangle};
constexpr Filter kBicubic{"_upsample_bicubic2d_aa", 4, cubic};
constexpr Filter kLanczos{"_upsample_lanczos2d_aa", 6, lanczos};

const Filter& filter_of(LowPass filter) {
  return filter == LowPass::kBilinear ? kBilinear : filter == LowPass::kBicubic ? kBicubic : kLanczos;
}

// Positions in the element type, as ATen computes them.
template <class Real>
LineWindows make_axis(const Filter& filter, int64_t from, int64_t to, bool align_corners, OptScale scale) {
  Real ratio;
  if (align_corners)
    ratio = to > 1 ? static_cast<Real>(from - 1) / static_cast<Real>(to - 1) : Real(0);
  else
    ratio = scale && *scale > 0 ? static_cast<Real>(1.0 / *scale) : static_cast<Real>(from) / static_cast<Real>(to);
  const Real half = static_cast<Real>(filter.width) * Real(0.5);
  const Real support = ratio >= Real(1) ? half * ratio : half, inverse = ratio >= Real(1) ? Real(1) / ratio : Real(1);
  LineWindows axis;
  axis.width = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  axis.weights.assign(static_cast<size_t>(to * axis.width), 0.0);
  for (int64_t i = 0; i < to; ++i) {
    const Real centre = ratio * (static_cast<Real>(i) + Real(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + Real(0.5)), 0);
    const int64_t count = std::clamp<int64_t>(
        std::min<int64_t>(static_cast<int64_t>(centre + support + Real(0.5)), from) - first, 0, axis.width);
    axis.windows.push_back({first, count});
    double* const weights = axis.weights.data() + i * axis.width;
    Real total = 0;
    for (int64_t j = 0; j < count; ++j) {
      const auto weight =
          static_cast<Real>(filter.weight((static_cast<Real>(j + first) - centre + Real(0.5)) * inverse));
      weights[j] = weight;
      total += weight;
    }
    if (total != Real(0))
      for (int64_t j = 0; j < count; ++j) weights[j] = static_cast<Real>(weights[j]) / total;
  }
  return axis;
}

struct Images {
  int64_t count, h, w;
};
Images check_planes(const Filter& filter, const Tensor& tensor, IntSpan size) {
  SCONCE_CHECK(size.size() == 2, kInvalidArgument, filter.name,
               ": It is expected output_size equals to 2, but got size ", size.size());
  SCONCE_CHECK(tensor.dim() == 4, kInvalidArgument, filter.name,
               ": Non-empty 4D data tensor expected but got a tensor with sizes ", to_string(tensor.sizes()));
  SCONCE_CHECK(size[0] > 0 && size[1] > 0 && tensor.size(1) > 0 && tensor.size(2) > 0 && tensor.size(3) > 0,
               kInvalidArgument, filter.name, ": Input and output sizes should be greater than 0, but got input ",
               to_string(tensor.sizes()), " and output ", to_string(size));
  return {tensor.size(0) * tensor.size(1), tensor.size(2), tensor.size(3)};
}

Images check_gradient(const Filter& filter, const Tensor& grad, IntSpan size, IntSpan input_size) {
  const Images planes = check_planes(filter, grad, size);
  SCONCE_CHECK(input_size.size() == 4, kInvalidArgument, filter.name,
               "_backward: It is expected input_size equals to 4, but got size ", input_size.size());
  SCONCE_CHECK(
      grad.size(0) == input_size[0] && grad.size(1) == input_size[1] && planes.h == size[0] && planes.w == size[1],
      kInvalidArgument, filter.name, "_backward: Expected grad_output to have the sizes of the output, got ",
      to_string(grad.sizes()));
  return planes;
}

Tensor upsample(const Filter& filter, const Tensor& self, IntSpan size, bool align_corners, OptScale scales_h,
                OptScale scales_w) {
  const Images planes = check_planes(filter, self, size);
  const DType dtype = self.dtype();
  if (!is_floating(dtype) && dtype != DType::kUInt8) fail_dispatch(dtype, filter.name);
  const Tensor in = contiguous(to_dtype(self, summed_dtype(dtype)));
  // Along the last dimension, then along the other one. A dimension whose size stays is copied, whatever its scale.
  const auto along = [&](const Tensor& from, int64_t dim, OptScale scale) -> Tensor {
    const bool last = dim == 3;
    const int64_t before = from.size(dim), after = size[last ? 1 : 0];
    if (before == after) return from;
    Shape sizes(from.sizes());
    sizes[static_cast<int>(dim)] = after;
    Tensor to = Tensor::empty(sizes, from.dtype());
    const int64_t outer = last ? planes.count * planes.h : planes.count, inner = last ? 1 : size[1];
    if (dtype == DType::kUInt8) {
      const LineWindows axis = make_axis<double>(filter, before, after, align_corners, scale);
      const auto [weights, shift] = fixed_point(axis);
      resample(from.data_as<uint8_t>(), to.data_as<uint8_t>(), outer, before, inner, axis, weights, shift);
    } else {
      dispatch_float_double(from.dtype(), filter.name, [&]<class T>() -> void {
        const LineWindows axis = make_axis<T>(filter, before, after, align_corners, scale);
        const std::vector<T> weights(axis.weights.begin(), axis.weights.end());
        resample(from.data_as<T>(), to.data_as<T>(), outer, before, inner, axis, weights, 0);
      });
    }
    return to;
  };
  Tensor out = along(along(in, 3, scales_w), 2, scales_h);
  if (out.data() == self.data()) out = clone_contiguous(out);
  return in_format(filter.name, out, dtype, suggested_format(self));
}

Tensor upsample_backward(const Filter& filter, const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                         OptScale scales_h, OptScale scales_w) {
  const Images planes = check_gradient(filter, grad, size, input_size);
  const Tensor in = contiguous(grad);
  const int64_t h = input_size[2], w = input_size[3];
  const int64_t between[] = {grad.size(0), grad.size(1), h, size[1]};
  Tensor widened = Tensor::empty(between, in.dtype()), out = Tensor::empty(input_size, in.dtype());
  dispatch_float_double(in.dtype(), filter.name, [&]<class T>() -> void {
    spread(in.data_as<T>(), widened.data_as<T>(), planes.count, h, size[1],
           make_axis<T>(filter, h, size[0], align_corners, scales_h));
    spread(widened.data_as<T>(), out.data_as<T>(), planes.count * h, w, 1,
           make_axis<T>(filter, w, size[1], align_corners, scales_w));
  });
  return in_format(filter.name, out, grad.dtype(),
                   &filter == &kBilinear ? suggested_format(grad) : MemoryFormat::kContiguous);
}

}  // namespace

LineWindows low_pass_windows(LowPass filter, DType dtype, int64_t from, int64_t to, bool align_corners,
                             OptScale scale) {
  const Filter& shape = filter_of(filter);
  return dtype == DType::kFloat64 ? make_axis<double>(shape, from, to, align_corners, scale)
                                  : make_axis<float>(shape, from, to, align_corners, scale);
}
void check_low_pass(LowPass filter, const Tensor& self, IntSpan output_size) {
  check_planes(filter_of(filter), self, output_size);
}
void check_low_pass_gradient(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size) {
  check_gradient(filter_of(filter), grad_output, output_size, input_size);
}

Tensor _upsample_bilinear2d_aa(const Tensor& self, IntSpan size, bool align_corners, OptScale h, OptScale w) {
  return upsample(kBilinear, self, size, align_corners, h, w);
}
Tensor _upsample_bicubic2d_aa(const Tensor& self, IntSpan size, bool align_corners, OptScale h, OptScale w) {
  return upsample(kBicubic, self, size, align_corners, h, w);
}
Tensor _upsample_lanczos2d_aa(const Tensor& self, IntSpan size, bool align_corners, OptScale h, OptScale w) {
  return upsample(kLanczos, self, size, align_corners, h, w);
}
Tensor _upsample_bilinear2d_aa_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                        OptScale h, OptScale w) {
  return upsample_backward(kBilinear, grad, size, input_size, align_corners, h, w);
}
Tensor _upsample_bicubic2d_aa_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                       OptScale h, OptScale w) {
  return upsample_backward(kBicubic, grad, size, input_size, align_corners, h, w);
}
Tensor _upsample_lanczos2d_aa_backward(const Tensor& grad, IntSpan size, IntSpan input_size, bool align_corners,
                                       OptScale h, OptScale w) {
  return upsample_backward(kLanczos, grad, size, input_size, align_corners, h, w);
}

}  // namespace sconce::cpu
