#include "server/rollout/work/weights_dir.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "sconce/error.h"
#include "tests/files.h"

namespace sconce::server::rollout {

namespace fs = std::filesystem;

namespace {

// secret beside a folder `dir` with file, sub/file, and links: inside -> sub/file, outside -> ../secret, up -> ..
class Tree {
 public:
  Tree() {
    root_.write("secret", "secret");
    root_.write("dir/file", "file");
    root_.write("dir/sub/file", "sub");
    fs::create_symlink("sub/file", root_.path() / "dir" / "inside");
    fs::create_symlink("../secret", root_.path() / "dir" / "outside");
    fs::create_symlink("..", root_.path() / "dir" / "up");
  }
  std::string dir() const { return (root_ / "dir").string(); }
  std::string secret() const { return (root_ / "secret").string(); }

 private:
  TempFolder root_;
};

std::string content(const std::string& directory, const std::string& name) {
  try {
    const WeightsFile file(directory, name);
    return content_of(file.path());
  } catch (const Error& e) {
    return wire_name(e.code());
  }
}

}  // namespace

TEST_CASE("weights_dir: files below it, and no others") {
  const Tree tree;
  CHECK(content(tree.dir(), "file") == "file");
  CHECK(content(tree.dir(), "sub/file") == "sub");
  CHECK(content(tree.dir(), "./sub/../sub/file") == "sub");
  CHECK(content(tree.dir(), "inside") == "sub");
  for (const std::string& name : {std::string("outside"), std::string("up/secret"), std::string("../secret"),
                                  std::string("sub/../../secret"), std::string(".."), tree.secret()}) {
    CAPTURE(name);
    CHECK(content(tree.dir(), name) == "FORBIDDEN");
  }
  CHECK(content(tree.dir(), "missing") == "NOT_FOUND");
  CHECK(content(tree.dir(), "file/x") == "NOT_FOUND");
  CHECK(content(tree.dir(), "sub") == "INVALID_ARGUMENT");
  CHECK(content(tree.dir(), "") == "INVALID_ARGUMENT");
  CHECK(content(tree.dir(), std::string("file\0x", 6)) == "INVALID_ARGUMENT");
  CHECK(content("", "file") == "FORBIDDEN");
  CHECK(content(tree.dir() + "/missing", "file") == "IO");
}

TEST_CASE("weights_dir: where there is no openat2") {
  const Tree tree;
  const int directory = ::open(tree.dir().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(directory >= 0);
  for (const char* name : {"file", "sub/file", "./sub//file"}) {
    CAPTURE(std::string(name));
    const int fd = open_stepwise(directory, name);
    CHECK(fd >= 0);
    ::close(fd);
  }
  for (const std::string& name : {std::string("outside"), std::string("inside"), std::string("up/secret"),
                                  std::string("../secret"), std::string("sub/../file"), tree.secret()}) {
    CAPTURE(name);
    CHECK(open_stepwise(directory, name) == -1);
    CHECK((errno == EXDEV || errno == ELOOP || errno == ENOTDIR));
  }
  CHECK(open_stepwise(directory, "missing/x") == -1);
  CHECK(errno == ENOENT);
  ::close(directory);
}

}  // namespace sconce::server::rollout
