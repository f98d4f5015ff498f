#include "src/cpu/elementwise/functions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "src/cpu/vector/error_function.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("erf: double precision, as PyTorch") { run_kernel("statistics.cases", "erf", cpu::erf); }

TEST_CASE("erf: double precision, beside long double") {
  long double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = i * 6.5e-5;
    const long double exact = std::erf(static_cast<long double>(x));
    const auto rounded = static_cast<double>(exact);
    const double unit = std::nextafter(rounded, 2.0) - rounded;
    worst = std::max(worst, std::fabs(static_cast<long double>(error_function(x)) - exact) / unit);
  }
  CHECK(worst < 1.05L);
}

TEST_CASE("abs: complex numbers beside long double, with every special value, in rows of every length") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMax = std::numeric_limits<float>::max();
  const float kNan = std::nanf("");
  const float special[] = {0.0f,  -0.0f, 1.0f,  -3.5f,     1e-45f,     -1e-38f, 1e-20f,
                           3e20f, kMax,  -kMax, kInfinity, -kInfinity, kNan};
  std::vector<std::complex<float>> all;
  for (const float re : special)
    for (const float im : special) all.emplace_back(re, im);
  for (int i = 0; i < 400; ++i)
    all.emplace_back(std::ldexp(std::sin(static_cast<float>(i * i)), i % 60 - 30), std::cos(static_cast<float>(3 * i)));
  for (int64_t count = 1; count <= static_cast<int64_t>(all.size()); count += count < 40 ? 1 : 97) {
    CAPTURE(count);
    const int64_t first = static_cast<int64_t>(all.size()) - count;
    const Tensor z = Tensor::empty(std::vector<int64_t>{count}, DType::kComplex64);
    std::copy_n(all.begin() + first, count, z.data_as<std::complex<float>>());
    const Tensor found = cpu::abs(z);
    for (int64_t i = 0; i < count; ++i) {
      const std::complex<float> value = z.data_as<std::complex<float>>()[i];
      // libm's: infinite if a part is, whatever the other one is.
      const auto exact = static_cast<float>(
          std::hypot(static_cast<long double>(value.real()), static_cast<long double>(value.imag())));
      const float got = found.data_as<float>()[i];
      CHECK_MESSAGE((got == exact || (std::isnan(got) && std::isnan(exact))), value.real(), " ", value.imag());
    }
  }
}
