// LogWriter: lines on their way to a descriptor, written by a thread of its own: who logs never waits for a pipe that
// nobody reads or a disk that is slow. What finds no room is lost, and a line in its place says how many were.
// Thread-safe.
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
  // room: bytes that may wait. notice: a line, with its end, that says how many were lost.
  LogWriter(int descriptor, size_t room, std::function<std::string(uint64_t lost)> notice);
  LogWriter(const LogWriter&) = delete;
  // Does not wait for what was not written: flush() does.
  ~LogWriter();

  // A line with its end. Never waits for the descriptor.
  void put(std::string_view line) noexcept;
  // For a line that was lost before it came here.
  void lose() noexcept;
  // True: all that was put is written. False: not within this time.
  bool flush(std::chrono::milliseconds at_most) noexcept;
  uint64_t lost() const noexcept;

 private:
  struct State;
  static void run(const std::shared_ptr<State>& state) noexcept;

  const std::shared_ptr<State> state_;  // its thread's as well, which may hang in a write
};

}  // namespace sconce::server
