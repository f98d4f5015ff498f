#include "src/ops/special.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/ops/copy.h"
#include "src/ops/fill.h"

using namespace sconce;

namespace {

// Results in single precision come from tables and shorter series, those in double from the functions themselves.
void check_agreement(const char* name, Tensor (*function)(const Tensor&), double low, double high) {
  CAPTURE(name);
  constexpr int64_t kCount = 4099;
  Tensor single = Tensor::empty(IntSpan(&kCount, 1), DType::kFloat32);
  for (int64_t i = 0; i < kCount; ++i)
    single.data_as<float>()[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (kCount - 1));
  const Tensor got = function(single), expected = function(to_dtype(single, DType::kFloat64));
  double worst = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double a = static_cast<double>(got.data_as<float>()[i]), b = expected.data_as<double>()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::fabs(a - b) / (std::fabs(b) + 0.1);
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  CHECK(worst < 1e-6);
}

// function(Order + 1/4, x)
template <Tensor (*Function)(const Tensor&, const Tensor&), int Order>
Tensor of_order(const Tensor& x) {
  Tensor order = Tensor::empty({}, x.dtype());
  fill(order, Order + 0.25);
  return Function(order, x);
}

}  // namespace

TEST_CASE("special functions: single precision agrees with double") {
  check_agreement("i0e", cpu::special_i0e, -80, 80);
  check_agreement("i1e", cpu::special_i1e, -80, 80);
  check_agreement("bessel_j0", cpu::special_bessel_j0, -40, 40);
  check_agreement("bessel_j1", cpu::special_bessel_j1, -40, 40);
  check_agreement("bessel_y0", cpu::special_bessel_y0, -1, 40);
  check_agreement("bessel_y1", cpu::special_bessel_y1, -1, 40);
  check_agreement("airy_ai", cpu::special_airy_ai, -15, 8);
  check_agreement("ndtri", cpu::special_ndtri, -0.1, 1.1);
  check_agreement("erfinv", cpu::erfinv, -1.1, 1.1);
  check_agreement("entr", cpu::special_entr, -1, 4);
  check_agreement("spherical_bessel_j0", cpu::special_spherical_bessel_j0, -20, 20);
  check_agreement(
      "polygamma", [](const Tensor& x) { return cpu::polygamma(2, x); }, 0.5, 20);
  check_agreement("digamma", cpu::digamma, -4.9, 40);
  check_agreement("digamma about its zero", cpu::digamma, 1.4616, 1.4617);
  check_agreement(
      "polygamma of negative numbers", [](const Tensor& x) { return cpu::polygamma(3, x); }, -9.9, 0.4);
  check_agreement(
      "polygamma of high order", [](const Tensor& x) { return cpu::polygamma(17, x); }, 0.7, 30);
  check_agreement(
      "polygamma of the highest order in rows", [](const Tensor& x) { return cpu::polygamma(16, x); }, 0.7, 30);
  check_agreement("igamma", of_order<cpu::igamma, 0>, 0, 60);
  check_agreement("igammac", of_order<cpu::igammac, 0>, 0, 60);
  check_agreement("igamma", of_order<cpu::igamma, 1>, 0, 60);
  check_agreement("igamma", of_order<cpu::igamma, 30>, 0, 60);
  check_agreement("igammac", of_order<cpu::igammac, 1>, 0, 60);
  check_agreement("igammac", of_order<cpu::igammac, 30>, 0, 60);
}
