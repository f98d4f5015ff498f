#include "server/support/terminal/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace sconce::server {
namespace {

std::string styled(std::string_view code, std::string_view text) {
  return on_terminal() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

bool on_terminal() {
  static const bool result = ::isatty(STDOUT_FILENO) == 1 && !std::getenv("NO_COLOR");
  return result;
}
std::string bold(std::string_view text) { return styled("1", text); }
std::string faint(std::string_view text) { return styled("2", text); }
std::string red(std::string_view text) { return styled("31", text); }
std::string green(std::string_view text) { return styled("32", text); }

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes)
                   : fmt::format("{:.{}f} {}", value,
                                 value < 10    ? 2
                                 : value < 100 ? 1
                                               : 0,
                                 kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace sconce::server
