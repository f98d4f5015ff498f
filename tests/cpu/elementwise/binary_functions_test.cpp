#include "src/cpu/elementwise/binary_functions.h"

#include <doctest/doctest.h>

#include <vector>

#include "sconce/error.h"

using namespace sconce;

// Expected bits are those of torch.nextafter.
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

TEST_CASE("masked_fill: the value may have another dtype, as value.item()") {
  static constexpr int64_t kTwo = 2;
  const auto filled = []<class Out, class In>(Out, DType dtype, In value, DType value_dtype) {
    Tensor self = Tensor::empty(IntSpan(&kTwo, 1), dtype), mask = Tensor::empty(IntSpan(&kTwo, 1), DType::kBool);
    Tensor number = Tensor::empty({}, value_dtype);
    *static_cast<In*>(number.data()) = value;
    static_cast<Out*>(self.data())[0] = static_cast<Out*>(self.data())[1] = 9;
    static_cast<bool*>(mask.data())[0] = false;
    static_cast<bool*>(mask.data())[1] = true;
    const Tensor got = cpu::masked_fill(self, mask, number);
    CHECK(got.dtype() == dtype);
    CHECK(static_cast<const Out*>(got.data())[0] == 9);
    return static_cast<const Out*>(got.data())[1];
  };
  CHECK(filled(int64_t{}, DType::kInt64, 3.5f, DType::kFloat32) == 3);
  CHECK(filled(int64_t{}, DType::kInt64, -2.7f, DType::kFloat32) == -2);
  CHECK(filled(uint8_t{}, DType::kUInt8, int64_t{-1}, DType::kInt64) == 255);
  CHECK(filled(float{}, DType::kFloat32, int64_t{300}, DType::kInt64) == 300);
  CHECK(filled(int8_t{}, DType::kInt8, true, DType::kBool) == 1);
  CHECK_THROWS_WITH_AS(filled(int64_t{}, DType::kInt64, 1e30f, DType::kFloat32),
                       doctest::Contains("value cannot be converted to type int64 without overflow"), Error);
  CHECK_THROWS_AS(filled(uint8_t{}, DType::kUInt8, int64_t{300}, DType::kInt64), Error);
}
