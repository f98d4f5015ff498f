#include "server/cli/top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "server/support/terminal/text.h"
#include "server/support/time_text.h"

namespace sconce::server::cli {
namespace {

enum class Style : int8_t { kPlain, kBold, kFaint, kGood, kBad, kWarning };

// A line that is cut at the edge of the screen.
class ScreenLine {
 public:
  ScreenLine(size_t columns, bool colours) : left_(columns), colours_(colours) {}

  // width: number of columns, if it differs from the number of bytes.
  ScreenLine& add(std::string_view text, Style style = Style::kPlain, size_t width = SIZE_MAX) {
    static constexpr const char* kCodes[] = {"", "1", "2", "32", "31", "33"};
    const bool bytes = width == SIZE_MAX;
    if (bytes) width = text.size();
    if (width > left_) {
      // A partial character must not be written.
      if (!bytes) {
        left_ = 0;
        return *this;
      }
      text = text.substr(0, width = left_);
    }
    left_ -= width;
    if (text.empty()) return *this;
    if (colours_ && style != Style::kPlain)
      line_ += fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<size_t>(style)], text);
    else
      line_ += text;
    return *this;
  }
  // Adds a cell of `width` columns and a blank; a longer text is cut and ends with "~".
  ScreenLine& cell(std::string text, size_t width, bool right, Style style = Style::kPlain) {
    if (text.size() > width) text = text.substr(0, width - 1) + "~";
    return add(right ? fmt::format("{:>{}} ", text, width) : fmt::format("{:<{}} ", text, width), style);
  }
  std::string end() const { return line_; }

 private:
  std::string line_;
  size_t left_;
  const bool colours_;
};

std::string rate_text(std::optional<double> rate) {
  if (!rate) return "-";
  return *rate > 0 && *rate < 10 ? fmt::format("{:.1f}", *rate) : fmt::format("{:.0f}", *rate);
}
std::string time_or_dash(std::optional<double> seconds) { return seconds ? format_seconds(*seconds) : "-"; }

std::string uptime_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 1e10));
  const std::string clock = fmt::format("{}:{:02}:{:02}", whole / 3600 % 24, whole / 60 % 60, whole % 60);
  return whole >= 86400 ? fmt::format("{} d {}", whole / 86400, clock) : clock;
}

std::string weights_text(const LiveModel& model) {
  return std::to_string(model.weight_version) + (model.label.empty() ? "" : " " + model.label) +
         (model.staged ? " (+ staged)" : "");
}

Style style_of(const LiveModel& model) {
  return model.state == "READY" ? Style::kGood : model.state == "LOADING" ? Style::kWarning : Style::kBad;
}

std::string gpu_text(const LiveGpu& gpu) {
  std::string text = gpu.uuid;
  if (gpu.utilization) text += fmt::format("  {:.0f} %", 100 * *gpu.utilization);
  if (gpu.memory_used && *gpu.memory_used >= 0) {
    text += "  " + format_bytes(static_cast<uint64_t>(*gpu.memory_used));
    if (gpu.memory_total && *gpu.memory_total >= 0)
      text += " of " + format_bytes(static_cast<uint64_t>(*gpu.memory_total));
  }
  if (gpu.power_watts) text += fmt::format("  {:.0f} W", *gpu.power_watts);
  return text;
}

std::string operation_text(const LiveOperation& operation) {
  std::string text = fmt::format("operation {}  {} {}  {} {}", operation.id, operation.model, operation.version,
                                 operation.state, operation.phase);
  if (operation.total > 0) {
    constexpr size_t kWidth = 20;
    const double share = std::min(static_cast<double>(operation.bytes) / static_cast<double>(operation.total), 1.0);
    const auto full = static_cast<size_t>(share * static_cast<double>(kWidth));
    text += fmt::format("  [{}{}] {:.0f} % of {}", std::string(full, '='), std::string(kWidth - full, ' '),
                        std::floor(100 * share), format_bytes(operation.total));
    if (operation.seconds > 0 && operation.state == "running")
      text += fmt::format(
          ", {}/s", format_bytes(static_cast<uint64_t>(static_cast<double>(operation.bytes) / operation.seconds)));
  }
  if (!operation.label.empty()) text += "  label " + operation.label;
  return text;
}

std::string alert_text(const LiveAlert& alert) {
  return fmt::format("{}: {}", alert.critical ? "critical" : "warning", alert.text);
}

std::string moment(const Overview& overview) {
  const auto milliseconds = static_cast<int64_t>(std::clamp(overview.time, 0.0, 1e11) * 1000);
  return time_text(std::chrono::system_clock::time_point(std::chrono::milliseconds(milliseconds)));
}

