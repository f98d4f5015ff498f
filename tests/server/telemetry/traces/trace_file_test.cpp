#include "server/telemetry/traces/trace_file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "tests/files.h"

namespace sconce::server::telemetry {
namespace {

// Files of this process may not grow beyond so many bytes.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

}  // namespace

TEST_CASE("trace file: a piece that does not fit leaves nothing behind, and what comes later follows what stands") {
  const TempFolder folder;
  const std::filesystem::path path = folder / "trace";
  const std::string first(60, 'a'), second(60, 'b'), third(30, 'c');
  {
    TraceFile file;
    REQUIRE(file.open(path.string()));
    CHECK(file.write(first));
    {
      const FileLimit limit(100);
      CHECK_FALSE(file.write(second));
      CHECK(errno == EFBIG);
      CHECK(content_of(path) == first);
      CHECK(file.write(third));
    }
    CHECK(file.write(second));
  }
  CHECK(content_of(path) == first + third + second);
}

TEST_CASE("trace file: a device that takes nothing, and a folder that is not there, say why") {
  TraceFile file;
  REQUIRE(file.open("/dev/full"));
  CHECK_FALSE(file.write("x"));
  CHECK(errno == ENOSPC);
  CHECK_FALSE(file.open("/nonexistent/x"));
  CHECK(errno == ENOENT);
  CHECK_FALSE(file.is_open());
}

}  // namespace sconce::server::telemetry
