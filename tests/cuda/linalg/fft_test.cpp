#include "src/cuda/linalg/fft.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/device/device_backend.h"
#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

using Sizes = std::vector<int64_t>;

// The defining sum, along one dimension of row-major numbers.
Numbers transform(const Numbers& in, const Sizes& sizes, int64_t dim, bool forward) {
  int64_t inner = 1;
  for (size_t d = static_cast<size_t>(dim) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  const int64_t n = sizes[static_cast<size_t>(dim)], outer = count_of(sizes) / (inner * n);
  Numbers out(in.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i)
      for (int64_t k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (int64_t j = 0; j < n; ++j)
          sum += in[static_cast<size_t>((o * n + j) * inner + i)] *
                 std::polar(1.0, (forward ? -2 : 2) * M_PI * static_cast<double>(j * k % n) / static_cast<double>(n));
        out[static_cast<size_t>((o * n + k) * inner + i)] = sum;
      }
  return out;
}

double scale(int64_t normalization, double count) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(count) : 1 / count;
}

Numbers times(Numbers numbers, double factor) {
  for (auto& number : numbers) number *= factor;
  return numbers;
}

struct Problem {
  Sizes sizes, dims;
};
const Problem kProblems[] = {{{12}, {0}},
                             {{3, 17}, {1}},
                             {{8, 5}, {0}},
                             {{4, 6}, {0, 1}},
                             {{3, 4, 5}, {2, 1}},
                             {{2, 3, 4, 5}, {1, 3}},
                             {{2, 3, 4, 5}, {0, 1, 2, 3}},
                             {{5, 1}, {1}},
                             {{2, 131}, {1}}};

}  // namespace

TEST_CASE("_fft_c2c: the sums that define it, of every norm, over any dimensions") {
  for (const Problem& p : kProblems)
    for (const DType dtype : {DType::kComplex64, DType::kComplex128})
      for (const bool forward : {true, false})
        for (const int64_t norm : {0, 1, 2}) {
          const Numbers in = rounded(random_numbers(count_of(p.sizes), 3, true), dtype);
          Numbers expected = in;
          double count = 1;
          for (const int64_t d : p.dims) {
            expected = transform(expected, p.sizes, d, forward);
            count *= static_cast<double>(p.sizes[static_cast<size_t>(d)]);
          }
          CAPTURE(p.sizes.size());
          CAPTURE(p.dims[0]);
          CHECK(difference(_fft_c2c(on_device(in, p.sizes, dtype), p.dims, norm, forward), p.sizes,
                           times(expected, scale(norm, count)), tolerance_of(dtype)) == "");
        }
}

TEST_CASE("_fft_r2c: half of the spectrum, and all of it") {
  for (const Problem& p : kProblems)
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Numbers in = rounded(random_numbers(count_of(p.sizes), 5), dtype);
      Numbers expected = in;
      for (const int64_t d : p.dims) expected = transform(expected, p.sizes, d, true);
      const Tensor x = on_device(in, p.sizes, dtype);
      CHECK(difference(_fft_r2c(x, p.dims, 0, false), p.sizes, expected, tolerance_of(dtype)) == "");
      const auto last = static_cast<size_t>(p.dims.back());
      Sizes half = p.sizes;
      half[last] = half[last] / 2 + 1;
      int64_t inner = 1;
      for (size_t d = last + 1; d < half.size(); ++d) inner *= half[d];
      Numbers first;
      for (size_t i = 0; i < expected.size(); ++i)
        if (static_cast<int64_t>(i) / inner % p.sizes[last] < half[last]) first.push_back(expected[i]);
      CHECK(difference(_fft_r2c(x, p.dims, 0, true), half, first, tolerance_of(dtype)) == "");
    }
}

TEST_CASE("_fft_c2c: what is not row-major, and what has no elements") {
  const Numbers in = rounded(random_numbers(24, 7, true), DType::kComplex128);
  const Sizes sizes{4, 6}, turned_sizes{6, 4}, strides{1, 6};
  const Tensor turned = on_device(in, sizes, DType::kComplex128).as_strided(turned_sizes, strides, 0);
  const int64_t dim = 0;
  CHECK(difference(_fft_c2c(turned, IntSpan(&dim, 1), 0, true), turned_sizes,
                   transform(transposed(in, 4, 6), turned_sizes, 0, true), 1e-10) == "");
  const Sizes none{0, 6};
  const int64_t last = 1;
  CHECK(_fft_c2c(on_device({}, none, DType::kComplex64), IntSpan(&last, 1), 0, true).numel() == 0);
  CHECK_THROWS_AS(_fft_c2c(on_device(Numbers(4), {4}, DType::kFloat32), IntSpan(&dim, 1), 0, true), Error);
}

TEST_CASE("_fft_c2c: more sizes than plans are kept for") {
  for (int64_t n = 2; n < 600; ++n) {
    const Numbers in = rounded(random_numbers(n, static_cast<uint32_t>(n), true), DType::kComplex64);
    const int64_t dim = 0;
    const Numbers got = numbers_of(_fft_c2c(on_device(in, {n}, DType::kComplex64), IntSpan(&dim, 1), 2, true));
    std::complex<double> mean = 0;
    for (const auto& number : in) mean += number / static_cast<double>(n);
    REQUIRE(std::abs(got[0] - mean) < 1e-4);
  }
}

TEST_CASE("_fft_c2c: recorded as a graph, repeated with other numbers") {
  const Sizes sizes{3, 20};
  const int64_t dim = 1;
  const auto lane = backend().make_lane(kGpu);
  const DeviceStream::Scope scope(lane.get());
  Tensor in = on_device(random_numbers(60, 1, true), sizes, DType::kComplex64);
  _fft_c2c(in, IntSpan(&dim, 1), 0, true);
  lane->synchronize();
  lane->begin_capture(0);
  const Tensor out = _fft_c2c(in, IntSpan(&dim, 1), 0, true);
  const auto graph = lane->end_capture(0);
  const Numbers other = rounded(random_numbers(60, 2, true), DType::kComplex64);
  backend().copy(on_device(other, sizes, DType::kComplex64), in);
  graph->launch({}, {});
  lane->synchronize();
  CHECK(difference(out, sizes, transform(other, sizes, 1, true), 1e-4) == "");
}

TEST_CASE("_fft_c2c: a size that was not seen before cannot be recorded") {
  const auto lane = backend().make_lane(kGpu);
  const DeviceStream::Scope scope(lane.get());
  const Tensor in = on_device(random_numbers(977, 1, true), {977}, DType::kComplex64);
  lane->synchronize();
  lane->begin_capture(0);
  const int64_t dim = 0;
  CHECK_THROWS_AS(_fft_c2c(in, IntSpan(&dim, 1), 0, true), Error);
  lane->drop_capture();
}

}  // namespace sconce::gpu
