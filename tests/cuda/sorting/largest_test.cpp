// The last rows of tensors on a device against those of the same tensors on the host.
#include "src/cuda/sorting/largest.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "sconce/device_memory.h"
#include "sconce/float_types.h"
#include "src/device/device_backend.h"
#include "tests/cuda/device_calls.h"
#include "tests/cuda/reference.h"

namespace sconce::gpu {
namespace {

constexpr DType kDtypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum class Form { kSpread, kTies, kZeros, kOne, kMasked, kNan, kInfinite, kAllMasked };

Tensor drawn(IntSpan sizes, DType dtype, Form form, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 4);
  Tensor all = Tensor::empty(sizes, dtype);
  const auto some = [&](uint32_t in) { return random() % in == 0; };
  for (int64_t i = 0; i < all.numel(); ++i) {
    float value = normal(random);
    if (form == Form::kTies) value = static_cast<float>(static_cast<int>(value / 4));
    if (form == Form::kZeros) value = some(2) ? 0.0F : -0.0F;
    if (form == Form::kOne) value = 1.5F;
    if (form == Form::kMasked && !some(50)) value = -kInfinity;
    if (form == Form::kNan && some(1000)) value = std::numeric_limits<float>::quiet_NaN();
    if (form == Form::kInfinite && some(1000)) value = kInfinity;
    if (form == Form::kAllMasked) value = -kInfinity;
    if (dtype == DType::kFloat32) all.data_as<float>()[i] = value;
    if (dtype == DType::kFloat16) all.data_as<Half>()[i] = Half(value);
    if (dtype == DType::kBFloat16) all.data_as<BFloat16>()[i] = BFloat16(value);
  }
  return all;
}

Tensor sent(const Tensor& host) {
  Tensor there = Tensor::empty_strided(host.sizes(), host.strides(), host.dtype(), kGpu);
  transfer(host, there);
  return there;
}

// "" if the device gives what the host gives, bit by bit.
std::string difference_to_host(const Tensor& host, const Tensor& device, const LastRows& wanted) {
  const Tensor expected = last_rows(host, wanted), got = last_rows(device, wanted);
  const std::string what =
      describe(host) + ", " + std::to_string(wanted.parts) + " parts, " + std::to_string(wanted.largest) + " largest: ";
  if (!got.is_cpu() || got.dtype() != expected.dtype() || got.numel() != expected.numel())
    return what + describe(got) + " in the place of " + describe(expected);
  for (size_t i = 0; i < got.bytes(); ++i)
    if (static_cast<const std::byte*>(got.data())[i] != static_cast<const std::byte*>(expected.data())[i])
      return what + "element " + std::to_string(i / got.itemsize()) + " differs";
  return {};
}

constexpr int64_t kCounts[] = {0, 1, 2, 3, 5, 31, 32, 33, 40, 64, 100, 127, 128};

}  // namespace

TEST_CASE("last rows: the largest of a row of any length, dtype and kind") {
  uint32_t seed = 0;
  // Both sides of what a block of either kernel reads, and of the most parts that a row has.
  for (const int64_t length :
       {1,    2,     31,    32,    33,    127,   128,   129,    1000,   4095,   4096,   4097,   4223,   8192,
        8193, 16385, 32000, 32768, 32769, 50257, 65537, 128256, 151936, 200000, 262144, 262145, 1100000}) {
    for (const DType dtype : kDtypes) {
      for (const Form form : {Form::kSpread, Form::kTies, Form::kZeros, Form::kOne, Form::kMasked, Form::kNan,
                              Form::kInfinite, Form::kAllMasked}) {
        if (length > 40000 && form != Form::kSpread && (seed + static_cast<uint32_t>(form)) % 3 != 0) continue;
        const Tensor host = drawn(std::array<int64_t, 2>{1, length}, dtype, form, ++seed);
        const Tensor device = sent(host);
        for (const int64_t count : kCounts) {
          if (length > 40000 && count > 1 && (seed + static_cast<uint32_t>(count)) % 4 != 0) continue;
          const std::string told = difference_to_host(host, device, {.largest = count});
          CHECK_MESSAGE(told.empty(), told, ", form ", static_cast<int>(form));
        }
      }
    }
  }
}

TEST_CASE("last rows: of several parts, of the last of several positions, in any strides") {
  uint32_t seed = 1000;
  for (const DType dtype : kDtypes)
    for (const int64_t length : {7, 200, 5000, 40000}) {
      const Tensor host = drawn(std::array<int64_t, 3>{6, 2, length}, dtype, Form::kTies, ++seed);
      // The same memory with the vocabulary as the outermost dimension.
      const Tensor turned = host.as_strided(std::array<int64_t, 3>{6, 2, length}, std::array<int64_t, 3>{2, 1, 12}, 0);
      for (const Tensor& one : {host, turned}) {
        const Tensor device = sent(one);
        for (const int64_t parts : {1, 2, 3, 6})
          for (const int64_t count : {0, 1, 4, 128}) {
            const std::string told = difference_to_host(one, device, {.parts = parts, .largest = count});
            CHECK_MESSAGE(told.empty(), told);
          }
      }
    }
  const Tensor many = drawn(std::array<int64_t, 2>{70000, 5}, DType::kFloat32, Form::kTies, ++seed);
  for (const int64_t count : {1, 3})
    CHECK(difference_to_host(many, sent(many), {.parts = 70000, .largest = count}) == "");
}

TEST_CASE("last rows: in the order of a lane's stream, many times over") {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(kGpu);
  const Tensor host = drawn(std::array<int64_t, 2>{3, 60000}, DType::kBFloat16, Form::kSpread, 7);
  const DeviceStream::Scope scope(lane.get());
  Tensor device = Tensor::empty(host.sizes(), host.dtype(), kGpu);
  backend().copy(host, device);
  for (const int64_t count : {1, 50}) {
    const Tensor expected = last_rows(host, {.parts = 3, .largest = count});
    for (int i = 0; i < 200; ++i) {
      Tensor kept;
      Tensor ranks(backend().allocate_host(expected.bytes()), DType::kUInt64, expected.sizes(), expected.strides());
      std::memset(ranks.data(), 0, ranks.bytes());
      backend().rank_largest(device, ranks, kept);
      lane->synchronize();
      REQUIRE(std::memcmp(ranks.data(), expected.data(), expected.bytes()) == 0);
    }
  }
}

}  // namespace sconce::gpu
