#include "server/registry/remote/remote_cache.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = uint64_t{1} << 20;

// An object of a MiB that was last used at this second.
fs::path object(const TempFolder& folder, const std::string& name, int64_t used) {
  const fs::path path = folder.write("objects/" + name, std::string(kMiB, 'x'));
  const timespec times[] = {{used, 0}, {0, UTIME_OMIT}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  return path;
}

TEST_CASE("what was used least lately makes room") {
  const TempFolder folder;
  RemoteCache cache(folder.path(), 3 * kMiB + kMiB / 2);
  const fs::path old = object(folder, "old", 10), older = object(folder, "older", 5), fresh = object(folder, "new", 20);
  cache.make_room(kMiB / 4);
  CHECK(fs::exists(older));
  cache.make_room(kMiB);
  CHECK_FALSE(fs::exists(older));
  CHECK(fs::exists(old));
  CHECK(fs::exists(fresh));
  CHECK(cache.bytes() < 3 * kMiB);
}

TEST_CASE("what is served is never removed, by whichever process; what is served no more goes with its links") {
  const TempFolder folder;
  const RemoteUrl url = parse_remote_url("s3://models/prefix");
  const fs::path one = object(folder, "one", 1), two = object(folder, "two", 2);
  RemoteCache cache(folder.path(), 2 * kMiB + kMiB / 2);
  {
    RemoteCache server(folder.path(), 0);
    const fs::path mirror = server.mirror(url, "");
    place_file(one, mirror / "m.pt2");
    cache.make_room(kMiB);
    CHECK(fs::exists(one));
    CHECK_FALSE(fs::exists(two));
    CHECK_THROWS_AS(cache.make_room(2 * kMiB), Error);
    CHECK(fs::exists(mirror / "m.pt2"));
  }
  cache.make_room(2 * kMiB);
  CHECK_FALSE(fs::exists(one));
  RemoteCache server(folder.path(), 0);
  CHECK_FALSE(fs::exists(server.mirror(url, "") / "m.pt2"));
}

TEST_CASE("a download that nobody goes on with makes room first; one under way stays") {
  const TempFolder folder;
  const fs::path kept = object(folder, "kept", 1);
  const fs::path left = folder.write("partial/left", std::string(kMiB, 'x')),
                 journal = folder.write("partial/left.journal", "x"),
                 held = folder.write("partial/held", std::string(kMiB, 'x'));
  const Descriptor holder(::open(held.c_str(), O_RDWR));
  REQUIRE(::flock(holder.get(), LOCK_EX) == 0);
  RemoteCache cache(folder.path(), 3 * kMiB + kMiB / 2);
  cache.make_room(kMiB);
  CHECK(fs::exists(kept));
  CHECK(fs::exists(held));
  CHECK_FALSE(fs::exists(left));
  CHECK_FALSE(fs::exists(journal));
}

TEST_CASE("nothing is removed for a file that has no room at all") {
  const TempFolder folder;
  const RemoteUrl url = parse_remote_url("s3://models/prefix");
  const fs::path served = object(folder, "served", 1), idle = object(folder, "idle", 2);
  RemoteCache cache(folder.path(), 3 * kMiB);
  place_file(served, cache.mirror(url, "") / "m.pt2");
  for (const uint64_t bytes : {5 * kMiB / 2, 4 * kMiB, UINT64_MAX - kMiB, UINT64_MAX})
    CHECK_THROWS_AS(cache.make_room(bytes), Error);
  CHECK(fs::exists(idle));
}

TEST_CASE("what was used least lately goes before the disk is full") {
  const TempFolder folder;
  const fs::path old = object(folder, "old", 1), fresh = object(folder, "new", 2);
  // A disk that has room for two objects and a half.
  const auto free = [](const fs::path& of) {
    const auto objects = std::distance(fs::directory_iterator(of / "objects"), fs::directory_iterator());
    return (5 - 2 * static_cast<uint64_t>(objects)) * kMiB / 2;
  };
  RemoteCache cache(folder.path(), 0, free);
  cache.make_room(kMiB / 2);
  CHECK(fs::exists(old));
  cache.make_room(100 * kMiB);  // nothing helps, so nothing goes
  CHECK(fs::exists(old));
  cache.make_room(kMiB);
  CHECK_FALSE(fs::exists(old));
  CHECK(fs::exists(fresh));
}

TEST_CASE("what the cache has of an address is known without asking") {
  const TempFolder folder;
  const std::string digest(64, 'a'), key(64, '1'), other(64, '2'), gone(64, '3');
  folder.write("objects/" + digest, "xyz");
  const auto known = [&](const std::string& name, const std::string& url, const std::string& of) {
    folder.write("known/" + name, R"({"url":")" + url + R"(","validator":"\"e\"","digest":")" + of + R"(","boot":""})");
  };
  known(key, "s3://models/r/m/1/model.pt2", digest);
  known(other, "s3://models/r2/m.pt2", digest);
  known(gone, "s3://models/r/n.pt2", std::string(64, 'b'));
  const RemoteCache cache(folder.path(), 0);
  const std::vector<RemoteFile> files = cache.known_below(parse_remote_url("s3://models/r"));
  REQUIRE(files.size() == 1);
  CHECK(files[0] == RemoteFile{"m/1/model.pt2", 3, "\"e\""});
}

TEST_CASE("a cache that is made here is its owner's alone") {
  const TempFolder folder;
  const RemoteCache made(folder / "a/b", 0);
  CHECK(fs::status(folder / "a/b").permissions() == fs::perms::owner_all);
  fs::permissions(folder.path(), fs::perms(0755));
  const RemoteCache found(folder.path(), 0);
  CHECK(fs::status(folder.path()).permissions() == fs::perms(0755));
}

TEST_CASE("a file is placed under a name as long as names can be") {
  const TempFolder folder;
  const fs::path file = folder.write("file", "new"), place = folder / (std::string(251, 'a') + ".pt2");
  place_file(file, place);
  CHECK(content_of(place) == "new");
}

TEST_CASE("a file is placed as a link, over what was there") {
  const TempFolder folder;
  const fs::path file = folder.write("file", "new"), place = folder.write("below/place", "old");
  place_file(file, place);
  CHECK(content_of(place) == "new");
  CHECK(fs::hard_link_count(file) == 2);
  place_file(file, place);
  CHECK(fs::hard_link_count(file) == 2);
  CHECK_THROWS_AS(place_file(file, folder / "absent/place"), Error);
}

}  // namespace
}  // namespace sconce::server::registry
