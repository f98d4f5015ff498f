#include "server/support/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/log_writer.h"

namespace sconce::server {
namespace {

constexpr const char* kIsoPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr const char* kShortPattern = "%L%m%d %H:%M:%S.%f %P %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

spdlog::level::level_enum spdlog_level(LogLevel level) noexcept {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels[static_cast<size_t>(level)];
}

constexpr uint32_t bit(LogLevel level) noexcept { return 1U << static_cast<unsigned>(level); }

// The enabled levels, one bit each.
std::atomic<uint32_t> enabled{bit(LogLevel::kInfo) | bit(LogLevel::kWarn) | bit(LogLevel::kError)};
std::atomic<bool> json_lines{false}, short_dates{false};
// State for log_from_signal(), which cannot take locks.
std::atomic<bool> log_started{false};
std::atomic<int> minutes_from_utc{0};
thread_local LogRequest::Context current;

// Maximum bytes in the queue: some thousand lines.
constexpr size_t kRoom = 1024 * 1024;
constexpr std::chrono::milliseconds kLastLines{1000};

std::atomic<TakeLogLine*> take_line{nullptr};

// Formats one line at a time and passes it to the writer, if there is one.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void start();
  void end() noexcept;
  void lose() noexcept {
    const std::shared_ptr<LogWriter> writer = this->writer();
    if (writer) writer->lose();
  }
  void status(std::function<std::string()> line) noexcept {
    const std::shared_ptr<LogWriter> writer = this->writer();
    if (writer) writer->status(std::move(line));
  }
  uint64_t lost() noexcept {
    const std::shared_ptr<LogWriter> writer = this->writer();
    return writer ? writer->lost() : 0;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string line = formatted(message);
    if (writer_) return writer_->put(line);
    // for tools, and messages before a server starts
    for (std::string_view left = line; !left.empty();) {
      const ssize_t done = ::write(STDERR_FILENO, left.data(), left.size());
      if (done <= 0) return;
      left.remove_prefix(static_cast<size_t>(done));
    }
  }
  void flush_() override {}

 private:
  std::string formatted(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t buffer;
    formatter_->format(message, buffer);
    return {buffer.data(), buffer.size()};
  }
  std::shared_ptr<LogWriter> writer() noexcept {
    const std::lock_guard lock(mutex_);
    return writer_;
  }

  std::shared_ptr<LogWriter> writer_;  // guarded by the base's mutex
};

// Never destroyed, because threads may log until the process ends.
Sink& sink() {
  static Sink& instance = *new Sink;
  return instance;
}

spdlog::logger& logger() {
  static spdlog::logger& instance = [&]() -> spdlog::logger& {
    auto& made = *new spdlog::logger("sconce", std::shared_ptr<Sink>(&sink(), [](Sink*) {}));
    made.set_level(spdlog::level::trace);
    made.set_error_handler([](const std::string&) { sink().lose(); });
    return made;
  }();
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

void append_member(std::string& members, const LogField& field) {
  if (members.back() != '{') members += ',';
  append_json_string(members, field.key);
  members += ':';
  field.is_number ? (void)(members += field.value) : append_json_string(members, field.value);
}

// Calls take(field) for each field of a line.
template <class Take>
void each_field(std::span<const LogField> fields, Take&& take) {
  for (const LogField& field : fields) take(field);
  if (current.peer != nullptr && !current.peer->empty()) take({"peer", *current.peer});
  if (current.id == nullptr) return;
  take({"id", current.id->text()});
  if (!current.id->trace().empty()) take({"trace_id", current.id->trace()});
}

void pass_on(TakeLogLine& take, LogLevel level, std::string_view message, std::span<const LogField> fields) {
  std::string members = "\"message\":";
  append_json_string(members, message);
  members += ",\"fields\":{";
  each_field(fields, [&](const LogField& field) { append_member(members, field); });
  members += '}';
  take(level, std::move(members));
}

// A line's text, in the log's form.
std::string line_of(std::string_view message) {
  std::string line;
  if (json_lines.load(std::memory_order_relaxed)) {
    line = "\"message\":";
    append_json_string(line, message);
    return line;
  }
  // Control characters must not split a line in two.
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    byte < 0x20 || byte == 0x7f ? (void)(line += fmt::format("\\x{:02x}", byte)) : (void)(line += c);
  }
  return line;
}

// A line in place of lost ones. It bypasses the logger, whose locks are held.
std::string notice_of(uint64_t lost) {
  const std::string text = line_of(fmt::format("{} lines were lost: the log was not read in time", lost));
  spdlog::pattern_formatter formatter(json_lines ? kJsonPattern : short_dates ? kShortPattern : kIsoPattern);
  spdlog::memory_buf_t buffer;
  formatter.format(spdlog::details::log_msg("sconce", spdlog::level::warn, text), buffer);
  return {buffer.data(), buffer.size()};
}

// A line written by a signal handler: no allocation, no lock, no calendar functions of the C library.
class SignalLine {
 public:
  void text(const char* piece) noexcept {
    while (*piece != '\0' && size_ < sizeof bytes_) bytes_[size_++] = *piece++;
  }
  // In the log's ISO format.
  void time_of_day() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const int offset = minutes_from_utc.load();
    const std::chrono::sys_seconds local{std::chrono::seconds(now.tv_sec + int64_t{60} * offset)};
    const auto day = std::chrono::floor<std::chrono::days>(local);
    const std::chrono::year_month_day date(day);
    const auto second = static_cast<unsigned>((local - day).count());
    number(static_cast<unsigned>(static_cast<int>(date.year())), 4, "-");
    number(static_cast<unsigned>(date.month()), 2, "-");
    number(static_cast<unsigned>(date.day()), 2, "T");
    number(second / 3600, 2, ":");
    number(second / 60 % 60, 2, ":");
    number(second % 60, 2, ".");
    number(static_cast<unsigned>(now.tv_nsec / 1'000'000), 3, offset < 0 ? "-" : "+");
    const auto minutes = static_cast<unsigned>(offset < 0 ? -offset : offset);
    number(minutes / 60, 2, ":");
    number(minutes % 60, 2, "");
  }
  void write() noexcept { (void)!::write(STDERR_FILENO, bytes_, size_); }

