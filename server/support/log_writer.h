// LogWriter: a thread that writes lines to a descriptor, so that callers never wait for a full pipe or a slow disk.
// Lines that do not fit in the queue are dropped, and a line in their place gives their number. Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sconce::server {

class LogWriter {
 public:
  // room: maximum bytes in the queue. notice: makes the line, with its end, that reports lost lines.
  LogWriter(int descriptor, size_t room, std::function<std::string(uint64_t lost)> notice);
  LogWriter(const LogWriter&) = delete;
  // Does not wait for unwritten lines; flush() does.
  ~LogWriter();

  // A line with its end. Never waits.
  void put(std::string_view line) noexcept;
  // Shows the text that `line` returns below the lines and redraws it several times per second; the descriptor must be
  // a terminal. Empty: nothing is shown.
  void status(std::function<std::string()> line) noexcept;
  // Counts a line that was lost before put().
  void lose() noexcept;
  // Returns true once every line is written, false if that takes longer than `at_most`.
  bool flush(std::chrono::milliseconds at_most) noexcept;
  uint64_t lost() const noexcept;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state) noexcept;

  const std::shared_ptr<State> state_;  // shared with the thread, which may hang in a write
};

}  // namespace sconce::server
