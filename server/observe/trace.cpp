#include "server/observe/trace.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "sconce/hex.h"
#include "sconce/parse_number.h"
#include "server/base/failure.h"
#include "server/base/json_cursor.h"
#include "server/base/json_document.h"
#include "server/base/log.h"
#include "server/base/request_id.h"

namespace sconce::server {
namespace {

using Json = OrderedJson;
using std::chrono::nanoseconds;

// Records that may wait to be written.
constexpr size_t kMostWaiting = 65536;
// Bytes of the waiting records' tensors.
constexpr size_t kMostWaitingBytes = 64 * 1024 * 1024;
constexpr std::chrono::seconds kNoteAgain{10};

bool is_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool all_zero(std::string_view text) noexcept { return text.find_first_not_of('0') == std::string_view::npos; }

// Reads a number, which Triton's clients send as text.
template <class T>
T number_from_text(JsonCursor& json, std::string_view what) {
  const std::string_view text = json.string(what);
  const auto value = parse_number<T>(text);
  SCONCE_CHECK(value, kInvalidArgument, what, " must be a whole number as a string, got '", excerpt(text), "'");
  return *value;
}

}  // namespace

std::optional<TraceParent> TraceParent::parse(std::string_view field) noexcept {
  // version-traceid-parentid-flags; later versions may append more.
  if (field.size() < 55 || field[2] != '-' || field[35] != '-' || field[52] != '-') return std::nullopt;
  const std::string_view version = field.substr(0, 2), trace = field.substr(3, 32), span = field.substr(36, 16),
                         flags = field.substr(53, 2);
  if (!is_hex(version) || !is_hex(trace) || !is_hex(span) || !is_hex(flags) || version == "ff" || all_zero(trace) ||
      all_zero(span) || (version == "00" && field.size() != 55) || (field.size() > 55 && field[55] != '-')) {
    return std::nullopt;
  }
  TraceParent parent;
  std::copy(trace.begin(), trace.end(), parent.trace_id.begin());
  std::copy(span.begin(), span.end(), parent.span_id.begin());
  parent.sampled = (hex_digit(flags[1]) & 1) != 0;
  return parent;
}

Tracer::Tracer(const ServerConfig& config)
    : path_(config.trace_file),
      format_(config.trace_format),
      defaults_{{config.trace_level != TraceLevel::kOff, config.trace_level == TraceLevel::kTensors},
                static_cast<uint64_t>(std::max<int64_t>(config.trace_rate, 1)),
                -1},
      server_(defaults_) {
  SCONCE_CHECK(!defaults_.levels || !path_.empty(), kInvalidArgument,
               "setting trace_level: timestamps and tensors need setting trace_file");
  if (path_.empty()) return;
  SCONCE_CHECK(file_.open(path_), kIo, "cannot write setting trace_file: ", path_, ": ", std::strerror(errno));
  epoch_ = std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()) -
           std::chrono::duration_cast<nanoseconds>(TraceRecord::Clock::now().time_since_epoch());
  update_enabled();
  thread_ = std::thread([this] { run(); });
}

Tracer::~Tracer() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Tracer::Settings Tracer::effective(std::string_view model) const {
  Settings settings = server_;
  if (const auto it = models_.find(model); it != models_.end()) {
    settings.levels = it->second.levels.value_or(settings.levels);
    settings.rate = it->second.rate.value_or(settings.rate);
    settings.count = it->second.count.value_or(settings.count);
  }
  return settings;
}

void Tracer::update_enabled() {
  bool any = static_cast<bool>(server_.levels);
  for (const auto& [name, changes] : models_) any = any || changes.levels.value_or(TraceLevels{});
  enabled_ = any && !path_.empty();
}

TraceLevels Tracer::sample(std::string_view model, const std::optional<TraceParent>& parent) {
  const MutexLock lock(mutex_);
  const Settings settings = effective(model);
  if (!settings.levels || settings.count == 0) return {};
  const auto own = models_.find(model);
  const bool counts_alone = own != models_.end() && own->second.rate;
  uint64_t& seen = counts_alone ? own->second.seen : seen_;
  const bool turn = seen++ % settings.rate == 0;
  if (!turn && !(parent && parent->sampled)) return {};
  if (settings.count > 0) {
    if (own != models_.end() && own->second.count) {
      --*own->second.count;
    } else {
      --server_.count;
    }
  }
  return settings.levels;
}

