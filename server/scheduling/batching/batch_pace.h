// BatchPace: estimates from a model's recent runs how long it pays to wait for more requests.
//
// A run takes a + b * rows. Waiting saves a for each request that joins. So the first request waits for a / 2 at most,
// and only until half of the requests that were lately present are there; the other half is being answered while these
// run. A client alone never waits. Not thread-safe; its owner guards it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server {

class BatchPace {
 public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds kLongest = std::chrono::milliseconds(2);

  // A run of `requests` with `rows` in all took `time`; `waiting` others were there when it ended.
  void ran(size_t requests, int64_t rows, nanoseconds time, size_t waiting) noexcept;

  nanoseconds delay() const noexcept;  // 0 until runs of different sizes were seen
  size_t enough() const noexcept;      // with so many requests, waiting for more does not pay

 private:
  // Sums over runs; older runs count less.
  double weight_ = 0, rows_ = 0, time_ = 0, rows_rows_ = 0, rows_time_ = 0;
  double around_ = 0;  // requests running or waiting
};

}  // namespace sconce::server
