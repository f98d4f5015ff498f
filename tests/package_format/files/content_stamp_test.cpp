#include "package_format/files/content_stamp.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/package_format/raw_zip.h"

using namespace sconce;
using namespace sconce::testing;
namespace fs = std::filesystem;

TEST_CASE("content stamp: a write right after it has another one") {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) {
    const fs::path path = folder.write("file", "one");
    const int file = ::open(path.c_str(), O_RDWR);
    REQUIRE(file >= 0);
    ContentStamp stamp = ContentStamp::settled(file);
    CHECK(stamp.size() == 3);
    CHECK(stamp.still_of(file));
    REQUIRE(::pwrite(file, "two", 3, 0) == 3);
    CHECK(!stamp.still_of(file));
    CHECK(!ContentStamp().still_of(file));
    ::close(file);
  }
}

TEST_CASE("content stamp: what changes the inode alone leaves the content what it is") {
  const TempFolder folder;
  const fs::path path = folder.write("file", "one");
  const int file = ::open(path.c_str(), O_RDWR);
  REQUIRE(file >= 0);
  ContentStamp stamp = ContentStamp::settled(file);
  fs::rename(path, folder.path() / "renamed");
  CHECK(stamp.still_of(file));
  CHECK(stamp.still_of(file));
  REQUIRE(::fchmod(file, 0600) == 0);
  CHECK(stamp.still_of(file));
  fs::remove(folder.path() / "renamed");
  CHECK(stamp.still_of(file));
  struct stat status {};
  REQUIRE(::fstat(file, &status) == 0);
  const timespec times[2] = {status.st_atim, status.st_mtim};
  REQUIRE(::pwrite(file, "two", 3, 0) == 3);
  REQUIRE(::futimens(file, times) == 0);  // the size and the time are what they were
  CHECK(!stamp.still_of(file));
  ::close(file);
}