void Tracer::record(TraceRecord record) {
  size_t bytes = 0;
  for (const TraceTensor& tensor : record.tensors) bytes += tensor.data.size();
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kMostWaiting || (bytes > 0 && waiting_bytes_ + bytes > kMostWaitingBytes)) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    waiting_.push_back(std::move(record));
    waiting_bytes_ += bytes;
    if (waiting_.size() > 1) return;  // the writer was told already
  }
  wake_.notify_one();
}

std::string Tracer::settings(std::string_view model) const {
  Settings settings;
  uint64_t records_each = 0;
  {
    const MutexLock lock(mutex_);
    settings = effective(model);
    records_each = records_each_;
  }
  Json levels = Json::array();
  if (settings.levels.timestamps) levels.push_back("TIMESTAMPS");
  if (settings.levels.tensors) levels.push_back("TENSORS");
  if (levels.empty()) levels.push_back("OFF");
  return dump({{"trace_level", std::move(levels)},
               {"trace_rate", std::to_string(settings.rate)},
               {"trace_count", std::to_string(settings.count)},
               {"log_frequency", std::to_string(records_each)},
               {"trace_file", path_},
               {"trace_mode", format_ == TraceFormat::kOtlp ? "opentelemetry" : "triton"}});
}

void Tracer::change(std::string_view model, std::string_view body) {
  const MutexLock lock(mutex_);
  const auto known = models_.find(model);
  Changes changes = known != models_.end() ? known->second : Changes{};
  // Changes of the server's settings; null restores the setting at start.
  Changes defaults;
  const uint64_t records_before = records_each_;
  uint64_t records_each = records_before;
  if (model.empty()) {
    changes = {server_.levels, server_.rate, server_.count};
    defaults = {defaults_.levels, defaults_.rate, defaults_.count};
  }
  JsonCursor::read_request(body, [&](JsonCursor& json, std::string_view key) {
    if (key == "trace_level") {
      if (json.consume_null()) {
        changes.levels = defaults.levels;
        return;
      }
      TraceLevels levels;
      const auto level = [&] {
        const std::string_view name = json.string("a level in 'trace_level'");
        const bool timestamps = name == "TIMESTAMPS" || name == "MIN" || name == "MAX";
        SCONCE_CHECK(name == "OFF" || name == "TENSORS" || timestamps, kInvalidArgument,
                     "'trace_level' must be OFF, TIMESTAMPS or TENSORS, got '", excerpt(name), "'");
        levels.timestamps = levels.timestamps || timestamps;
        levels.tensors = levels.tensors || name == "TENSORS";
      };
      if (json.peek() == '[') {
        json.array("'trace_level'", [&](size_t) { level(); });
      } else {
        level();
      }
      SCONCE_CHECK(!levels || !path_.empty(), kInvalidArgument, "the server has no trace_file to write to");
      changes.levels = levels;
    } else if (key == "trace_rate") {
      if (json.consume_null()) {
        changes.rate = defaults.rate;
        return;
      }
      changes.rate = number_from_text<uint64_t>(json, "'trace_rate'");
      SCONCE_CHECK(*changes.rate > 0, kInvalidArgument, "'trace_rate' must be 1 or more");
    } else if (key == "trace_count") {
      if (json.consume_null()) {
        changes.count = defaults.count;
        return;
      }
      changes.count = number_from_text<int64_t>(json, "'trace_count'");
      SCONCE_CHECK(*changes.count >= -1, kInvalidArgument, "'trace_count' must be -1 or more");
    } else if (key == "log_frequency") {
      records_each = json.consume_null() ? 0 : number_from_text<uint64_t>(json, "'log_frequency'");
      SCONCE_CHECK(model.empty() || records_each == records_before, kInvalidArgument,
                   "'log_frequency' of a model: all models share the trace file");
    } else if (key == "trace_file" || key == "trace_mode" || key == "trace_config") {
      SCONCE_FAIL(kForbidden, "'", key, "' can only be set where the server is started");
    } else {
      SCONCE_FAIL(kInvalidArgument, "unknown trace setting: '", excerpt(key), "'");
    }
  });
  records_each_ = records_each;
  if (model.empty()) {
    server_ = {*changes.levels, *changes.rate, *changes.count};
  } else if (changes.levels || changes.rate || changes.count) {
    models_.insert_or_assign(std::string(model), changes);
  } else if (known != models_.end()) {
    models_.erase(known);
  }
  update_enabled();
}

