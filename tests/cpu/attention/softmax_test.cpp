#include "src/cpu/attention/softmax.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/tensor/copy.h"

using namespace sconce;

// Expected values are computed here, because PyTorch's are wrong: it writes packed rows into a result that has strides.
TEST_CASE("_masked_softmax: a result in the input's memory order") {
  const std::vector<int64_t> sizes{3, 5}, strides{1, 3};
  Tensor x = Tensor::empty_strided(sizes, strides, DType::kFloat32), mask = Tensor::empty(sizes, DType::kBool);
  const auto hidden = [](int64_t r, int64_t c) { return (r + c) % 3 == 0; };
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < 5; ++c) {
      x.data_as<float>()[r + 3 * c] = static_cast<float>(r) - 0.5f * static_cast<float>(c * c % 7);
      mask.data_as<bool>()[5 * r + c] = hidden(r, c);
    }
  const Tensor y = cpu::_masked_softmax(x, mask, std::nullopt, 2);
  CHECK(std::ranges::equal(y.strides(), strides));
  for (int64_t r = 0; r < 3; ++r) {
    double total = 0;
    for (int64_t c = 0; c < 5; ++c)
      if (!hidden(r, c)) total += std::exp(static_cast<double>(x.data_as<float>()[r + 3 * c]));
    for (int64_t c = 0; c < 5; ++c) {
      CAPTURE(r);
      CAPTURE(c);
      const double expected = hidden(r, c) ? 0 : std::exp(static_cast<double>(x.data_as<float>()[r + 3 * c])) / total;
      CHECK(static_cast<double>(y.data_as<float>()[r * y.stride(0) + c * y.stride(1)]) ==
            doctest::Approx(expected).epsilon(1e-6));
    }
  }
}
