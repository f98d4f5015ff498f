#include "server/support/files/file_stamp.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>

#include "tests/files.h"

using namespace sconce::server;
namespace fs = std::filesystem;

TEST_CASE("stamped file: it has changed once after it was written, touched or replaced") {
  const sconce::TempFolder folder;
  const fs::path path = folder.write("file", "text");
  StampedFile file(path.string());
  CHECK(file.path() == path.string());
  CHECK(!file.changed());
  const auto once = [&] {
    CHECK(file.changed());
    CHECK(!file.changed());
  };
  folder.write("file", "longer text");
  once();
  fs::last_write_time(path, fs::last_write_time(path) + std::chrono::nanoseconds(1));
  once();
  // Another file of the same size and time.
  const auto time = fs::last_write_time(path);
  const fs::path other = folder.write("other", "other texts");
  fs::last_write_time(other, time);
  fs::rename(other, path);
  REQUIRE(fs::last_write_time(path) == time);
  once();
}

TEST_CASE("stamped file: while it is gone it has not changed, and a new one has") {
  const sconce::TempFolder folder;
  const fs::path path = folder.write("file", "text");
  StampedFile file(path.string());
  fs::rename(path, folder / "aside");
  CHECK(!file.changed());
  fs::rename(folder / "aside", path);
  CHECK(!file.changed());  // the same one
  fs::remove(path);
  CHECK(!file.changed());
  folder.write("file", "other");
  CHECK(file.changed());
  StampedFile later((folder / "later").string());
  CHECK(!later.changed());
  folder.write("later", "text");
  CHECK(later.changed());
}

TEST_CASE("file stamps: every file counts, and one that is gone") {
  const sconce::TempFolder folder;
  const fs::path a = folder.write("a", "a"), b = folder.write("b", "b");
  const auto stamps = [&] {
    FileStamps all;
    for (const fs::path& path : {a, b}) all.add(path.c_str());
    return all;
  };
  FileStamps before = stamps();
  CHECK(before == stamps());
  CHECK(before.bytes == 2);
  folder.write("b", "longer");
  CHECK(stamps() != before);
  before = stamps();
  fs::remove(a);
  CHECK(stamps() != before);
  CHECK(stamps().bytes == 6);
  CHECK(FileStamps{} == [] {
    FileStamps none;
    none.add("/nowhere/file");
    return none;
  }());
}
