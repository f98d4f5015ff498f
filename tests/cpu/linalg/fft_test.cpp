#include "src/cpu/linalg/fft.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "src/cpu/linalg/fft_plan.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_fft_c2c: as PyTorch") { run_kernel("fft.cases", "_fft_c2c", cpu::_fft_c2c); }
TEST_CASE("_fft_r2c: as PyTorch") { run_kernel("fft.cases", "_fft_r2c", cpu::_fft_r2c); }
TEST_CASE("_fft_c2r: as PyTorch") { run_kernel("fft.cases", "_fft_c2r", cpu::_fft_c2r); }

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

// Two real lines must not share one complex transform: a NaN in one line would spread to the other, and a line beside
// one that is a million times larger would lose six digits.
TEST_CASE("_fft_r2c, _fft_c2r: no real line has another one's NaN or rounding") {
  for (const int64_t n : {1, 2, 5, 6, 8, 37, 64, 75, 1200, 2048})
    for (const int64_t rows : {2, 3, 8, 9, 17}) {
      CAPTURE(n);
      CAPTURE(rows);
      const int64_t dims[] = {1};
      const Tensor all = Tensor::empty(std::vector<int64_t>{rows, n}, DType::kFloat32);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < n; ++k) {
          const float value = std::sin(static_cast<float>(k * k % 101 + r));
          all.data_as<float>()[r * n + k] = r % 3 == 1 ? value * 1e6f : r % 5 == 3 ? std::nanf("") : value;
        }
      const Tensor spectra = cpu::_fft_r2c(all, dims, 0, true), back = cpu::_fft_c2r(spectra, dims, 2, n);
      for (int64_t r = 0; r < rows; ++r) {
        if (r % 3 == 1 || r % 5 == 3) continue;
        CAPTURE(r);
        const float* const in = all.data_as<float>() + r * n;
        const auto* const spectrum = spectra.data_as<std::complex<float>>() + r * (n / 2 + 1);
        double worst = 0, lost = 0;
        for (int64_t k = 0; k <= n / 2; k += 1 + n / 32) {
          std::complex<double> sum = 0;
          for (int64_t i = 0; i < n; ++i)
            sum += std::polar(static_cast<double>(in[i]),
                              -2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n));
          worst = std::max(worst, std::abs(sum - std::complex<double>(spectrum[k])));
        }
        for (int64_t i = 0; i < n; ++i)
          lost = std::max(lost, std::abs(static_cast<double>(back.data_as<float>()[r * n + i] - in[i])));
        CHECK(worst < 2e-6 * std::sqrt(static_cast<double>(n)) * 4);
        CHECK(lost < 2e-6);
      }
    }
}

// Lines are transformed 8 or 4 at a time; what is left over of them goes another way, as do the last elements of a
// line.
TEST_CASE("_fft_c2c, _fft_r2c, _fft_c2r: any number of lines, along either dimension, against the definition") {
  const auto run = [&]<class R>(DType real, DType complex, double tolerance) {
    for (const int64_t n : {2, 3, 7, 8, 12, 16, 17, 32})
      for (int64_t rows = 1; rows <= 18; ++rows)
        for (const int64_t dim : {0, 1}) {
          CAPTURE(n);
          CAPTURE(rows);
          CAPTURE(dim);
          const std::vector<int64_t> sizes = dim == 1 ? std::vector<int64_t>{rows, n} : std::vector<int64_t>{n, rows};
          const int64_t dims[] = {dim};
          const Tensor x = Tensor::empty(sizes, real), z = Tensor::empty(sizes, complex);
          const auto value = [](int64_t i) { return static_cast<R>(std::sin(static_cast<double>(i * i % 1009))); };
          for (int64_t i = 0; i < x.numel(); ++i) {
            x.data_as<R>()[i] = value(i);
            z.data_as<std::complex<R>>()[i] = {value(i), value(7 * i + 3)};
          }
          const Tensor spectra = cpu::_fft_c2c(z, dims, 0, true), half = cpu::_fft_r2c(x, dims, 0, true);
          const Tensor back = cpu::_fft_c2r(half, dims, 2, n);
          double worst = 0;
          for (int64_t r = 0; r < rows; ++r) {
            const auto at = [&](const Tensor& t, int64_t k) { return r * t.stride(1 - dim) + k * t.stride(dim); };
            for (int64_t k = 0; k < n; ++k) {
              std::complex<double> of_z = 0, of_x = 0;
              for (int64_t i = 0; i < n; ++i) {
                const auto turn = std::polar(1.0, -2 * M_PI * static_cast<double>(i * k % n) / static_cast<double>(n));
                of_z += std::complex<double>(z.data_as<std::complex<R>>()[at(z, i)]) * turn;
                of_x += static_cast<double>(x.data_as<R>()[at(x, i)]) * turn;
              }
              worst = std::max(
                  worst, std::abs(of_z - std::complex<double>(spectra.data_as<std::complex<R>>()[at(spectra, k)])));
              if (k <= n / 2)
                worst = std::max(worst,
                                 std::abs(of_x - std::complex<double>(half.data_as<std::complex<R>>()[at(half, k)])));
              worst = std::max(worst, std::abs(static_cast<double>(back.data_as<R>()[at(back, k)]) -
                                               static_cast<double>(x.data_as<R>()[at(x, k)])));
            }
          }
          CHECK(worst < tolerance);
        }
  };
  run.operator()<float>(DType::kFloat32, DType::kComplex64, 2e-5);
  run.operator()<double>(DType::kFloat64, DType::kComplex128, 4e-14);
}
