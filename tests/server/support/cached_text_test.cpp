#include "server/support/cached_text.h"

#include <doctest/doctest.h>

namespace sconce::server {
namespace {

using std::chrono::milliseconds;
const CachedText::Clock::time_point kStart{std::chrono::hours(1)};

std::shared_ptr<const std::string> text_of(const char* text) { return std::make_shared<const std::string>(text); }

}  // namespace

TEST_CASE("cached text: is of one revision, and no older than allowed") {
  CachedText text(milliseconds(500));
  CHECK(text.find(1, kStart) == nullptr);
  text.keep(1, kStart, text_of("one"));
  REQUIRE(text.find(1, kStart + milliseconds(499)) != nullptr);
  CHECK(*text.find(1, kStart) == "one");
  CHECK(text.find(1, kStart + milliseconds(500)) == nullptr);
  CHECK(text.find(2, kStart) == nullptr);
}

TEST_CASE("cached text: an older one does not take the place of a later one") {
  CachedText text(milliseconds(500));
  text.keep(2, kStart + milliseconds(10), text_of("later"));
  text.keep(1, kStart, text_of("earlier"));
  CHECK(text.find(1, kStart) == nullptr);
  CHECK(*text.find(2, kStart + milliseconds(10)) == "later");
}

}  // namespace sconce::server
