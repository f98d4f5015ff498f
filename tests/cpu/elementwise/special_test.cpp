#include "src/cpu/elementwise/special.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/tensor/copy.h"
#include "src/tensor/fill.h"

using namespace sconce;

namespace {

// Kernels compute float32 from tables and short series and float64 from the full functions, so the two can be compared.
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

namespace {

Tensor of_numbers(std::initializer_list<double> numbers, DType dtype) {
  const auto count = static_cast<int64_t>(numbers.size());
  Tensor wide = Tensor::empty(IntSpan(&count, 1), DType::kFloat64);
  std::copy(numbers.begin(), numbers.end(), wide.data_as<double>());
  return to_dtype(wide, dtype);
}

}  // namespace

// A table's error is relative to the function's largest values. Next to its zeros, results must still be right relative
// to themselves.
TEST_CASE("special functions: single precision agrees with double next to zeros, as a share of the result") {
  const auto check = [](const char* name, Tensor (*function)(const Tensor&), const Tensor& single) {
    CAPTURE(name);
    const Tensor got = function(single), expected = function(to_dtype(single, DType::kFloat64));
    for (int64_t i = 0; i < got.numel(); ++i) {
      const double a = static_cast<double>(got.data_as<float>()[i]), b = expected.data_as<double>()[i];
      CAPTURE(b);
      CHECK(std::fabs(a - b) <= 1e-6 * std::fabs(b));
    }
  };
  const Tensor small =
      of_numbers({0.0, 1e-30, -1e-20, 1e-10, -1e-7, 1e-5, 1e-3, -0.01, 0.1, 0.24, 0.26, -0.3}, DType::kFloat32);
  check("i1e", cpu::special_i1e, small);
  check("bessel_j1", cpu::special_bessel_j1, small);
  check("ndtri", cpu::special_ndtri,
        of_numbers({0.5, 0.5 + 0x1p-24, 0.5 - 0x1p-20, 0.5001, 0.49, 0.51, 0.515625, 0.52}, DType::kFloat32));
  check("igammac of small orders", of_order<cpu::igammac, 0>, of_numbers({0.3, 0.7, 1.0, 1.2, 2.5}, DType::kFloat32));
  check(
      "igammac of very small orders",
      [](const Tensor& x) {
        Tensor order = Tensor::empty({}, x.dtype());
        fill(order, 0x1p-10);
        return cpu::igammac(order, x);
      },
      of_numbers({0.3, 0.7, 0.9, 1.0, 1.5}, DType::kFloat32));
}

TEST_CASE("special_erfcx: double precision to a few units, beside a continued fraction in long double") {
  for (double x = 2; x < 60; x += 0.37) {
    long double fraction = 0;
    for (int k = 2000; k > 0; --k) fraction = k / 2.0L / (static_cast<long double>(x) + fraction);
    const long double exact = 1 / (std::sqrt(M_PIl) * (static_cast<long double>(x) + fraction));
    const Tensor got = cpu::special_erfcx(of_numbers({x}, DType::kFloat64));
    CAPTURE(x);
    CHECK(std::fabs(static_cast<double>(*got.data_as<double>() / exact - 1)) < 2e-15);
  }
  const Tensor ends = cpu::special_erfcx(of_numbers({-INFINITY, INFINITY, -30}, DType::kFloat64));
  CHECK(ends.data_as<double>()[0] == INFINITY);
  CHECK(ends.data_as<double>()[1] == 0);
  CHECK(ends.data_as<double>()[2] == INFINITY);
}

TEST_CASE("digamma: double precision between its poles, beside a recurrence in long double") {
  for (double x = -12.97; x < -0.02; x += 0.043) {
    // The recurrence shifts the argument to 40 or more, where the asymptotic series converges quickly.
    long double z = x, steps = 0;
    for (; z < 40; z += 1) steps += 1 / z;
    const long double r = 1 / (z * z);
    const long double series =
        std::log(z) - 1 / (2 * z) - r * (1.0L / 12 - r * (1.0L / 120 - r * (1.0L / 252 - r * (1.0L / 240))));
    const auto exact = static_cast<double>(series - steps);
    const double got = *cpu::digamma(of_numbers({x}, DType::kFloat64)).data_as<double>();
    CAPTURE(x);
    CHECK(std::fabs(got - exact) <= 4e-15 * (std::fabs(exact) + 8));
  }
}
