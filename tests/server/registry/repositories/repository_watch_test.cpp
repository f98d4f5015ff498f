#include "server/registry/repositories/repository_watch.h"

#include <doctest/doctest.h>

#include <utility>

namespace sconce::server::registry {
namespace {

PackageFile file(const std::string& stem, int64_t version, uint64_t bytes, int64_t time = 1, uint64_t identity = 1) {
  return {stem, version, stem + ".pt2", {}, {identity, bytes, time}};
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

TEST_CASE("repository watch: a repository that cannot be read has not changed") {
  const auto at = [](const char* folder, const std::string& stem, uint64_t bytes) {
    return PackageFile{stem, 1, std::filesystem::path(folder) / (stem + ".pt2"), {}, {1, bytes, 1}};
  };
  RepositoryWatch watch({at("one", "a", 10), at("one-more", "b", 10), at("two", "c", 10)});
  FoundFiles found{{at("one-more", "b", 20)}, {{"one", "gone"}}};
  watch.complete(found);
  CHECK(found.files.size() == 2);
  CHECK(watch.look(found.files).empty());
  CHECK(watch.is_pending_below("one-more"));
  CHECK(watch.is_pending_below("two"));
  CHECK_FALSE(watch.is_pending_below("one"));
  CHECK(watch.look(found.files) == Stems{"b", "c"});
  // It comes back without its model.
  found = {{at("one-more", "b", 20)}, {}};
  watch.complete(found);
  CHECK(watch.look(found.files).empty());
  CHECK(watch.look(found.files) == Stems{"a"});
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

TEST_CASE("repository watch: what could not be taken is returned again, less and less often") {
  const Files files{file("a", 1, 10), file("b", 1, 10)};
  RepositoryWatch watch(files);
  watch.failed("a");
  watch.failed("no stem of its");
  std::vector<int> waits;
  for (int looks = 1; waits.size() < 9; ++looks) {
    const Stems changed = watch.look(files);
    if (changed.empty()) continue;
    CHECK(changed == Stems{"a"});
    waits.push_back(std::exchange(looks, 0));
    watch.failed("a");
  }
  CHECK(waits == std::vector<int>{1, 2, 4, 8, 16, 32, 64, 64, 64});
  // The package loads at the last attempt.
  for (int i = 0; i < 63; ++i) CHECK(watch.look(files).empty());
  CHECK(watch.look(files) == Stems{"a"});
  for (int i = 0; i < 130; ++i) CHECK(watch.look(files).empty());
}

TEST_CASE("repository watch: a new package of a stem that failed counts at once; a removal is tried again") {
  RepositoryWatch watch({file("a", 1, 10)});
  for (int i = 0; i < 4; ++i) {
    watch.failed("a");
    while (watch.look({file("a", 1, 10)}).empty()) {
    }
  }
  watch.failed("a");
  CHECK(watch.look({file("a", 1, 20)}).empty());
  CHECK(watch.look({file("a", 1, 20)}) == Stems{"a"});
  watch.failed("a");
  CHECK(watch.look({file("a", 1, 20)}) == Stems{"a"});
  CHECK(watch.look({}).empty());
  CHECK(watch.look({}) == Stems{"a"});
  watch.failed("a");
  CHECK(watch.look({}) == Stems{"a"});
  CHECK(watch.look({}).empty());
}

}  // namespace sconce::server::registry
