// The log over HTTP: its last lines as a document, and new lines as a stream.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "sconce/check.h"
#include "server/console/console_api.h"
#include "server/console/feed.h"
#include "server/http/query.h"
#include "server/support/log.h"
#include "server/telemetry/log_ring.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::console {
namespace {

constexpr size_t kMaxLines = 2000;  // maximum per answer
constexpr size_t kMaxOfPiece = 200;
// Maximum silence of a stream, so that a proxy keeps it open and a disconnected client is noticed.
constexpr std::chrono::seconds kSilence{15};

// The minimum level of lines.
LogLevel least_level(const http::Query& query) {
  const auto name = query.text("level");
  if (!name) return LogLevel::kTrace;
  for (const LogLevel level : {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError})
    if (*name == telemetry::level_name(level)) return level;
  SCONCE_FAIL(kInvalidArgument, "parameter level must be trace, debug, info, warn or error, got '", excerpt(*name),
              "'");
}

template <class Number>
Number number_of(const http::Query& query, std::string_view key, Number otherwise) {
  const auto text = query.text(key);
  if (!text) return otherwise;
  const auto number = parse_number<Number>(*text);
  SCONCE_CHECK(number, kInvalidArgument, "parameter ", key, " must be a number, got '", excerpt(*text), "'");
  return *number;
}

class LogFeed final : public Feed {
 public:
  LogFeed(uint64_t after, LogLevel least) : after_(after), least_(least) {}

  void append(TextBuffer& text, Clock::time_point now) override {
    const telemetry::LogRing& ring = telemetry::last_log_lines();
    const uint64_t last = ring.last();
    if (last != after_) {
      const telemetry::LogRing::Lines lines = ring.after(after_, least_, kMaxOfPiece);
      // Skips lines of other levels, too.
      after_ =
          lines.size() == kMaxOfPiece ? lines.back()->number : std::max(last, lines.empty() ? 0 : lines.back()->number);
      for (const auto& line : lines) {
        event_ = "event: line\nid: " + std::to_string(line->number) + "\ndata: ";
        telemetry::append_line(event_, *line);
        event_ += "\n\n";
        text.append(event_);
      }
      if (!lines.empty()) said_ = now;
    }
    if (said_ && now - *said_ < kSilence) return;
    text.append(":\n\n");
    said_ = now;
  }

 private:
  uint64_t after_;
  const LogLevel least_;
  std::optional<Clock::time_point> said_;  // time of the last output
  std::string event_;
};

}  // namespace

std::string admin::log_lines(rollout::Rollout& /*rollout*/, const rollout::AdminRequest& request) {
  const http::Query query(request.query, {"lines", "level"});
  const size_t most = std::min(number_of<size_t>(query, "lines", 200), kMaxLines);
  const telemetry::LogRing& ring = telemetry::last_log_lines();
  std::string text = "{\"lines\":[";
  for (const auto& line : ring.newest(least_level(query), most)) {
    if (text.back() != '[') text += ',';
    telemetry::append_line(text, *line);
  }
  text.append("],\"first\":").append(std::to_string(ring.first()));
  text.append(",\"last\":").append(std::to_string(ring.last()));
  text.append(",\"lost\":").append(std::to_string(lost_log_lines()));
  return text + "}";
}

std::unique_ptr<Feed> feeds::log_lines(OverviewSource& /*overview*/, std::string_view query) {
  const http::Query parameters(query, {"after", "level"});
  const uint64_t after = number_of<uint64_t>(parameters, "after", telemetry::last_log_lines().last());
  return std::make_unique<LogFeed>(after, least_level(parameters));
}

}  // namespace sconce::server::console
