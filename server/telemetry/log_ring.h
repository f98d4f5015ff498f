// LogRing: the last lines of the log, for those who look at it over HTTP. Bounded in lines and in bytes. A line is made
// JSON when it is written, once for all readers. Thread-safe.
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

namespace sconce::server {

class LogRing {
 public:
  struct Line {
    uint64_t number = 0;  // from 1, without gaps
    std::chrono::system_clock::time_point time;
    LogLevel level = LogLevel::kInfo;
    std::string members;  // of the line's JSON: "message":"...","fields":{...}
  };
  using Lines = std::vector<std::shared_ptr<const Line>>;

  LogRing(size_t most_lines, size_t most_bytes) : most_lines_(most_lines), most_bytes_(most_bytes) {}
  LogRing(const LogRing&) = delete;

  // Makes room by dropping the oldest lines; a line that is larger than all the room is dropped itself. std::bad_alloc.
  void add(LogLevel level, std::string members);
  // The newest line's number; 0: there was none.
  uint64_t last() const noexcept { return last_.load(std::memory_order_acquire); }
  // The oldest line's number that is still here; one more than last(): none is.
  uint64_t first() const noexcept;
  // Of the lines after this number that are of this level or above: the oldest ones, `most` of them.
  Lines after(uint64_t number, LogLevel least, size_t most) const;
  // The newest ones, oldest first.
  Lines newest(LogLevel least, size_t most) const;

 private:
  const size_t most_lines_, most_bytes_;
  std::atomic<uint64_t> last_{0};
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<const Line>> lines_ SCONCE_GUARDED_BY(mutex_);
  size_t bytes_ SCONCE_GUARDED_BY(mutex_) = 0;
};

// Keeps the log's lines from now on, for last_log_lines().
void keep_log_lines();
const LogRing& last_log_lines() noexcept;

// {"seq": 7, "time": "...", "level": "info", "message": "...", "fields": {...}}
void append_line(std::string& text, const LogRing::Line& line);
// "warn"; as the setting log_level has it.
const char* level_name(LogLevel level) noexcept;

}  // namespace sconce::server
