// The server's log, to standard error, as text or JSON lines. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <span>
#include <string>
#include <string_view>

#include "server/config.h"
#include "server/request_id.h"

namespace sconce {

void start_log(LogLevel level, LogFormat format);
bool log_enabled(LogLevel level) noexcept;

// A member of a line besides its message: key=value, or a member of the JSON object.
struct LogField {
  std::string_view key;
  std::string value;
  bool is_number = false;
};
void write_log(LogLevel level, std::string_view message, std::span<const LogField> fields = {});

// While it lives, lines of this thread carry the request's id.
class LogRequest {
 public:
  explicit LogRequest(const RequestId& id) noexcept;
  LogRequest(const LogRequest&) = delete;
  ~LogRequest();

 private:
  const RequestId* const outer_;
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

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kDebug)) write_log(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kInfo)) write_log(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warn(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kWarn)) write_log(LogLevel::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(LogLevel::kError)) write_log(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sconce
