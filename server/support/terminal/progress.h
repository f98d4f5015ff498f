// A line on standard error that shows how far something long is, at what rate, and how much time is left. Nothing is
// written where standard error is no terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server {

// "push [=======      ]  54 %  1.20 GiB of 2.21 GiB, 830 MiB/s, 1 s left", in at most so many columns. total: 0 if it
// is not known.
std::string progress_line(std::string_view label, uint64_t done, uint64_t total, double seconds, size_t columns);

// Whether standard error is a terminal on which lines can be drawn again, and how wide it is.
bool errors_are_drawn_on();
size_t error_columns();

// Used by one thread.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Bytes that are done, and all of them. Draws at most ten times a second.
  void show(uint64_t done, uint64_t total);
  // Call this before something else is written to the terminal.
  void erase();

 private:
  using Clock = std::chrono::steady_clock;
  const std::string label_;
  const bool visible_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point drawn_at_{};
  bool drawn_ = false;
};

}  // namespace sconce::server
