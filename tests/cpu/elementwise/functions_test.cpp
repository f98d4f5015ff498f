#include "src/cpu/elementwise/functions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/cpu/vector/error_function.h"
#include "src/cpu/vector/logarithms.h"
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

namespace {

struct ShortFunction {
  const char* name;
  Tensor (*of)(const Tensor&);
  double (*exact)(double);
  float from, to;  // what is drawn; its limits lie within
};
const ShortFunction kShort[] = {
    {"acos", cpu::acos, std::acos, -1.1f, 1.1f}, {"asin", cpu::asin, std::asin, -1.1f, 1.1f},
    {"atan", cpu::atan, std::atan, -50, 50},     {"cos", cpu::cos, std::cos, -2e5f, 2e5f},
    {"cos", cpu::cos, std::cos, -7, 7},          {"exp", cpu::exp, std::exp, -110, 95},
    {"log", cpu::log, std::log, -0.1f, 3},       {"log10", cpu::log10, std::log10, -0.1f, 300},
    {"log1p", cpu::log1p, std::log1p, -1.1f, 3}, {"log1p", cpu::log1p, std::log1p, -1, 1e12f},
    {"log2", cpu::log2, std::log2, -0.1f, 3},    {"sin", cpu::sin, std::sin, -2e5f, 2e5f},
    {"sin", cpu::sin, std::sin, -7, 7},          {"tan", cpu::tan, std::tan, -2e5f, 2e5f},
    {"tan", cpu::tan, std::tan, -2, 2},          {"tanh", cpu::tanh, std::tanh, -11, 11},
};
const float kSpecial[] = {0.0f,
                          -0.0f,
                          1.0f,
                          -1.0f,
                          0.5f,
                          -0.5f,
                          1e-45f,
                          -1e-45f,
                          1.17549435e-38f,
                          1.1e-38f,
                          1e5f,
                          1.00001e5f,
                          87.0f,
                          -87.0f,
                          88.8f,
                          -104.0f,
                          3e38f,
                          3.40282347e38f,
                          -3.40282347e38f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};

Tensor floats_of(const std::vector<float>& values) {
  Tensor t = Tensor::empty(std::vector<int64_t>{static_cast<int64_t>(values.size())}, DType::kFloat32);
  std::copy(values.begin(), values.end(), t.data_as<float>());
  return t;
}

}  // namespace

TEST_CASE("short functions: within 2 units of float32, special values and their signs exactly") {
  for (const ShortFunction& f : kShort) {
    CAPTURE(f.name);
    std::vector<float> x(std::begin(kSpecial), std::end(kSpecial));
    constexpr int kCount = 20011;
    for (int i = 0; i < kCount; ++i) x.push_back(f.from + (f.to - f.from) * (static_cast<float>(i) + 0.37f) / kCount);
    const Tensor found = f.of(floats_of(x));
    for (size_t i = 0; i < x.size(); ++i) {
      CAPTURE(x[i]);
      const double exact = f.exact(static_cast<double>(x[i]));
      const auto rounded = static_cast<float>(exact);
      const float got = found.data_as<float>()[i];
      if (std::isnan(rounded) || std::isinf(rounded) || rounded == 0) {
        CHECK((std::isnan(rounded) ? std::isnan(got) : got == rounded));
        if (rounded == 0) CHECK(std::signbit(got) == std::signbit(rounded));
        continue;
      }
      int power = 0;
      std::frexp(rounded, &power);
      const double unit = std::ldexp(1.0, std::max(power, -125) - 24);
      CHECK(std::fabs(static_cast<double>(got) - exact) <= 2 * unit);
    }
  }
}

TEST_CASE("logarithm1p: NaN stays NaN, for callers without a check of their own") {
  for (const uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7FFFFFFFu, 0x7F800001u})
    CHECK(std::isnan(logarithm1p(std::bit_cast<float>(bits))));
}

TEST_CASE("short functions: an element does not depend on those beside it") {
  for (const ShortFunction& f : kShort) {
    CAPTURE(f.name);
    // Whole vectors, so that libm does not compute the last few.
    constexpr int kCount = 4096;
    std::vector<float> x;
    for (int i = 0; i < kCount; ++i) x.push_back(0.01f + 0.9f * static_cast<float>(i) / kCount);
    const Tensor alone = f.of(floats_of(x));
    std::vector<float> mixed = x;
    for (const size_t at : {size_t{5}, size_t{1500}, size_t{4095}}) mixed[at] = 3e38f;
    mixed[2100] = std::numeric_limits<float>::quiet_NaN();
    const Tensor beside = f.of(floats_of(mixed));
    for (size_t i = 0; i < kCount; ++i)
      if (mixed[i] == x[i]) CHECK_MESSAGE(beside.data_as<float>()[i] == alone.data_as<float>()[i], x[i]);
  }
}
