// The server's log, to standard error, as text or JSON lines. From start_log() on a thread of its own writes it, and
// whoever logs never waits: lines for which there is no room are lost and counted. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/base/config.h"
#include "server/base/log_limit.h"
#include "server/base/request_id.h"

namespace sconce::server {

void start_log(LogLevel level, LogFormat format);
// Waits for what is not written yet, but no longer than a second: before the process ends.
void end_log() noexcept;
uint64_t lost_log_lines() noexcept;
bool log_enabled(LogLevel level) noexcept;

// A member of a line besides its message: key=value, or a member of the JSON object.
struct LogField {
  std::string_view key;
  std::string value;
  bool is_number = false;
};
void write_log(LogLevel level, std::string_view message, std::span<const LogField> fields = {}) noexcept;

// While it lives, lines of this thread carry the request's id and the address of the client at the other end, which
// outlive it.
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

// What Triton's logging extension shows and sets.
struct LogSettings {
  bool info = true, warning = true, error = true;
  uint64_t verbose = 0;      // 1: debug, 2: trace
  bool short_dates = false;  // Triton's "default" format rather than ISO 8601; text only
};
LogSettings log_settings() noexcept;
// kInvalidArgument for short dates in JSON lines.
void change_log(const LogSettings& settings);

// Bytes from a client or a package as they may stand in a log line: control and non-ASCII bytes as \xNN.
std::string printable(std::string_view text);

// The same for a message that is put together here.
void write_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;
// Lines of a kind that `limit` keeps within bounds.
void write_limited(LogLimit& limit, LogLevel level, fmt::string_view format, fmt::format_args args) noexcept;
// Says how many lines `limit` has held back, if that was not said yet and may be now. what: "refusals of requests".
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
