#include "src/ops/binary_functions.h"

#include <doctest/doctest.h>

#include <vector>

using namespace sconce;

// Bits of torch.nextafter.
TEST_CASE("nextafter: half floats") {
  const auto check = [](DType dtype, const std::vector<uint16_t>& from, const std::vector<uint16_t>& towards,
                        const std::vector<uint16_t>& expected) {
    const auto tensor = [dtype](const std::vector<uint16_t>& bits) {
      const auto n = static_cast<int64_t>(bits.size());
      Tensor t = Tensor::empty(IntSpan(&n, 1), dtype);
      std::copy(bits.begin(), bits.end(), static_cast<uint16_t*>(t.data()));
      return t;
    };
    const Tensor got = cpu::nextafter(tensor(from), tensor(towards));
    const auto* const bits = static_cast<const uint16_t*>(got.data());
    CHECK(std::vector<uint16_t>(bits, bits + from.size()) == expected);
  };
  check(DType::kFloat16, {0, 0x8000, 15360, 0xBC00, 31743, 31744, 1}, {15360, 0, 0, 0xC000, 31744, 0, 0xBC00},
        {1, 0, 15359, 0xBC01, 31744, 31743, 0});
  check(DType::kBFloat16, {0, 0x8000, 16256, 0xBF80, 32640}, {16256, 0, 0, 0xC000, 0}, {1, 0, 16255, 0xBF81, 32639});
}
