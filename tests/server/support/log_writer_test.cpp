#include "server/support/log_writer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace sconce::server {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{60'000};

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end = ends[0];
    write_end = ends[1];
    (void)::fcntl(write_end, F_SETPIPE_SZ, 4096);
  }
  ~Pipe() {
    ::close(read_end);
    ::close(write_end);
  }
  // Until a line reports lost ones.
  std::vector<std::string> lines_to(const std::string& last) {
    std::string text;
    char piece[4096];
    while (text.find(last + "\n") == std::string::npos) {
      const ssize_t bytes = ::read(read_end, piece, sizeof piece);
      REQUIRE(bytes > 0);
      text.append(piece, static_cast<size_t>(bytes));
    }
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
};

std::string notice(uint64_t lost) { return "lost " + std::to_string(lost) + "\n"; }

}  // namespace

TEST_CASE("log writer: nobody waits for a pipe that is not read, and each lost line is told of in its place") {
  Pipe pipe;
  LogWriter writer(pipe.write_end, 4096, notice);
  int64_t put = 0;
  while (writer.lost() < 100) writer.put("line " + std::to_string(put++) + "\n");
  CHECK_FALSE(writer.flush(milliseconds(1)));
  std::vector<std::string> lines;
  std::thread reader([&] { lines = pipe.lines_to("end"); });
  CHECK(writer.flush(kLong));
  // Now there is room.
  const int64_t last = put;
  writer.put("line " + std::to_string(put++) + "\n");
  CHECK(writer.flush(kLong));
  writer.put("end\n");
  reader.join();
  int64_t next = 0;
  uint64_t told = 0;
  for (const std::string& line : lines) {
    if (line.starts_with("lost ")) {
      const int64_t lost = std::stoll(line.substr(5));
      told += static_cast<uint64_t>(lost);
      next += lost;
    } else if (line != "end") {
      CHECK(line == "line " + std::to_string(next));
      ++next;
    }
  }
  CHECK(next == put);
  CHECK(lines[lines.size() - 2] == "line " + std::to_string(last));
  CHECK(told == writer.lost());
}

TEST_CASE("log writer: a status stands below the lines, and is gone when nobody sets it") {
  Pipe pipe;
  LogWriter writer(pipe.write_end, 4096, notice);
  writer.status([] { return std::string("50 %"); });
  CHECK(writer.flush(kLong));
  writer.put("first\n");
  CHECK(writer.flush(kLong));
  writer.status({});
  CHECK(writer.flush(kLong));
  writer.put("second\n");
  writer.put("end\n");
  const std::vector<std::string> lines = pipe.lines_to("end");
  REQUIRE(lines.size() == 3);
  // What the terminal shows of a line is what stands behind its last erasure.
  CHECK(lines[0].starts_with("50 %\r\x1b[K"));
  CHECK(lines[0].ends_with("\r\x1b[Kfirst"));
  CHECK(lines[1].starts_with("50 %\r\x1b[K"));
  CHECK(lines[1].ends_with("\r\x1b[Ksecond"));
  CHECK(lines[2] == "end");
}
TEST_CASE("log writer: a line that is longer than all room is lost, others are not") {
  Pipe pipe;
  LogWriter writer(pipe.write_end, 100, notice);
  writer.put("before\n");
  CHECK(writer.flush(kLong));
  writer.put(std::string(200, 'x') + "\n");
  CHECK(writer.flush(kLong));
  writer.put("after\n");
  writer.lose();
  CHECK(writer.flush(kLong));
  writer.put("end\n");
  const std::vector<std::string> lines = pipe.lines_to("end");
  CHECK(lines == std::vector<std::string>{"before", "lost 1", "after", "lost 1", "end"});
  CHECK(writer.lost() == 2);
}

TEST_CASE("log writer: lines of a reader that has gone are lost and counted") {
  void (*const before)(int) = std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  LogWriter writer(pipe.write_end, 4096, notice);
  ::close(std::exchange(pipe.read_end, -1));
  for (int i = 0; i < 10; ++i) {
    writer.put("line\n");
    CHECK(writer.flush(kLong));
  }
  CHECK(writer.lost() == 10);
  std::signal(SIGPIPE, before);
}

}  // namespace sconce::server
