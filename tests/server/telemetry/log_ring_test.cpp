#include "server/telemetry/log_ring.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

namespace sconce::server::telemetry {
namespace {

std::string members(const std::string& text) { return R"("message":")" + text + R"(","fields":{})"; }

std::vector<uint64_t> numbers(const LogRing::Lines& lines) {
  std::vector<uint64_t> found;
  for (const auto& line : lines) found.push_back(line->number);
  return found;
}

using Numbers = std::vector<uint64_t>;

}  // namespace

TEST_CASE("log ring: numbers count from 1, and old lines make room") {
  LogRing ring(3, 1 << 20);
  CHECK(ring.last() == 0);
  CHECK(ring.first() == 1);
  CHECK(ring.newest(LogLevel::kTrace, 10).empty());
  for (int i = 0; i < 5; ++i) ring.add(LogLevel::kInfo, members(std::to_string(i)));
  CHECK(ring.last() == 5);
  CHECK(ring.first() == 3);
  CHECK(numbers(ring.newest(LogLevel::kTrace, 10)) == Numbers{3, 4, 5});
  CHECK(numbers(ring.newest(LogLevel::kTrace, 2)) == Numbers{4, 5});
  CHECK(ring.newest(LogLevel::kTrace, 1)[0]->members == members("4"));
}

TEST_CASE("log ring: its bytes are bounded too") {
  LogRing ring(1000, 100);
  for (int i = 0; i < 10; ++i) ring.add(LogLevel::kInfo, std::string(30, 'x'));
  CHECK(numbers(ring.newest(LogLevel::kTrace, 100)) == Numbers{8, 9, 10});
  // A line that is larger than everything leaves nothing, and is counted all the same.
  ring.add(LogLevel::kInfo, std::string(101, 'x'));
  CHECK(ring.last() == 11);
  CHECK(ring.first() == 12);
  ring.add(LogLevel::kInfo, "x");
  CHECK(numbers(ring.newest(LogLevel::kTrace, 100)) == Numbers{12});
}

TEST_CASE("log ring: lines after a number, of a level and above") {
  LogRing ring(100, 1 << 20);
  for (const LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kInfo})
    ring.add(level, members("x"));
  CHECK(numbers(ring.after(0, LogLevel::kTrace, 100)) == Numbers{1, 2, 3, 4, 5});
  CHECK(numbers(ring.after(2, LogLevel::kTrace, 2)) == Numbers{3, 4});
  CHECK(numbers(ring.after(0, LogLevel::kWarn, 100)) == Numbers{3, 4});
  CHECK(numbers(ring.newest(LogLevel::kWarn, 1)) == Numbers{4});
  CHECK(ring.after(5, LogLevel::kTrace, 100).empty());
  CHECK(ring.after(UINT64_MAX, LogLevel::kTrace, 100).empty());
}

TEST_CASE("log ring: a line as JSON") {
  std::string text;
  const std::chrono::system_clock::time_point time(std::chrono::milliseconds(1500));
  append_line(text, {7, time, LogLevel::kWarn, members("said")});
  CHECK(text == R"({"seq":7,"time":"1970-01-01T00:00:01.500Z","level":"warn","message":"said","fields":{}})");
}

TEST_CASE("log ring: many threads, and a reader that misses none of what is kept") {
  constexpr uint64_t kThreads = 4, kEach = 2000;
  LogRing ring(kThreads * kEach, 1 << 20);
  std::vector<std::thread> writers;
  for (uint64_t i = 0; i < kThreads; ++i)
    writers.emplace_back([&] {
      for (uint64_t n = 0; n < kEach; ++n) ring.add(LogLevel::kInfo, "m");
    });
  uint64_t seen = 0;
  while (seen < kThreads * kEach) {
    for (const auto& line : ring.after(seen, LogLevel::kTrace, 100)) {
      REQUIRE(line->number == seen + 1);
      seen = line->number;
    }
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(ring.last() == kThreads * kEach);
}

}  // namespace sconce::server::telemetry
