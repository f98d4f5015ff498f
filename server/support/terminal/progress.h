// A progress line on standard error for a long operation, with its rate and remaining time. Nothing is written if
// standard error is not a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace sconce::server {

// "push [=======      ]  54 %  1.20 GiB of 2.21 GiB, 830 MiB/s, 1 s left", in at most `columns` columns. total: 0 if
// unknown.
std::string progress_line(std::string_view label, uint64_t done, uint64_t total, double seconds, size_t columns);

// Whether standard error is a terminal on which lines can be redrawn, and its width.
bool errors_are_drawn_on();
size_t error_columns();

// Used by one thread.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar() { erase(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws the progress, at most ten times per second. done, total: bytes.
  void show(uint64_t done, uint64_t total);
  // Call this before other output is written to the terminal.
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