constexpr size_t kSparkColumns = 12;

struct Column {
  const char* title;
  size_t width;
  bool right;
};
constexpr Column kAfterName[] = {{"VERSION", 7, true}, {"STATE", 11, false}, {"REQ/S", 8, true}};
constexpr Column kAfterSpark[] = {{"P50", 10, true},  {"P99", 10, true},   {"QUEUE", 6, true},   {"BATCH", 6, true},
                                  {"ERR/S", 6, true}, {"MEMORY", 9, true}, {"REPLICAS", 8, true}};

}  // namespace

std::string sparkline(const std::vector<double>& numbers, size_t columns) {
  static constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t shown = std::min(numbers.size(), columns);
  double most = 0;
  for (size_t i = numbers.size() - shown; i < numbers.size(); ++i) most = std::max(most, numbers[i]);
  std::string text(columns - shown, ' ');
  for (size_t i = numbers.size() - shown; i < numbers.size(); ++i) {
    const double share = most > 0 ? std::clamp(numbers[i] / most, 0.0, 1.0) : 0;
    text += kBars[std::min<size_t>(static_cast<size_t>(share * std::size(kBars)), std::size(kBars) - 1)];
  }
  return text;
}

std::vector<std::string> screen_lines(const History& history, const std::string& address, const std::string& problem,
                                      ScreenSize size, bool colours) {
  std::vector<std::string> lines;
  const auto line = [&] { return ScreenLine(size.columns, colours); };
  const auto add = [&](const ScreenLine& made) { lines.push_back(made.end()); };
  if (history.empty()) {
    add(line().add("sconce top  ", Style::kBold).add(address));
    add(line().add(problem.empty() ? "waiting for the server ..." : problem,
                   problem.empty() ? Style::kFaint : Style::kBad));
    return lines;
  }
  const Overview& now = history.now();
  const bool ready = now.ready && !now.draining;
  const std::optional<double> cpu = history.cpu_share();
  add(line()
          .add("sconce " + now.version + "  ", Style::kBold)
          .add(address + "  ")
          .add(now.draining ? "draining"
               : ready      ? "ready"
                            : "not ready",
               ready ? Style::kGood : Style::kBad)
          .add(fmt::format("  up {}  {} answers/s  {} connections  {}  CPU {}", uptime_text(now.time - now.started),
                           rate_text(history.requests()), now.connections, format_bytes(now.resident_bytes),
                           cpu ? fmt::format("{:.0f} %", 100 * *cpu) : "-")));
  if (!problem.empty()) add(line().add(problem, Style::kBad));
  for (const LiveGpu& gpu : now.gpus) add(line().add("GPU " + gpu_text(gpu)));
  for (const LiveAlert& alert : now.alerts)
    add(line().add(alert_text(alert), alert.critical ? Style::kBad : Style::kWarning));
  add(line());

  size_t name_width = 5;
  constexpr size_t kWidestName = 32;
  for (const LiveModel& model : now.models) name_width = std::max(name_width, std::min(model.name.size(), kWidestName));
  ScreenLine head = line();
  head.cell("MODEL", name_width, false, Style::kFaint);
  for (const Column& column : kAfterName) head.cell(column.title, column.width, column.right, Style::kFaint);
  head.cell("", kSparkColumns, false);
  for (const Column& column : kAfterSpark) head.cell(column.title, column.width, column.right, Style::kFaint);
  add(head.add("WEIGHTS", Style::kFaint));
  size_t left = now.models.size();
  for (const LiveModel& model : now.models) {
    // Reserves room for the lines after the models.
    if (lines.size() + 2 + now.operations.size() > size.rows && left > 1) {
      add(line().add(fmt::format("... and {} more", left), Style::kFaint));
      break;
    }
    --left;
    const Rates rates = history.of(model);
    const bool errors = rates.failures.value_or(0) > 0;
    ScreenLine row = line();
    row.cell(model.name, name_width, false, Style::kBold)
        .cell(model.version, kAfterName[0].width, true)
        .cell(model.state, kAfterName[1].width, false, style_of(model))
        .cell(rate_text(rates.requests), kAfterName[2].width, true)
        .add(sparkline(rates.history, kSparkColumns) + " ", Style::kPlain, kSparkColumns + 1);
    const std::pair<std::string, Style> cells[] = {
        {time_or_dash(rates.p50_s), Style::kPlain},
        {time_or_dash(rates.p99_s), Style::kPlain},
        {std::to_string(model.queue), Style::kPlain},
        {rates.mean_batch ? fmt::format("{:.1f}", *rates.mean_batch) : "-", Style::kPlain},
        {rate_text(rates.failures), errors ? Style::kBad : Style::kPlain},
        {format_bytes(model.weight_bytes + model.set_bytes), Style::kPlain},
        {std::to_string(model.replicas), Style::kPlain}};
    for (size_t i = 0; i < std::size(cells); ++i)
      row.cell(cells[i].first, kAfterSpark[i].width, kAfterSpark[i].right, cells[i].second);
    add(row.add(weights_text(model)));
  }
  for (const LiveOperation& operation : now.operations)
    add(line().add(operation_text(operation), operation.state == "failed" ? Style::kBad : Style::kPlain));
  if (lines.size() > size.rows) lines.resize(size.rows);
  return lines;
}

