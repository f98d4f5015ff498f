#include "server/support/cached_snapshot.h"

#include <doctest/doctest.h>

#include <string>

using namespace sconce::server;

namespace {

// Counts how often it was copied.
struct Source {
  uint64_t now = 0;
  mutable int copies = 0;
  std::string text = "a";
  uint64_t revision() const noexcept { return now; }
  std::shared_ptr<const std::string> snapshot() const {
    ++copies;
    return std::make_shared<const std::string>(text);
  }
};

}  // namespace

TEST_CASE("cached snapshot: the source is read once for each of its revisions, the first of them 0") {
  Source source;
  CachedSnapshot<std::string> cached;
  CHECK(cached.of(source) == "a");
  CHECK(cached.of(source) == "a");
  CHECK(source.copies == 1);
  source.text = "b";
  ++source.now;
  CHECK(cached.of(source) == "b");
  CHECK(cached.of(source) == "b");
  CHECK(source.copies == 2);
}

TEST_CASE("cached snapshot: a dropped one releases what it had, and is read again") {
  Source source;
  CachedSnapshot<std::string> cached;
  std::weak_ptr<const std::string> watched;
  struct Watching {
    std::weak_ptr<const std::string>& watched;
    uint64_t revision() const noexcept { return 7; }
    std::shared_ptr<const std::string> snapshot() const {
      auto made = std::make_shared<const std::string>("c");
      watched = made;
      return made;
    }
  } watching{watched};
  CHECK(cached.of(watching) == "c");
  CHECK(!watched.expired());
  cached.drop_unless_current(watching);
  CHECK(!watched.expired());
  cached.drop_unless_current(source);  // of another revision
  CHECK(watched.expired());
  CHECK(cached.of(watching) == "c");
  cached.drop();
  CHECK(watched.expired());
  CHECK(cached.of(watching) == "c");
}
