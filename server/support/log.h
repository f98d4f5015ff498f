// The server's log, on standard error, as text or JSON lines. From start_log() on, a separate thread writes it, so
// callers never wait; lines that do not fit in the queue are counted and dropped. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "server/support/config.h"
#include "server/support/log_limit.h"
#include "server/support/request_id.h"

namespace sconce::server {

void start_log(LogLevel level, LogFormat format);
// Waits at most one second for unwritten lines. Call this before the process ends.
void end_log() noexcept;
uint64_t lost_log_lines() noexcept;
// Writes a warning at once, ahead of all queued lines. Async-signal-safe. message: plain text.
void log_from_signal(const char* message) noexcept;
// Shows the text that `line` returns below the log lines, if the log is written to a terminal; the log's thread redraws
// it several times per second. Empty: nothing is shown. Not for JSON lines.
void show_status(std::function<std::string()> line);
bool log_enabled(LogLevel level) noexcept;

// A field of a line in addition to its message: key=value in text, a member in JSON.
struct LogField {
  std::string_view key;
  std::string value;
  bool is_number = false;
};
void write_log(LogLevel level, std::string_view message, std::span<const LogField> fields = {}) noexcept;
// Also passes each later line to take(), as members of JSON: "message":"...","fields":{...}. take() must not log.
using TakeLogLine = void(LogLevel level, std::string members);
void pass_on_log_lines(TakeLogLine& take) noexcept;

// While an object lives, log lines of its thread have the request's id and the client's address, which must outlive it.
class LogRequest {
 public:
  LogRequest(const RequestId& id, const std::string& peer) noexcept;
  LogRequest(const LogRequest&) = delete;
  ~LogRequest();

  struct Context {
    const RequestId* id = nullptr;
    const std::string* peer = nullptr;
  };

 private:
  const Context outer_;
};

// The settings of Triton's logging extension.
struct LogSettings {
  bool info = true, warning = true, error = true;
  uint64_t verbose = 0;      // 1: debug, 2: trace
  bool short_dates = false;  // Triton's "default" format instead of ISO 8601; only for text
};
LogSettings log_settings() noexcept;
// kInvalidArgument for short dates in JSON lines.
void change_log(const LogSettings& settings);

// Makes bytes from a client or package safe for a log line: control and non-ASCII bytes become \xNN.
std::string printable(std::string_view text);

// The implementation of log_debug() and others: formats the message.
void write_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;
// Writes the line unless `limit` drops it.
void write_limited(LogLimit& limit, LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;
// Reports the number of lines that `limit` dropped, if a report is due. what: "refusals of requests".
void report_held(LogLimit& limit, std::string_view what) noexcept;

template <class... Args>
void log_debug(fmt::format_string<Args...> format, const Args&... args) {
  if (log_enabled(LogLevel::kDebug)) write_formatted(LogLevel::kDebug, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, const Args&... args) {
  if (log_enabled(LogLevel::kInfo)) write_formatted(LogLevel::kInfo, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, const Args&... args) {
  if (log_enabled(LogLevel::kWarn)) write_formatted(LogLevel::kWarn, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, const Args&... args) {
  if (log_enabled(LogLevel::kError)) write_formatted(LogLevel::kError, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_warn(LogLimit& limit, fmt::format_string<Args...> format, const Args&... args) {
  if (log_enabled(LogLevel::kWarn)) write_limited(limit, LogLevel::kWarn, format, fmt::make_format_args(args...));
}

}  // namespace sconce::server
