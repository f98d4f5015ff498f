// The pieces of an encoded file: where values are in place, next() gives large ones from there and collects small ones.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sconce/weight_sources.h"

using namespace sconce;

namespace {

// Entries of bytes, some of which are in place.
class MemoryWeights final : public WeightFile {
 public:
  void add_bytes(std::string values, bool in_place) {
    add({"entry " + std::to_string(values_.size()), DType::kUInt8, {static_cast<int64_t>(values.size())}});
    values_.push_back(std::move(values));
    in_place_.push_back(in_place);
  }
  void read(size_t entry, std::span<std::byte> out) override {
    if (entry != current_) position_ = 0;
    current_ = entry;
    REQUIRE(position_ + out.size() <= values_[entry].size());
    std::memcpy(out.data(), values_[entry].data() + position_, out.size());
    position_ += out.size();
  }
  std::span<const std::byte> in_place(size_t entry) const noexcept override {
    return in_place_[entry] ? std::as_bytes(std::span(values_[entry])) : std::span<const std::byte>();
  }
  void check_whole() override { ++checked; }
  std::string all() const {
    std::string text;
    for (const std::string& values : values_) text += values;
    return text;
  }
  int checked = 0;

 private:
  std::vector<std::string> values_;
  std::vector<bool> in_place_;
  size_t current_ = SIZE_MAX, position_ = 0;
};

}  // namespace

TEST_CASE("safetensors encoder: pieces in place and collected ones are the same file") {
  constexpr int64_t kSmall = 64 << 10, kMost = 4 << 20;  // where next() chooses
  std::mt19937 random(11);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 60; ++round) {
    auto file = std::make_unique<MemoryWeights>();
    const MemoryWeights& weights = *file;
    for (int64_t entries = draw(0, 6); entries > 0; --entries) {
      const int64_t kind = draw(0, 9);
      const int64_t size = kind < 4   ? draw(0, 3000)
                           : kind < 8 ? kSmall + draw(-2, 2)
                           : kind < 9 ? draw(kSmall, 4 * kSmall)
                                      : kMost + draw(-2, 2);
      std::string values(static_cast<size_t>(size), '\0');
      for (char& value : values) value = static_cast<char>(random());
      file->add_bytes(std::move(values), draw(0, 3) > 0);
    }
    const std::string expected = weights.all();
    SafetensorsEncoder encoder(std::move(file));
    std::vector<std::byte> scratch(static_cast<size_t>(16 * draw(1, draw(0, 1) == 0 ? 40 : 8192)));
    std::string bytes;
    for (;;) {
      const std::span<const std::byte> piece = encoder.next(scratch);
      if (piece.empty()) break;
      CHECK(piece.size() <= static_cast<size_t>(kMost));
      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    }
    REQUIRE(bytes.size() == encoder.bytes());
    CHECK(bytes.compare(bytes.size() - expected.size(), std::string::npos, expected) == 0);
    CHECK(weights.checked == 1);
  }
}
