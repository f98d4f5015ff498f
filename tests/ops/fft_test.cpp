#include "src/ops/fft.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "src/device/threads.h"
#include "src/ops/fft_plan.h"
#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

constexpr const char* kFile = "fft.cases";

}  // namespace

TEST_CASE("_fft_c2c: as PyTorch") {
  run_cases(kFile, "_fft_c2c", [](Case& c) {
    return std::vector{cpu::_fft_c2c(c.tensor(0), c.args[1].integers(), c.integer(2), c.boolean(3))};
  });
}
TEST_CASE("_fft_r2c: as PyTorch") {
  run_cases(kFile, "_fft_r2c", [](Case& c) {
    return std::vector{cpu::_fft_r2c(c.tensor(0), c.args[1].integers(), c.integer(2), c.boolean(3))};
  });
}
TEST_CASE("_fft_c2r: as PyTorch") {
  run_cases(kFile, "_fft_c2r", [](Case& c) {
    return std::vector{cpu::_fft_c2r(c.tensor(0), c.args[1].integers(), c.integer(2), c.integer(3))};
  });
}

TEST_CASE("fft plan: every length up to 300 and some beyond, against the definition") {
  std::vector<int64_t> lengths{512, 625, 729, 1009, 1021, 1155, 2048};
  for (int64_t n = 1; n <= 300; ++n) lengths.push_back(n);
  for (const int64_t n : lengths) {
    CAPTURE(n);
    const auto plan = FftPlan<double>::of(n);
    const auto count = static_cast<size_t>(plan->buffer_length());
    std::vector<Lanes<double, 1>> data(count), scratch(count);
    std::vector<std::complex<double>> in;
    for (int64_t i = 0; i < n; ++i) {
      in.emplace_back(std::sin(static_cast<double>(i * i % 101)), std::cos(static_cast<double>(3 * i)));
      data[static_cast<size_t>(i)] = {in.back().real(), in.back().imag()};
    }
    const Lanes<double, 1>* const got = plan->transform<1>(data.data(), scratch.data());
    double worst = 0;
    for (int64_t k = 0; k < n; k += 1 + n / 64) {
      std::complex<double> sum = 0;
      for (int64_t i = 0; i < n; ++i)
        sum += in[static_cast<size_t>(i)] *
               std::polar(1.0, -2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n));
      worst = std::max(worst, std::abs(sum - std::complex<double>(got[k].re, got[k].im)));
    }
    CHECK(worst < 1e-10);
  }
}

TEST_CASE("_fft_c2c: there and back, one and two threads") {
  const int before = kernel_threads();
  for (const int threads : {1, 2}) {
    set_kernel_threads(threads);
    const int64_t sizes[] = {37, 50, 12}, dims[] = {0, 1, 2};
    Tensor t = Tensor::empty(sizes, DType::kComplex128);
    auto* const data = t.data_as<std::complex<double>>();
    for (int64_t i = 0; i < t.numel(); ++i) data[i] = {static_cast<double>(i % 17), static_cast<double>(i % 5)};
    const Tensor back = cpu::_fft_c2c(cpu::_fft_c2c(t, dims, 1, true), dims, 1, false);
    double worst = 0;
    for (int64_t i = 0; i < t.numel(); ++i)
      worst = std::max(worst, std::abs(back.data_as<std::complex<double>>()[i] - data[i]));
    CHECK(worst < 1e-12);
  }
  set_kernel_threads(before);
}