void Tracer::run() noexcept {
  std::vector<TraceRecord> records;
  for (bool last = false; !last;) {
    uint64_t records_each = 0;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && waiting_.empty()) wake_.wait(mutex_);
      last = stopping_;
      records_each = records_each_;
      records.swap(waiting_);
      waiting_bytes_ = 0;
    }
    for (const TraceRecord& record : records) {
      bool written = false;
      errno = ENOMEM;
      succeeds([&] { written = choose_file(records_each) && write(record); });
      succeeds([&] { note(written); });
      if (written && next_file_ != 0 && in_file_ == records_each) end_file();
    }
    records.clear();
  }
  end_file();
}

bool Tracer::choose_file(uint64_t records_each) {
  const bool numbered = next_file_ != 0;
  if (file_.is_open() && (records_each == 0 || (numbered && in_file_ < records_each))) return true;
  end_file();
  if (!file_.open(fmt::format("{}.{}", path_, next_file_))) return false;
  ++next_file_;
  return true;
}

void Tracer::end_file() {
  // Tools read the file without the bracket, too.
  if (file_.is_open() && format_ == TraceFormat::kChrome) (void)file_.write(in_file_ == 0 ? "[]\n" : "\n]\n");
  file_.close();
  in_file_ = 0;
}

bool Tracer::write(const TraceRecord& record) {
  text_.clear();
  format_ == TraceFormat::kChrome ? write_chrome(record) : write_otlp(record);
  if (!file_.write(text_)) return false;
  ++in_file_;
  ++row_;
  return true;
}

// Logs that records are lost, and that no more are, but seldom, however often that changes.
void Tracer::note(bool written) {
  const int why = errno;
  if (!written) failed_.fetch_add(1, std::memory_order_relaxed);
  if (written != failing_) return;
  const TraceRecord::Clock::time_point now = TraceRecord::Clock::now();
  if (!written && now < note_again_) return;
  failing_ = !written;
  if (failing_) {
    note_again_ = now + kNoteAgain;
    log_error("trace records cannot be written to {}: {}", path_, std::strerror(why));
  } else {
    const uint64_t failed = failed_.load(std::memory_order_relaxed);
    log_info("trace records are written again; {} were lost", failed - std::exchange(noted_, failed));
  }
}

namespace {

struct Span {
  const char* name;
  TraceRecord::Clock::time_point start, end;
};

// The phases of a request in order; the first one is the whole request.
std::vector<Span> spans(const TraceRecord& r) {
  constexpr TraceRecord::Clock::time_point kNever{};
  std::vector<Span> list{{"request", r.start, r.sent}};
  if (r.decoded == kNever || !r.levels.timestamps) return list;
  list.push_back({"input", r.start, r.decoded});
  if (r.run_done != kNever) {
    list.push_back({"queue", r.decoded, r.decoded + r.queue});
    list.push_back({"compute", r.run_done - r.compute, r.run_done});
    list.push_back({"output", r.run_done, r.encoded});
  }
  list.push_back({"send", r.encoded, r.sent});
  return list;
}

// When the tensor was complete.
TraceRecord::Clock::time_point time_of(const TraceRecord& record, const TraceTensor& tensor) {
  return std::strcmp(tensor.activity, kQueueInput) == 0 ? record.decoded : record.run_done;
}

}  // namespace