std::vector<std::string> log_lines(const History& history) {
  const Overview& now = history.now();
  const std::string begin = moment(now) + " ";
  std::vector<std::string> lines;
  for (const LiveModel& model : now.models) {
    const Rates rates = history.of(model);
    lines.push_back(begin +
                    fmt::format("{} {} {} {}/s p50 {} p99 {} queue {} batch {} errors {}/s memory {} weights {}",
                                model.name, model.version, model.state, rate_text(rates.requests),
                                time_or_dash(rates.p50_s), time_or_dash(rates.p99_s), model.queue,
                                rates.mean_batch ? fmt::format("{:.1f}", *rates.mean_batch) : "-",
                                rate_text(rates.failures), format_bytes(model.weight_bytes + model.set_bytes),
                                weights_text(model)));
  }
  for (const LiveGpu& gpu : now.gpus) lines.push_back(begin + "GPU " + gpu_text(gpu));
  for (const LiveOperation& operation : now.operations) lines.push_back(begin + operation_text(operation));
  for (const LiveAlert& alert : now.alerts) lines.push_back(begin + alert_text(alert));
  return lines;
}

OrderedJson rates_document(const History& history) {
  const Overview& now = history.now();
  const auto or_null = [](std::optional<double> number) {
    return number ? number_or_null(*number) : OrderedJson(nullptr);
  };
  OrderedJson models = OrderedJson::array(), gpus = OrderedJson::array(), operations = OrderedJson::array(),
              alerts = OrderedJson::array();
  for (const LiveModel& model : now.models) {
    const Rates rates = history.of(model);
    models.push_back({{"name", model.name},
                      {"version", model.version},
                      {"state", model.state},
                      {"reason", model.reason},
                      {"requests_per_s", or_null(rates.requests)},
                      {"errors_per_s", or_null(rates.failures)},
                      {"p50_s", or_null(rates.p50_s)},
                      {"p99_s", or_null(rates.p99_s)},
                      {"queue", model.queue},
                      {"mean_batch", or_null(rates.mean_batch)},
                      {"weight_bytes", model.weight_bytes},
                      {"set_bytes", model.set_bytes},
                      {"replicas", model.replicas},
                      {"weight_version", model.weight_version},
                      {"generation", model.weight_version},  // deprecated
                      {"label", model.label.empty() ? OrderedJson(nullptr) : OrderedJson(model.label)},
                      {"staged", model.staged}});
  }
  for (const LiveGpu& gpu : now.gpus)
    gpus.push_back({{"uuid", gpu.uuid},
                    {"utilization", or_null(gpu.utilization)},
                    {"memory_used", or_null(gpu.memory_used)},
                    {"memory_total", or_null(gpu.memory_total)},
                    {"power_watts", or_null(gpu.power_watts)}});
  for (const LiveOperation& operation : now.operations)
    operations.push_back({{"id", operation.id},
                          {"model", operation.model},
                          {"version", operation.version},
                          {"state", operation.state},
                          {"phase", operation.phase},
                          {"bytes", operation.bytes},
                          {"total", operation.total},
                          {"seconds", operation.seconds},
                          {"label", operation.label}});
  for (const LiveAlert& alert : now.alerts)
    alerts.push_back({{"severity", alert.critical ? "critical" : "warning"},
                      {"model", alert.model.empty() ? OrderedJson(nullptr) : OrderedJson(alert.model)},
                      {"text", alert.text}});
  return {{"time", now.time},
          {"version", now.version},
          {"ready", now.ready},
          {"draining", now.draining},
          {"answers_per_s", or_null(history.requests())},
          {"cpu_share", or_null(history.cpu_share())},
          {"resident_bytes", now.resident_bytes},
          {"connections", now.connections},
          {"models", std::move(models)},
          {"gpus", std::move(gpus)},
          {"operations", std::move(operations)},
          {"alerts", std::move(alerts)}};
}

}  // namespace sconce::server::cli
