#include "server/cli/top/screen.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/commands/top/overview_events.h"

namespace sconce::server::cli {
namespace {

History made(int ticks) {
  History history;
  for (int tick = 1; tick <= ticks; ++tick) history.add(overview_of(overview_event(tick)));
  return history;
}

// Columns of a line: characters, without the codes of colours.
size_t columns_of(const std::string& line) {
  size_t columns = 0;
  bool code = false;
  for (const char c : line) {
    if (c == '\x1b') code = true;
    if (!code && (static_cast<unsigned char>(c) & 0xc0) != 0x80) ++columns;
    if (code && c == 'm') code = false;
  }
  return columns;
}

bool some_line_has(const std::vector<std::string>& lines, const std::string& part) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("screen: sparklines") {
  CHECK(sparkline({}, 3) == "   ");
  CHECK(sparkline({0, 4, 8}, 4) == " ▁▅█");
  CHECK(sparkline({9, 1, 1}, 2) == "██");
  CHECK(sparkline({0, 0}, 2) == "▁▁");
}

TEST_CASE("screen: models, GPUs, alerts and operations") {
  const std::vector<std::string> lines = screen_lines(made(3), "http://host:8003", "", {160, 40}, false);
  CHECK(lines[0] ==
        "sconce 0.1.0  http://host:8003  not ready  up 2:46:43  130 answers/s  3 connections  100 MiB  CPU 25 %");
  CHECK(lines[1] == "GPU GPU-1  50 %  1.00 GiB  300 W");
  CHECK(lines[2] == "critical: other is not ready: gone");
  CHECK(lines[3].empty());
  CHECK(lines[5] ==
        "digits       1 READY            120           ██  100.00 us  198.00 us      4    2.0    2.0  60.0 KiB        "
        "1 2 v2");
  CHECK(some_line_has(lines, "UNAVAILABLE"));
  CHECK(lines.back() ==
        "operation 3  digits 1  running receiving  [=====               ] 25 % of 4.00 MiB, 2.00 MiB/s  label v3");
}

TEST_CASE("screen: it fits the terminal, whatever its size") {
  const History history = made(4);
  for (size_t columns = 1; columns < 130; ++columns)
    for (const size_t rows : {1, 2, 5, 8, 24}) {
      const std::vector<std::string> lines =
          screen_lines(history, "http://host:8003", "a problem", {columns, rows}, true);
      CHECK(lines.size() <= rows);
      for (const std::string& line : lines) CHECK(columns_of(line) <= columns);
    }
}

TEST_CASE("screen: more models than rows") {
  OrderedJson event = overview_event(1);
  for (int i = 0; i < 100; ++i) {
    event["models"].push_back(event["models"][0]);
    event["models"].back()["name"] = "m" + std::to_string(i);
  }
  History history;
  history.add(overview_of(event));
  const std::vector<std::string> lines = screen_lines(history, "x", "", {120, 20}, false);
  CHECK(lines.size() <= 20);
  CHECK(some_line_has(lines, " more"));
  CHECK(some_line_has(lines, "operation 3"));
}

TEST_CASE("screen: no colours, no codes") {
  for (const std::string& line : screen_lines(made(2), "x", "gone", {160, 40}, false))
    CHECK(line.find('\x1b') == std::string::npos);
  CHECK(some_line_has(screen_lines(made(2), "x", "gone", {160, 40}, true), "\x1b[31m"));
}

TEST_CASE("screen: before anything has come") {
  CHECK(some_line_has(screen_lines(History(), "http://host:8003", "", {80, 24}, false), "waiting"));
  CHECK(some_line_has(screen_lines(History(), "x", "cannot connect", {80, 24}, false), "cannot connect"));
}

TEST_CASE("screen: lines for a log, and JSON") {
  const History history = made(3);
  const std::vector<std::string> lines = log_lines(history);
  CHECK(lines[0] ==
        "2026-09-21T14:13:23.000Z digits 1 READY 120/s p50 100.00 us p99 198.00 us queue 4 batch 2.0 errors 2.0/s "
        "memory 60.0 KiB weights 2 v2");
  CHECK(some_line_has(lines, "critical: other is not ready: gone"));
  const OrderedJson document = rates_document(history);
  CHECK(document["models"][0]["requests_per_s"].get<double>() == doctest::Approx(120));
  CHECK(document["models"][0]["p99_s"].get<double>() == doctest::Approx(198e-6));
  CHECK(document["models"][1]["p50_s"].is_null());
  CHECK(document["models"][1]["label"].is_null());
  CHECK(document["alerts"][0]["severity"] == "critical");
  CHECK(document["gpus"][0]["memory_total"].is_null());
}

}  // namespace sconce::server::cli
