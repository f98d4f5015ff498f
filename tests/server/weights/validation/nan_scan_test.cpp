#include "server/weights/validation/nan_scan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "src/support/element_walk.h"

namespace sconce::server::weights {
namespace {

// The bits of a NaN and of the largest value that is none, where a pattern of `bytes` bytes is one number.
struct Sample {
  DType dtype;
  size_t bytes;
  uint64_t nan, other;
};
// Infinity is `other` where the format has it. The patterns are those of torch.tensor([nan, inf]).to(dtype).
const Sample kSamples[] = {
    {DType::kFloat32, 4, 0x7fc00000, 0x7f800000},
    {DType::kFloat32, 4, 0xff800001, 0xff800000},
    {DType::kFloat64, 8, 0x7ff8000000000000, 0xfff0000000000000},
    {DType::kFloat16, 2, 0x7e00, 0x7c00},
    {DType::kBFloat16, 2, 0xffc0, 0xff80},
    {DType::kComplex64, 4, 0x7fc00000, 0x7f800000},
    {DType::kComplex128, 8, 0xfff8000000000000, 0x7ff0000000000000},
    {DType::kComplex32, 2, 0xfe00, 0xfc00},
    {DType::kFloat8E5M2, 1, 0x7f, 0x7c},
    {DType::kFloat8E4M3FN, 1, 0xff, 0xfe},
    {DType::kFloat8E5M2FNUZ, 1, 0x80, 0x7f},
    {DType::kFloat8E4M3FNUZ, 1, 0x80, 0xff},
    {DType::kFloat8E8M0FNU, 1, 0xff, 0xfe},
};

Tensor filled(std::vector<int64_t> sizes, DType dtype, size_t bytes, uint64_t bits) {
  Tensor tensor = Tensor::empty(sizes, dtype);
  for (size_t at = 0; at < tensor.bytes(); at += bytes) std::memcpy(tensor.data_as<std::byte>() + at, &bits, bytes);
  return tensor;
}

}  // namespace

TEST_CASE("nan scan: every dtype tells NaN from all else") {
  for (const Sample& sample : kSamples) {
    CAPTURE(dtype_name(sample.dtype));
    CAPTURE(sample.nan);
    Tensor tensor = filled({3, 7}, sample.dtype, sample.bytes, sample.other);
    CHECK(!has_nan(tensor, 1 << 20, 0));
    for (size_t at = 0; at < tensor.bytes(); at += sample.bytes) {
      std::memcpy(tensor.data_as<std::byte>() + at, &sample.nan, sample.bytes);
      CHECK(has_nan(tensor, 1 << 20, 0));
      std::memcpy(tensor.data_as<std::byte>() + at, &sample.other, sample.bytes);
    }
  }
}

TEST_CASE("nan scan: tensors that have none") {
  CHECK(!has_nan(Tensor(), 100, 0));
  CHECK(!has_nan(filled({0, 3}, DType::kFloat32, 4, 0x7fc00000), 100, 5));
  CHECK(!has_nan(filled({4}, DType::kInt32, 4, 0x7fc00000), 100, 0));
  CHECK(!has_nan(filled({4}, DType::kUInt8, 1, 0xff), 100, 0));
  CHECK(has_nan(filled({}, DType::kFloat32, 4, 0x7fc00000), 1, 3));
}

TEST_CASE("nan scan: a window that moves on finds each element, whatever strides, and no other") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto size = [&](int most) { return static_cast<int64_t>(random() % static_cast<unsigned>(most) + 1); };
    const std::vector<int64_t> sizes{size(5), size(6), size(7)};
    // Dense, transposed, or with gaps that hold NaN and are not elements.
    std::vector<int64_t> strides{sizes[1] * sizes[2], sizes[2], 1};
    const unsigned form = random() % 3;
    if (form == 1) strides = {1, sizes[0], sizes[0] * sizes[1]};
    if (form == 2) strides = {sizes[1] * sizes[2] * 4, sizes[2] * 2, 2};
    CAPTURE(form);
    std::vector<float> memory(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * 4),
                              std::numeric_limits<float>::quiet_NaN());
    Tensor tensor = Tensor::from_blob(memory.data(), sizes, strides, DType::kFloat32);
    std::vector<int64_t> offsets;
    walk_elements(tensor.sizes(), tensor.strides(), tensor.strides(),
                  [&](int64_t a, int64_t) { offsets.push_back(a); });
    for (const int64_t offset : offsets) memory[static_cast<size_t>(offset)] = 1;
    const size_t most = (random() % 40 + 1) * sizeof(float), room = most / sizeof(float);
    const auto seen = [&] {
      bool any = false;
      for (uint64_t from = 0; from < offsets.size() + room; from += room) any |= has_nan(tensor, most, from);
      return any;
    };
    CHECK(!seen());
    float& hit = memory[static_cast<size_t>(offsets[random() % offsets.size()])];
    hit = std::numeric_limits<float>::quiet_NaN();
    CHECK(seen());
  }
}

}  // namespace sconce::server::weights
