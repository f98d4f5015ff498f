#include "server/telemetry/traces/trace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sconce/check.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/request_id.h"
#include "server/telemetry/otlp/otlp_json.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::telemetry {
namespace {

using Json = OrderedJson;

// Reads a number, which Triton's clients may send as text.
template <class T>
T number_from_text(JsonCursor& json, std::string_view what) {
  const std::string_view text = json.string(what);
  const auto value = parse_number<T>(text);
  SCONCE_CHECK(value, kInvalidArgument, what, " must be a whole number as a string, got '", excerpt(text), "'");
  return *value;
}

TraceLevels levels_at_start(const ServerConfig& config) {
  const bool is_given = std::find(config.given.begin(), config.given.end(), "trace_level") != config.given.end();
  if (!is_given && OtlpExporter::is_on(config) && config.otlp_traces) return {true, false};
  return {config.trace_level != TraceLevel::kOff, config.trace_level == TraceLevel::kTensors};
}

}  // namespace

Tracer::Tracer(const ServerConfig& config)
    : path_(config.trace_file),
      format_(config.trace_format),
      defaults_{levels_at_start(config), static_cast<uint64_t>(std::max<int64_t>(config.trace_rate, 1)), -1},
      server_(defaults_),
      writer_(path_.empty() ? nullptr : std::make_unique<TraceWriter>(path_, format_, otlp_resource(config))) {
  const MutexLock lock(mutex_);
  update_enabled();
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
  const bool simple = models_.empty() && server_.count == -1 && server_.rate <= std::numeric_limits<uint32_t>::max();
  for_all_ = simple ? ForAll{static_cast<uint32_t>(server_.rate), server_.levels} : ForAll{};
  enabled_ = any;
}

TraceLevels Tracer::sample(std::string_view model, const std::optional<TraceParent>& parent) {
  const bool wanted = parent && parent->sampled;
  if (const ForAll all = for_all_.load(std::memory_order_relaxed); all.rate != 0) {
    if (!all.levels) return {};
    const bool due = seen_.fetch_add(1, std::memory_order_relaxed) % all.rate == 0;
    return due || wanted ? all.levels : TraceLevels{};
  }
  const MutexLock lock(mutex_);
  const Settings settings = effective(model);
  if (!settings.levels || settings.count == 0) return {};
  const auto own = models_.find(model);
  const bool counts_alone = own != models_.end() && own->second.rate;
  const uint64_t seen = counts_alone ? own->second.seen++ : seen_.fetch_add(1, std::memory_order_relaxed);
  if (seen % settings.rate != 0 && !wanted) return {};
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
  record.trace_id =
      record.parent ? std::string(record.parent->trace_id.data(), record.parent->trace_id.size()) : random_hex(32);
  record.span_id = random_hex(16);
  std::shared_ptr<const TraceRecord>
      light;  // without tensors, because many records with tensors would need too much memory
  if (!record.tensors.empty()) {
    std::vector<codecs::TraceTensor> tensors = std::exchange(record.tensors, {});
    light = std::make_shared<const TraceRecord>(record);
    record.tensors = std::move(tensors);
  }
  auto whole = std::make_shared<const TraceRecord>(std::move(record));
  ring_.add(light ? std::move(light) : whole);
  // The creator of the trace has decided whether it is collected.
  if (exporter_ && (!whole->parent || whole->parent->sampled)) exporter_->add(whole);
  if (writer_) writer_->add(std::move(whole));
}

std::string Tracer::records(std::string_view model, size_t limit) const {
  Settings settings;
  {
    const MutexLock lock(mutex_);
    settings = effective(model);
  }
  const bool enabled = model.empty() ? this->enabled() : static_cast<bool>(settings.levels);
  return "{\"enabled\":" + std::string(enabled ? "true" : "false") + ",\"rate\":" + std::to_string(settings.rate) +
         ",\"traces\":" + ring_.document(model, limit, epoch_) + "}";
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
  // Changes of the server's settings; null restores the initial setting.
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
  if (writer_) writer_->number_files(records_each);
  if (model.empty()) {
    server_ = {*changes.levels, *changes.rate, *changes.count};
  } else if (changes.levels || changes.rate || changes.count) {
    models_.insert_or_assign(std::string(model), changes);
  } else if (known != models_.end()) {
    models_.erase(known);
  }
  update_enabled();
}

}  // namespace sconce::server::telemetry
