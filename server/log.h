// The server's log, to standard error. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "server/config.h"

namespace sconce {

void start_log(LogLevel level);
bool log_enabled(LogLevel level) noexcept;
void write_log(LogLevel level, std::string_view message);

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