void Tracer::write_chrome(const TraceRecord& record) {
  bool first = in_file_ == 0;
  const auto micros = [&](TraceRecord::Clock::time_point t) {
    return static_cast<double>((t.time_since_epoch() + epoch_).count()) / 1000;
  };
  const auto put = [&](const Json& event) {
    text_ += std::exchange(first, false) ? "[\n" : ",\n";
    text_ += dump(event);
  };
  for (const Span& span : spans(record)) {
    Json event = {{"name", span.name},
                  {"cat", record.model},
                  {"ph", "X"},
                  {"ts", micros(span.start)},
                  {"dur", static_cast<double>((span.end - span.start).count()) / 1000},
                  {"pid", getpid()},
                  {"tid", row_}};
    if (span.name == std::string_view("request")) {
      event["args"] = {{"id", record.request_id},
                       {"request", record.method_and_path},
                       {"model", record.model},
                       {"version", record.version},
                       {"status", record.status}};
      if (record.parent) {
        event["args"]["trace_id"] = std::string(record.parent->trace_id.data(), 32);
        event["args"]["parent_span_id"] = std::string(record.parent->span_id.data(), 16);
      }
    }
    put(event);
  }
  for (const TraceTensor& tensor : record.tensors) {
    Json described = {
        {"name", tensor.name}, {"data", tensor.data}, {"shape", tensor.shape}, {"dtype", tensor.datatype}};
    if (tensor.truncated) described["truncated"] = true;
    put({{"name", tensor.activity},
         {"cat", record.model},
         {"ph", "i"},
         {"s", "t"},
         {"ts", micros(time_of(record, tensor))},
         {"pid", getpid()},
         {"tid", row_},
         {"args", {{"id", record.request_id}, {"tensor", std::move(described)}}}});
  }
}

void Tracer::write_otlp(const TraceRecord& record) {
  const std::string trace_id = record.parent ? std::string(record.parent->trace_id.data(), 32) : random_hex(32);
  std::string parent = record.parent ? std::string(record.parent->span_id.data(), 16) : "";
  const auto text = [](const char* key, const std::string& value) {
    return Json{{"key", key}, {"value", {{"stringValue", value}}}};
  };
  Json list = Json::array();
  for (const Span& span : spans(record)) {
    const auto nanos = [&](TraceRecord::Clock::time_point t) {
      return std::to_string((t.time_since_epoch() + epoch_).count());
    };
    const bool whole = list.empty();
    const std::string id = random_hex(16);
    Json json = {{"traceId", trace_id},
                 {"spanId", id},
                 {"parentSpanId", parent},
                 {"name", span.name},
                 {"kind", whole ? 2 : 1},  // SERVER, INTERNAL
                 {"startTimeUnixNano", nanos(span.start)},
                 {"endTimeUnixNano", nanos(span.end)}};
    if (whole) {
      parent = id;
      json["attributes"] = Json::array(
          {text("sconce.model", record.model), text("sconce.model_version", record.version),
           text("sconce.request_id", record.request_id), text("http.request", record.method_and_path),
           Json{{"key", "http.response.status_code"}, {"value", {{"intValue", std::to_string(record.status)}}}}});
      json["status"] = {{"code", record.status >= 500 ? 2 : 0}};
      if (!record.tensors.empty()) json["events"] = Json::array();
      for (const TraceTensor& tensor : record.tensors) {
        Json attributes =
            Json::array({text("tensor.name", tensor.name), text("tensor.dtype", std::string(tensor.datatype)),
                         text("tensor.shape", tensor.shape), text("tensor.data", tensor.data)});
        if (tensor.truncated) attributes.push_back({{"key", "tensor.truncated"}, {"value", {{"boolValue", true}}}});
        json["events"].push_back({{"timeUnixNano", nanos(time_of(record, tensor))},
                                  {"name", tensor.activity},
                                  {"attributes", std::move(attributes)}});
      }
    }
    list.push_back(std::move(json));
  }
  const Json line = {
      {"resourceSpans",
       Json::array({{{"resource", {{"attributes", Json::array({text("service.name", "sconce")})}}},
                     {"scopeSpans", Json::array({{{"scope", {{"name", "sconce"}}}, {"spans", std::move(list)}}})}}})}};
  text_ += dump(line) + "\n";
}

}  // namespace sconce::server
