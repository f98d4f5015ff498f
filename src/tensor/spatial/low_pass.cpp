#include "src/tensor/spatial/low_pass.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"

namespace sconce {
namespace {

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

}  // namespace

const char* low_pass_name(LowPass filter) noexcept { return filter_of(filter).name; }

LineWindows low_pass_windows(LowPass filter, DType dtype, int64_t from, int64_t to, bool align_corners,
                             OptScale scale) {
  const Filter& shape = filter_of(filter);
  return dtype == DType::kFloat64 ? make_axis<double>(shape, from, to, align_corners, scale)
                                  : make_axis<float>(shape, from, to, align_corners, scale);
}

void check_low_pass(LowPass filter, const Tensor& tensor, IntSpan size) {
  const char* const name = low_pass_name(filter);
  SCONCE_CHECK(size.size() == 2, kInvalidArgument, name, ": It is expected output_size equals to 2, but got size ",
               size.size());
  SCONCE_CHECK(tensor.dim() == 4, kInvalidArgument, name,
               ": Non-empty 4D data tensor expected but got a tensor with sizes ", to_string(tensor.sizes()));
  SCONCE_CHECK(size[0] > 0 && size[1] > 0 && tensor.size(1) > 0 && tensor.size(2) > 0 && tensor.size(3) > 0,
               kInvalidArgument, name, ": Input and output sizes should be greater than 0, but got input ",
               to_string(tensor.sizes()), " and output ", to_string(size));
}

void check_low_pass_gradient(LowPass filter, const Tensor& grad, IntSpan size, IntSpan input_size) {
  check_low_pass(filter, grad, size);
  const char* const name = low_pass_name(filter);
  SCONCE_CHECK(input_size.size() == 4, kInvalidArgument, name,
               "_backward: It is expected input_size equals to 4, but got size ", input_size.size());
  SCONCE_CHECK(grad.size(0) == input_size[0] && grad.size(1) == input_size[1] && grad.size(2) == size[0] &&
                   grad.size(3) == size[1],
               kInvalidArgument, name, "_backward: Expected grad_output to have the sizes of the output, got ",
               to_string(grad.sizes()));
}

}  // namespace sconce
