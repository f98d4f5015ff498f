#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "src/cpu/convolution/convolution.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("convolution_backward: one to three dimensions, groups, transposed, masks") {
  run_cases("more_gradients.cases", "convolution_backward", [](Case& c) {
    const std::vector<Tensor> gradients = call_kernel(c, cpu::convolution_backward);
    std::vector<Tensor> results;
    for (size_t i = 0; i < 3; ++i) {
      const bool wanted = c.args[10].list()[i].boolean();
      CHECK(gradients[i].defined() == wanted);
      if (wanted) results.push_back(clone_contiguous(gradients[i]));
    }
    return results;
  });
}

namespace {
Tensor numbers(const std::vector<int64_t>& sizes, const std::vector<float>& values) {
  Tensor t = Tensor::empty(sizes, DType::kFloat32);
  std::copy(values.begin(), values.end(), t.data_as<float>());
  return t;
}
std::vector<float> values(const Tensor& t) { return {t.data_as<float>(), t.data_as<float>() + t.numel()}; }
}  // namespace

// Expected values and strides are PyTorch's.
TEST_CASE("convolution_backward: output padding beyond the stride") {
  const std::vector<int64_t> one{1}, two{2}, none{0};
  const int32_t mask[] = {1, 1, 0};
  const auto got =
      cpu::convolution_backward(numbers({1, 1, 5}, {1, 2, 3, 4, 5}), numbers({1, 1, 2}, {1, 2}),
                                numbers({1, 1, 2}, {10, 1}), std::nullopt, one, none, two, true, one, 1, mask);
  CHECK(values(got[0]) == std::vector<float>{13, 24});
  CHECK(values(got[1]) == std::vector<float>{5, 11});
}

TEST_CASE("convolution, convolution_backward: a row of one pixel is what its strides say, as in ATen") {
  const std::vector<int64_t> sizes{4, 5, 1}, one{1}, none{0};
  const int32_t mask[] = {1, 1, 0};
  const auto sample = [](IntSpan shape, IntSpan strides) {
    Tensor t = Tensor::empty_strided(shape, strides, DType::kFloat32);
    for (int64_t i = 0; i < t.numel(); ++i) t.data_as<float>()[i] = static_cast<float>(i * 7 % 11 - 5);
    return t;
  };
  const Tensor weight = sample(std::vector<int64_t>{6, 5, 3}, std::vector<int64_t>{15, 3, 1});
  const Tensor grad = sample(std::vector<int64_t>{4, 6, 1}, std::vector<int64_t>{6, 1, 1});
  for (const int64_t last : {5, 1}) {
    const Tensor input = sample(sizes, std::vector<int64_t>{5, 1, last});
    const Tensor out = cpu::convolution(input, weight, nullptr, one, one, one, false, none, 1);
    CHECK(out.stride(2) == (last == 5 ? 6 : 1));
    const auto got = cpu::convolution_backward(grad, input, weight, std::nullopt, one, one, one, false, none, 1, mask);
    CHECK(got[0].stride(2) == last);
    CHECK(std::ranges::equal(got[1].strides(),
                             last == 5 ? std::vector<int64_t>{15, 1, 5} : std::vector<int64_t>{15, 3, 1}));
  }
}

TEST_CASE("convolution_backward: gradients in the format of the convolution") {
  const std::vector<int64_t> sizes{2, 3, 5, 5}, kernel{4, 3, 3, 3}, ones{1, 1}, none{0, 0};
  const int32_t mask[] = {1, 1, 0};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const auto sample = [&](IntSpan shape, IntSpan strides) {
      Tensor t = Tensor::empty_strided(shape, strides, dtype);
      for (int64_t i = 0; i < t.numel(); ++i) {
        const double value = static_cast<double>(i * 7 % 11) - 5;
        dtype == DType::kFloat32 ? void(t.data_as<float>()[i] = static_cast<float>(value))
                                 : void(t.data_as<double>()[i] = value);
      }
      return t;
    };
    const std::vector<int64_t> last{75, 1, 15, 3}, rows{75, 25, 5, 1};
    const Tensor grad = sample(std::vector<int64_t>{2, 4, 5, 5}, std::vector<int64_t>{100, 25, 5, 1});
    const Tensor weight = sample(kernel, std::vector<int64_t>{27, 9, 3, 1}), input = sample(sizes, last);
    const auto run = [&](const Tensor& x) {
      return cpu::convolution_backward(grad, x, weight, std::nullopt, ones, ones, ones, false, none, 1, mask);
    };
    const auto got = run(input), plain = run(clone_contiguous(input));
    CHECK(std::ranges::equal(got[0].strides(), last));
    CHECK(std::ranges::equal(got[1].strides(), std::vector<int64_t>{27, 1, 9, 3}));
    CHECK(std::ranges::equal(plain[0].strides(), rows));
    for (size_t i = 0; i < 2; ++i) {
      const Tensor a = clone_contiguous(got[i]), b = clone_contiguous(plain[i]);
      CHECK(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.numel()) * a.itemsize()) == 0);  // small integers
    }
  }
}