 private:
  void number(unsigned value, int digits, const char* after) noexcept {
    char text_of[8] = {};
    for (int i = digits - 1; i >= 0; --i, value /= 10) text_of[i] = static_cast<char>('0' + value % 10);
    text(text_of);
    text(after);
  }

  char bytes_[256];
  size_t size_ = 0;
};

void Sink::start() {
  auto made = std::make_shared<LogWriter>(STDERR_FILENO, kRoom, notice_of);
  const std::lock_guard lock(mutex_);
  writer_ = std::move(made);
}

void Sink::end() noexcept {
  if (const std::shared_ptr<LogWriter> writer = this->writer()) writer->flush(kLastLines);
}

}  // namespace

void start_log(LogLevel level, LogFormat format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  if (localtime_r(&now, &local) != nullptr) minutes_from_utc = static_cast<int>(local.tm_gmtoff / 60);
  uint32_t levels = 0;
  for (const LogLevel l : {LogLevel::kTrace, LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (spdlog_level(l) >= spdlog_level(level)) levels |= bit(l);
  }
  enabled = levels;
  json_lines = format == LogFormat::kJson;
  logger().set_pattern(json_lines ? kJsonPattern : kIsoPattern);
  sink().start();
  log_started = true;
}

void log_from_signal(const char* message) noexcept {
  SignalLine line;
  if (!log_started) {
    line.text("sconce: ");
  } else if (!log_enabled(LogLevel::kWarn)) {
    return;
  } else {
    if (json_lines) line.text("{\"time\":\"");
    line.time_of_day();
    line.text(json_lines ? "\",\"level\":\"warning\",\"message\":\"" : " warning ");
  }
  line.text(message);
  line.text(log_started && json_lines ? "\"}\n" : "\n");
  line.write();
}

void end_log() noexcept { sink().end(); }
uint64_t lost_log_lines() noexcept { return sink().lost(); }
void pass_on_log_lines(TakeLogLine& take) noexcept { take_line.store(&take, std::memory_order_release); }

void show_status(std::function<std::string()> line) {
  if (!json_lines.load(std::memory_order_relaxed)) sink().status(std::move(line));
}

bool log_enabled(LogLevel level) noexcept { return (enabled.load(std::memory_order_relaxed) & bit(level)) != 0; }

void write_log(LogLevel level, std::string_view message, std::span<const LogField> fields) noexcept {
  const bool written = succeeds([&] {
    std::string line = line_of(message);
    each_field(fields, [&](const LogField& field) { append_field(line, field); });
    logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  });
  if (!written) sink().lose();
  if (TakeLogLine* const take = take_line.load(std::memory_order_acquire))
    succeeds([&] { pass_on(*take, level, message, fields); });
}

void write_formatted(LogLevel level, fmt::string_view format, fmt::format_args args) noexcept {
  if (!succeeds([&] { write_log(level, fmt::vformat(format, args)); })) sink().lose();
}

void write_limited(LogLimit& limit, LogLevel level, fmt::string_view format, fmt::format_args args) noexcept {
  uint64_t held = 0;
  if (!limit.admit(LogLimit::Clock::now(), held)) return;
  const bool written = succeeds([&] {
    std::string message = fmt::vformat(format, args);
    if (held != 0) message += fmt::format(" ({} lines like this were held back)", held);
    write_log(level, message);
  });
  if (!written) sink().lose();
}

void report_held(LogLimit& limit, std::string_view what) noexcept {
  const uint64_t held = limit.take_held(LogLimit::Clock::now());
  if (held != 0) log_warn("{} lines about {} were held back", held, what);
}

LogRequest::LogRequest(const RequestId& id, const std::string& peer) noexcept : outer_(current) {
  current = {&id, &peer};
}
LogRequest::~LogRequest() { current = outer_; }

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

}  // namespace sconce::server
