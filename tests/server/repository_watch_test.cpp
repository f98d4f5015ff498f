#include "server/repository_watch.h"

#include <doctest/doctest.h>

namespace sconce {
namespace {

PackageFile file(const std::string& stem, int64_t version, uint64_t bytes, int64_t time = 1, uint64_t identity = 1) {
  return {stem, version, stem + ".pt2", {identity, bytes, time}};
}
using Files = std::vector<PackageFile>;
using Stems = std::vector<std::string>;

}  // namespace

TEST_CASE("repository watch: what was there at first is no news") {
  const Files files{file("a", 1, 10), file("b", 1, 10), file("b", 2, 10)};
  RepositoryWatch watch(files);
  CHECK(watch.look(files).empty());
  CHECK(watch.look(files).empty());
}

TEST_CASE("repository watch: two looks that see the same") {
  RepositoryWatch watch({});
  CHECK(watch.look({file("a", 1, 10)}).empty());
  CHECK(watch.look({file("a", 1, 20)}).empty());        // grows
  CHECK(watch.look({file("a", 1, 20, 2)}).empty());     // is written
  CHECK(watch.look({file("a", 1, 20, 2, 7)}).empty());  // is replaced
  CHECK(watch.look({file("a", 1, 20, 2, 7)}) == Stems{"a"});
  CHECK(watch.look({file("a", 1, 20, 2, 7)}).empty());
}

TEST_CASE("repository watch: replaced by a file of the same size and time") {
  RepositoryWatch watch({file("a", 1, 10)});
  CHECK(watch.look({file("a", 1, 10, 1, 2)}).empty());
  CHECK(watch.look({file("a", 1, 10, 1, 2)}) == Stems{"a"});
}

TEST_CASE("repository watch: back to what it was before it settled") {
  RepositoryWatch watch({file("a", 1, 10)});
  CHECK(watch.look({}).empty());
  CHECK(watch.look({file("a", 1, 10)}).empty());
  CHECK(watch.look({}).empty());
  CHECK(watch.look({}) == Stems{"a"});
  CHECK(watch.look({}).empty());
  CHECK(watch.look({file("a", 1, 10)}).empty());
  CHECK(watch.look({file("a", 1, 10)}) == Stems{"a"});
}

TEST_CASE("repository watch: stems are apart, versions of one are not") {
  RepositoryWatch watch({file("a", 1, 10), file("b", 1, 10)});
  const Files added{file("a", 1, 10), file("b", 1, 10), file("b", 2, 10), file("c", 1, 5)};
  CHECK(watch.look(added).empty());
  CHECK(watch.look(added) == Stems{"b", "c"});
  const Files removed{file("b", 2, 10), file("c", 1, 6)};
  CHECK(watch.look(removed).empty());
  CHECK(watch.look({file("b", 2, 10), file("c", 1, 7)}) == Stems{"a", "b"});
}

}  // namespace sconce
