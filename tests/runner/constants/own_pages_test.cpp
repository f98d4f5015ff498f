#include "src/runner/constants/own_pages.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "src/device/cpu_arena.h"

using namespace sconce;
using namespace sconce::runner;

namespace {

StoragePtr constant(const std::string& text) {
  StoragePtr storage = allocate_cpu(text.size());
  std::memcpy(storage->data(), text.data(), text.size());
  storage->set_immutable(true);
  return storage;
}

std::string_view text_of(const Storage& storage) { return {static_cast<const char*>(storage.data()), storage.bytes()}; }

}  // namespace

TEST_CASE("own pages: what one writes no other sees, and later ones are as the constant is") {
  const std::string text(300'000, 'c');
  const StoragePtr from = constant(text);
  const StoragePtr a = own_pages(*from), b = own_pages(*from);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(a->data() != b->data());
  CHECK(!a->immutable());
  std::memset(a->data(), 'w', 10'000);
  CHECK(text_of(*a) == std::string(10'000, 'w') + text.substr(10'000));
  CHECK(text_of(*b) == text);
  CHECK(text_of(*from) == text);
  CHECK(text_of(*own_pages(*from)) == text);
}

TEST_CASE("own pages: the bytes are copied once, and a copy outlives the constant") {
  StoragePtr from = constant(std::string(1 << 20, 'c'));
  CHECK(from->derived_bytes() == 0);
  const StoragePtr a = own_pages(*from), b = own_pages(*from);
  CHECK(from->derived_bytes() == 1 << 20);
  from = StoragePtr();
  CHECK(text_of(*a) == std::string(1 << 20, 'c'));
  std::memset(b->data(), 'w', 1 << 20);
  CHECK(text_of(*a) == std::string(1 << 20, 'c'));
}

TEST_CASE("own pages: many threads at the same time") {
  const StoragePtr from = constant(std::string(1 << 18, 'c'));
  std::vector<std::thread> threads;
  std::vector<int> good(8);
  for (size_t i = 0; i < good.size(); ++i)
    threads.emplace_back([&, i] {
      const StoragePtr own = own_pages(*from);
      const char mine = static_cast<char>('0' + i);
      std::memset(own->data(), mine, own->bytes());
      good[i] = text_of(*own) == std::string(1 << 18, mine);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == std::vector<int>(8, 1));
  CHECK(from->derived_bytes() == 1 << 18);
}
