#include "server/support/files/private_copy.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::server;

TEST_CASE("private copy: it stays as it was, whatever becomes of the file") {
  const TempFolder folder;
  const std::string content(3'000'000, 'x');
  const std::filesystem::path file = folder.write("weights.bin", content);
  const PrivateCopy copy(file);
  folder.write("weights.bin", "other");
  std::filesystem::resize_file(file, 0);
  CHECK(copy.text() == content);
  CHECK(content_of(copy.path()) == content);
}

TEST_CASE("private copy: nobody can write to it") {
  const TempFolder folder;
  const PrivateCopy copy(folder.write("file", "text"));
  const Descriptor again(::open(copy.path().c_str(), O_RDWR | O_CLOEXEC));
  if (again.get() >= 0) {
    CHECK(::write(again.get(), "x", 1) < 0);
    CHECK(::ftruncate(again.get(), 0) < 0);
  }
  CHECK(copy.text() == "text");
}

TEST_CASE("private copy: an empty file, and one with a long name") {
  const TempFolder folder;
  CHECK(PrivateCopy(folder.write("empty", "")).bytes().empty());
  CHECK(PrivateCopy(folder.write(std::string(250, 'n'), "x")).text() == "x");
}

TEST_CASE("private copy: what is no file, or too large") {
  const TempFolder folder;
  const auto said = [&](const std::string& name, ErrorCode code, uint64_t most = UINT64_MAX) {
    return error_from(code, [&] { PrivateCopy(folder / name, most); });
  };
  CHECK(said("absent", ErrorCode::kIo).find("absent") != std::string::npos);
  CHECK(said(".", ErrorCode::kIo).find("not a regular file") != std::string::npos);
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(said("fifo", ErrorCode::kIo).find("not a regular file") != std::string::npos);
  folder.write("five", "12345");
  CHECK(PrivateCopy(folder / "five", 5).text() == "12345");
  CHECK(said("five", ErrorCode::kTooLarge, 4).find("more than 4 bytes") != std::string::npos);
}
