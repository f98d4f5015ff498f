#include "sconce/storage.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "sconce/error.h"

using namespace sconce;

TEST_CASE("storage: derived values are made once and only of immutable bytes") {
  auto storage = StoragePtr::adopt(new Storage(nullptr, 0, {}, nullptr, nullptr));
  static const char kind = 0;
  int made = 0;
  auto make = [&]() -> Storage::Derive {
    return [&made](Storage&) {
      ++made;
      return std::make_shared<int>(7);
    };
  };
  CHECK_THROWS_AS(storage->derived({&kind, {1}}, make), Error);
  storage->set_immutable(true);
  void* first = storage->derived({&kind, {1}}, make);
  CHECK(storage->derived({&kind, {1}}, make) == first);
  CHECK(storage->derived({&kind, {2}}, make) != first);
  CHECK(made == 2);
}

TEST_CASE("storage: what is read no more is given up to its source, if there is one") {
  struct Counting final : Storage::Source {
    void give_up(const void* bytes, size_t count) noexcept override {
      from = bytes;
      given_up += count;
    }
    const void* from = nullptr;
    size_t given_up = 0;
  } source;
  char bytes[16] = {};
  char other[4] = {};
  auto storage =
      StoragePtr::adopt(new Storage(bytes, sizeof bytes, {}, nullptr, static_cast<Storage::Source*>(&source)));
  storage->set_immutable(true);
  storage->give_up(0);  // it has none yet
  CHECK(source.given_up == 0);
  storage->set_source();
  static const char kind = 0;
  CHECK(storage->known({&kind, {}}) == nullptr);
  void* const value = storage->derived({&kind, {}}, [] {
    return [](Storage& from) {
      from.give_up(4);
      return std::make_shared<int>(1);
    };
  });
  CHECK(storage->known({&kind, {}}) == value);
  CHECK(source.from == bytes + 4);
  CHECK(source.given_up == 12);
  storage->reset(other, sizeof other, nullptr, nullptr);  // other bytes, of no source
  storage->give_up(0);
  CHECK(source.given_up == 12);
}

namespace {

StoragePtr constant(int& bytes) {
  auto storage = StoragePtr::adopt(new Storage(&bytes, sizeof bytes, {}, nullptr, nullptr));
  storage->set_immutable(true);
  return storage;
}

const char kOuter = 0, kInner = 0;

Storage::Derive doubled() {
  return [](Storage& from) { return std::make_shared<int>(2 * *static_cast<const int*>(from.data())); };
}
// Of a value derived from the same bytes.
Storage::Derive negated() {
  return [](Storage& from) {
    return std::make_shared<int>(-*static_cast<const int*>(from.derived({&kInner, {}}, doubled)));
  };
}

}  // namespace

TEST_CASE("storage: what was derived of one is derived of another before anybody asks") {
  int old_bytes = 3, new_bytes = 5;
  const StoragePtr before = constant(old_bytes), after = constant(new_bytes);
  CHECK(*static_cast<const int*>(before->derived({&kOuter, {}}, negated)) == -6);
  after->derive_as(*before);
  const uint64_t made = Storage::derivations();
  CHECK(*static_cast<const int*>(after->derived({&kOuter, {}}, negated)) == -10);
  CHECK(*static_cast<const int*>(after->derived({&kInner, {}}, doubled)) == 10);
  CHECK(Storage::derivations() == made);
  after->derive_as(*after);
  int writable = 1;
  const auto changing = StoragePtr::adopt(new Storage(&writable, sizeof writable, {}, nullptr, nullptr));
  changing->derive_as(*before);  // nothing: its bytes may change
  CHECK(Storage::derivations() == made);
}

TEST_CASE("storage: derived values say what memory they hold") {
  int bytes = 3;
  const StoragePtr storage = constant(bytes);
  static const char kBlock = 0, kNone = 0;
  CHECK(storage->derived_bytes() == 0);
  storage->derived({&kBlock, {}}, [] {
    return [](Storage&) -> Storage::Value { return {std::make_shared<std::array<char, 100>>(), 1000}; };
  });
  CHECK(storage->derived_bytes() == 1000);
  storage->derived({&kOuter, {}}, negated);  // and what it is made of
  CHECK(storage->derived_bytes() == 1000 + 2 * sizeof(int));
  CHECK(storage->derived({&kNone, {}}, [] { return [](Storage&) -> Storage::Value { return nullptr; }; }) == nullptr);
  CHECK(storage->derived_bytes() == 1000 + 2 * sizeof(int));
  int others = 5;
  const StoragePtr other = constant(others);
  other->derive_as(*storage);
  CHECK(other->derived_bytes() == storage->derived_bytes());
}

TEST_CASE("storage: who derives from one keeps nobody from deriving from another") {
  int first_bytes = 1, second_bytes = 2;
  const StoragePtr first = constant(first_bytes), second = constant(second_bytes);
  std::promise<void> begun, go_on;
  std::shared_future<void> wait = go_on.get_future().share();
  std::atomic<int> times{0};
  const auto slowly = [&]() -> Storage::Derive {
    return [&](Storage&) {
      if (times++ == 0) begun.set_value();
      wait.wait();
      return std::make_shared<int>(1);
    };
  };
  std::thread slow([&] { first->derived({&kOuter, {}}, slowly); });
  begun.get_future().wait();
  std::thread same([&] { first->derived({&kOuter, {}}, slowly); });
  auto other = std::async(std::launch::async, [&] { return second->derived({&kInner, {}}, doubled); });
  CHECK(other.wait_for(std::chrono::seconds(10)) == std::future_status::ready);
  go_on.set_value();
  slow.join();
  same.join();
  CHECK(times == 1);
}
