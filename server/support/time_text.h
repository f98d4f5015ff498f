// Times as text. Written by hand, because fmt/chrono.h adds a second of compile time to each source that includes it.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <string>

namespace sconce::server {

namespace detail {
inline std::string formatted(const char* format, std::chrono::system_clock::time_point time) {
  const std::time_t whole = std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  std::tm parts{};
  ::gmtime_r(&whole, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}
}  // namespace detail

// "2026-01-31T12:00:00.000Z"
inline std::string time_text(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
  return fmt::format("{}.{:03}Z", detail::formatted("%Y-%m-%dT%H:%M:%S", time), milliseconds);
}

// In the form of the Date field: "Sat, 31 Jan 2026 12:00:00 GMT". The program keeps the C locale, whose names are
// English.
inline std::string http_date(std::chrono::system_clock::time_point time) {
  return detail::formatted("%a, %d %b %Y %H:%M:%S GMT", time);
}

}  // namespace sconce::server
