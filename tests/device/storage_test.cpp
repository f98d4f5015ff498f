#include "sconce/storage.h"

#include <doctest/doctest.h>

#include "sconce/error.h"

using namespace sconce;

TEST_CASE("storage: derived values are made once and only of immutable bytes") {
  auto storage = StoragePtr::adopt(new Storage(nullptr, 0, {}, nullptr, nullptr));
  static const char kind = 0;
  int made = 0;
  auto make = [&] {
    ++made;
    return std::make_shared<int>(7);
  };
  CHECK_THROWS_AS(storage->derived({&kind, {1}}, make), Error);
  storage->set_immutable(true);
  void* first = storage->derived({&kind, {1}}, make);
  CHECK(storage->derived({&kind, {1}}, make) == first);
  CHECK(storage->derived({&kind, {2}}, make) != first);
  CHECK(made == 2);
}
