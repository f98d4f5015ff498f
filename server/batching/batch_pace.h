// BatchPace: what a model's runs have taken of late, and how long it therefore pays to wait for more requests.
//
// A run's time is a + b * rows: waiting can save a, once for each request that joins. So the first request waits for
// half of a at most, and only until half of the requests that have lately been around at the same time are there: the
// other half is then being answered while these run. With nobody around nothing waits. Not thread-safe; its owner
// guards it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server {

class BatchPace {
 public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds kLongest = std::chrono::milliseconds(2);

  // A run of `requests` with together `rows` took `time`; `waiting` others were there when it ended.
  void ran(size_t requests, int64_t rows, nanoseconds time, size_t waiting) noexcept;

  nanoseconds delay() const noexcept;  // 0 until runs of different sizes have been seen
  size_t enough() const noexcept;      // requests that are not worth waiting beyond

 private:
  // Sums over runs, older ones counting less and less.
  double weight_ = 0, rows_ = 0, time_ = 0, rows_rows_ = 0, rows_time_ = 0;
  double around_ = 0;  // requests running or waiting
};

}  // namespace sconce::server
