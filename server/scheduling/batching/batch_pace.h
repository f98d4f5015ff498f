// BatchPace: estimates from a model's recent runs how long waiting for more requests pays.
//
// A run takes a + b * rows, so waiting saves a for each request that joins. The first request waits for at most a / 2,
// and only until half of the recently present requests are there; the other half is being answered while these run. A
// single client never waits. Not thread-safe; its owner guards it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sconce::server::scheduling {

class BatchPace {
 public:
  using nanoseconds = std::chrono::nanoseconds;
  static constexpr nanoseconds kLongest = std::chrono::milliseconds(2);

  // A run of `requests` requests with `rows` rows in all took `time`; `waiting` other requests were queued when it
  // ended.
  void ran(size_t requests, int64_t rows, nanoseconds time, size_t waiting) noexcept;

  nanoseconds delay() const noexcept;  // 0 until runs of different sizes were measured
  size_t enough() const noexcept;      // with this number of requests, waiting for more does not pay

 private:
  // Sums over runs; older runs count less.
  double weight_ = 0, rows_ = 0, time_ = 0, rows_rows_ = 0, rows_time_ = 0;
  double around_ = 0;  // number of requests running or waiting
};

}  // namespace sconce::server::scheduling
