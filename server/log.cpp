#include "server/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "sconce/check.h"
#include "server/json_cursor.h"

namespace sconce {
namespace {

constexpr const char* kIsoPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr const char* kShortPattern = "%L%m%d %H:%M:%S.%f %P %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

constexpr uint32_t bit(LogLevel level) noexcept { return 1U << static_cast<unsigned>(level); }

// Which levels are written, one bit each.
std::atomic<uint32_t> enabled{bit(LogLevel::kInfo) | bit(LogLevel::kWarn) | bit(LogLevel::kError)};
std::atomic<bool> json_lines{false}, short_dates{false};
thread_local const RequestId* current_request = nullptr;

spdlog::logger& logger() {
  static spdlog::logger instance("sconce", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return instance;
}

void append_field(std::string& line, const LogField& field) {
  if (json_lines.load(std::memory_order_relaxed)) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    field.is_number ? (void)(line += field.value) : append_json_string(line, field.value);
    return;
  }
  line += ' ';
  line += field.key;
  line += '=';
  const std::string value = printable(field.value);
  const bool quoted = value.empty() || value.find_first_of(" \"=") != std::string::npos;
  if (!quoted) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (c == '"') line += '\\';
    line += c;
  }
  line += '"';
}

}  // namespace

void start_log(LogLevel level, LogFormat format) {
  uint32_t levels = 0;
  for (const LogLevel l : {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (spdlog_level(l) >= spdlog_level(level)) levels |= bit(l);
  }
  enabled = levels;
  json_lines = format == LogFormat::kJson;
  logger().set_level(spdlog::level::trace);
  logger().set_pattern(json_lines ? kJsonPattern : kIsoPattern);
  logger().flush_on(spdlog::level::trace);
}

bool log_enabled(LogLevel level) noexcept { return (enabled.load(std::memory_order_relaxed) & bit(level)) != 0; }

void write_log(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string line;
  if (json_lines.load(std::memory_order_relaxed)) {
    line = "\"message\":";
    append_json_string(line, message);
  } else {
    // Whoever wrote the message: one line is one line.
    for (const char c : message) {
      const auto byte = static_cast<unsigned char>(c);
      byte < 0x20 || byte == 0x7f ? (void)(line += fmt::format("\\x{:02x}", byte)) : (void)(line += c);
    }
  }
  for (const LogField& field : fields) append_field(line, field);
  if (current_request != nullptr) append_field(line, {"id", current_request->text()});
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

LogRequest::LogRequest(const RequestId& id) noexcept : outer_(current_request) { current_request = &id; }
LogRequest::~LogRequest() { current_request = outer_; }

LogSettings log_settings() noexcept {
  LogSettings settings;
  settings.info = log_enabled(LogLevel::kInfo);
  settings.warning = log_enabled(LogLevel::kWarn);
  settings.error = log_enabled(LogLevel::kError);
  settings.verbose = log_enabled(LogLevel::kTrace) ? 2 : log_enabled(LogLevel::kDebug) ? 1 : 0;
  settings.short_dates = short_dates;
  return settings;
}

void change_log(const LogSettings& settings) {
  SCONCE_CHECK(!settings.short_dates || !json_lines, kInvalidArgument,
               "log_format of a log of JSON lines can only be ISO8601");
  uint32_t levels = 0;
  if (settings.info) levels |= bit(LogLevel::kInfo);
  if (settings.warning) levels |= bit(LogLevel::kWarn);
  if (settings.error) levels |= bit(LogLevel::kError);
  if (settings.verbose >= 1) levels |= bit(LogLevel::kDebug);
  if (settings.verbose >= 2) levels |= bit(LogLevel::kTrace);
  enabled = levels;
  if (short_dates.exchange(settings.short_dates) != settings.short_dates) {
    logger().set_pattern(settings.short_dates ? kShortPattern : kIsoPattern);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace sconce
