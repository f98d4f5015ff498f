#include "server/telemetry/log_ring.h"

#include <algorithm>
#include <utility>

#include "server/support/enum_name.h"
#include "server/support/log.h"
#include "server/support/time_text.h"

namespace sconce::server::telemetry {
namespace {

// Never destroyed, because threads may log until the process ends.
LogRing& ring() {
  constexpr size_t kLines = 2000, kBytes = 512 * 1024;
  static LogRing& instance = *new LogRing(kLines, kBytes);
  return instance;
}

}  // namespace

void keep_log_lines() {
  pass_on_log_lines(*+[](LogLevel level, std::string members) { ring().add(level, std::move(members)); });
}

const LogRing& last_log_lines() noexcept { return ring(); }

void LogRing::add(LogLevel level, std::string members) {
  auto line = std::make_shared<Line>(Line{0, std::chrono::system_clock::now(), level, std::move(members)});
  const size_t bytes = line->members.size();
  const MutexLock lock(mutex_);
  const uint64_t number = line->number = last_.load(std::memory_order_relaxed) + 1;
  lines_.push_back(std::move(line));
  bytes_ += bytes;
  while (lines_.size() > most_lines_ || bytes_ > most_bytes_) {
    bytes_ -= lines_.front()->members.size();
    lines_.pop_front();
  }
  last_.store(number, std::memory_order_release);
}

uint64_t LogRing::first() const noexcept {
  const MutexLock lock(mutex_);
  return lines_.empty() ? last() + 1 : lines_.front()->number;
}

LogRing::Lines LogRing::after(uint64_t number, LogLevel least, size_t most) const {
  Lines found;
  const MutexLock lock(mutex_);
  const auto begin = std::partition_point(
      lines_.begin(), lines_.end(), [&](const std::shared_ptr<const Line>& line) { return line->number <= number; });
  for (auto it = begin; it != lines_.end() && found.size() < most; ++it)
    if ((*it)->level >= least) found.push_back(*it);
  return found;
}

LogRing::Lines LogRing::newest(LogLevel least, size_t most) const {
  Lines found;
  const MutexLock lock(mutex_);
  for (auto it = lines_.rbegin(); it != lines_.rend() && found.size() < most; ++it)
    if ((*it)->level >= least) found.push_back(*it);
  std::reverse(found.begin(), found.end());
  return found;
}

const char* level_name(LogLevel level) noexcept {
  return name_of(level, {"trace", "debug", "info", "warn", "error", "off"});
}

void append_line(std::string& text, const LogRing::Line& line) {
  text.append("{\"seq\":").append(std::to_string(line.number));
  text.append(",\"time\":\"").append(time_text(line.time));
  text.append("\",\"level\":\"").append(level_name(line.level)).append("\",");
  text.append(line.members).append("}");
}

}  // namespace sconce::server::telemetry
