#include "src/runner/sets/set_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace sconce;
using namespace sconce::runner;

namespace {

constexpr int64_t kSmall = 64 * 1024;  // smaller pieces may move

struct Block {
  std::vector<std::byte> bytes;
  explicit Block(size_t size) : bytes(size) {}
};

// Tensors of these sizes in one piece of memory, as an update has them: it lives as long as the last of them.
std::vector<Tensor> pieces_of(const std::shared_ptr<Block>& block, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> tensors;
  std::byte* at = block->bytes.data();
  constexpr int64_t one = 1;
  for (const int64_t size : sizes) {
    const auto release = [](void*, size_t, void* context) noexcept {
      delete static_cast<std::shared_ptr<Block>*>(context);
    };
    StoragePtr storage = StoragePtr::adopt(
        new Storage(at, static_cast<size_t>(size), Device{}, release, new std::shared_ptr<Block>(block)));
    storage->set_immutable(true);
    tensors.emplace_back(std::move(storage), DType::kUInt8, IntSpan{&size, 1}, IntSpan{&one, 1}, 0, Layout::kStrided);
    at += size;
  }
  return tensors;
}

}  // namespace

TEST_CASE("set pool: an update's memory goes once only small pieces of it are left, and values stay") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  int freed = 0, kept = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<int64_t> sizes;
    for (int64_t n = draw(1, 5); n > 0; --n) sizes.push_back(draw(0, 1) == 0 ? draw(1, 300) : kSmall + draw(-3, 3));
    int64_t total = 0;
    std::vector<loader::ContainerConstant> listed;
    for (size_t i = 0; i < sizes.size(); ++i) {
      total += sizes[i];
      const std::string name = std::to_string(i);
      listed.push_back({name, name, false, 0, static_cast<int32_t>(DType::kUInt8), 0});
    }
    const auto filled = [&] {
      auto block = std::make_shared<Block>(static_cast<size_t>(total));
      for (std::byte& byte : block->bytes) byte = static_cast<std::byte>(draw(0, 255));
      return block;
    };
    const std::vector<Tensor> stored = pieces_of(filled(), sizes);
    const ConstantTable table(listed, stored, ModelSpec{});
    const auto active = std::make_shared<ConstantSet>(stored);
    const SetPool pool(table, active);

    auto block = filled();
    const std::vector<std::byte> expected = block->bytes;
    const std::weak_ptr<Block> memory = block;
    std::vector<Tensor> tensors = pieces_of(std::exchange(block, nullptr), sizes);
    bool any_shared = false, any_large = false;
    std::vector<bool> shared;
    for (size_t i = 0; i < tensors.size(); ++i) {
      shared.push_back(draw(0, 1) == 1);
      if (shared[i]) std::memcpy(tensors[i].data(), stored[i].data(), tensors[i].bytes());
      // One byte of a short piece may be equal by chance.
      shared[i] = std::memcmp(tensors[i].data(), stored[i].data(), tensors[i].bytes()) == 0;
      any_shared |= shared[i];
      any_large |= !shared[i] && sizes[i] >= kSmall;
    }
    auto whole = std::make_unique<ConstantSet>(std::move(tensors));
    const std::shared_ptr<const ConstantSet> set = pool.share(*whole, *active);
    whole.reset();

    size_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Tensor& tensor = set->tensors()[i];
      CHECK((tensor.storage() == stored[i].storage()) == shared[i]);
      if (!shared[i]) CHECK(std::memcmp(tensor.data(), expected.data() + at, tensor.bytes()) == 0);
      at += static_cast<size_t>(sizes[i]);
    }
    const bool stays = any_large || !any_shared;
    CHECK(memory.expired() == !stays);
    ++(stays ? kept : freed);
  }
  CHECK(freed > 50);
  CHECK(kept > 50);
}
