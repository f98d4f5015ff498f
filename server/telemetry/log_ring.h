// LogRing: the last lines of the log, for readers over HTTP. Bounded in lines and in bytes. A line is converted to JSON
// when it is written, once for all readers. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "server/support/config.h"

namespace sconce::server::telemetry {

class LogRing {
 public:
  struct Line {
    uint64_t number = 0;  // from 1, without gaps
    std::chrono::system_clock::time_point time;
    LogLevel level = LogLevel::kInfo;
    std::string members;  // members of the line's JSON: "message":"...","fields":{...}
  };
  using Lines = std::vector<std::shared_ptr<const Line>>;

  LogRing(size_t most_lines, size_t most_bytes) : most_lines_(most_lines), most_bytes_(most_bytes) {}
  LogRing(const LogRing&) = delete;

  // Evicts the oldest lines to make room; a line larger than the whole ring is dropped. std::bad_alloc.
  void add(LogLevel level, std::string members);
  // Number of the newest line; 0: none yet.
  uint64_t last() const noexcept { return last_.load(std::memory_order_acquire); }
  // Number of the oldest stored line; last() + 1: none is stored.
  uint64_t first() const noexcept;
  // The oldest lines after `number` with level `least` or above, at most `most`.
  Lines after(uint64_t number, LogLevel least, size_t most) const;
  // The newest such lines, oldest first.
  Lines newest(LogLevel least, size_t most) const;

 private:
  const size_t most_lines_, most_bytes_;
  std::atomic<uint64_t> last_{0};
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const Line>> lines_ SCONCE_GUARDED_BY(mutex_);
  size_t bytes_ SCONCE_GUARDED_BY(mutex_) = 0;
};

// Starts storing the log's lines, for last_log_lines().
void keep_log_lines();
const LogRing& last_log_lines() noexcept;

// {"seq": 7, "time": "...", "level": "info", "message": "...", "fields": {...}}
void append_line(std::string& text, const LogRing::Line& line);
// "warn", as in setting log_level.
const char* level_name(LogLevel level) noexcept;

}  // namespace sconce::server::telemetry
