#include "server/support/terminal/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "server/support/terminal/text.h"

namespace sconce::server {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(std::min(seconds, 359'999.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void write_errors(const std::string& text) {
  // If the terminal does not accept it, one drawing is lost.
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace

bool errors_are_drawn_on() {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && !(terminal && std::strcmp(terminal, "dumb") == 0);
}

size_t error_columns() {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

std::string progress_line(std::string_view label, uint64_t done, uint64_t total, double seconds, size_t columns) {
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  std::string text = format_bytes(done);
  if (total > 0) text += " of " + format_bytes(total);
  if (rate > 0) text += ", " + format_bytes(static_cast<uint64_t>(rate)) + "/s";
  if (rate > 0 && total > done) text += ", " + duration_text(static_cast<double>(total - done) / rate) + " left";
  if (total > 0) {
    const double share = std::min(static_cast<double>(done) / static_cast<double>(total), 1.0);
    text = fmt::format("{:3.0f} %  {}", std::floor(100 * share), text);
    constexpr size_t kWidest = 30, kLeast = 5, kAround = 4;  // kAround: the brackets and two blanks
    const size_t used = label.size() + text.size() + kAround;
    if (columns > used + kLeast) {
      const size_t width = std::min(columns - used - 1, kWidest);
      const auto full = static_cast<size_t>(share * static_cast<double>(width));
      text = fmt::format("[{}{}] {}", std::string(full, '='), std::string(width - full, ' '), text);
    }
  }
  std::string line = label.empty() ? text : std::string(label) + " " + text;
  // The last column stays free, because some terminals wrap after it.
  if (line.size() >= columns) line.resize(columns > 0 ? columns - 1 : 0);
  return line;
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), visible_(errors_are_drawn_on()) {}

void ProgressBar::show(uint64_t done, uint64_t total) {
  if (!visible_) return;
  const Clock::time_point now = Clock::now();
  if (drawn_ && now - drawn_at_ < kRedraw) return;
  drawn_at_ = now;
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  write_errors("\r\x1b[K" + progress_line(label_, done, total, seconds, error_columns()));
}

void ProgressBar::erase() {
  if (std::exchange(drawn_, false)) write_errors("\r\x1b[K");
}

}  // namespace sconce::server
