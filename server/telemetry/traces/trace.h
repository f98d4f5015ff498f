// Tracer: selects the requests to record, and passes records to a ring of the last ones, the file of setting
// trace_file, and a collector. Has Triton's trace settings. Thread-safe.
//
// A request is recorded if the level allows it and it is selected (one in `rate`), or if its traceparent is marked as
// sampled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sconce/mutex.h"
#include "server/support/config.h"
#include "server/telemetry/otlp/otlp_exporter.h"
#include "server/telemetry/trace_record.h"
#include "server/telemetry/traces/trace_ring.h"
#include "server/telemetry/traces/trace_writer.h"

namespace sconce::server::telemetry {

class Tracer {
 public:
  // Opens the file in the settings. kInvalidArgument, kIo.
  explicit Tracer(const ServerConfig& config);
  Tracer(const Tracer&) = delete;

  // Whether any request is recorded. Costs one load.
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }
  TraceLevels sample(std::string_view model, const std::optional<TraceParent>& parent);
  void record(TraceRecord record);
  // Also passes records to `exporter`, which outlives the callers of record(). Call this before the first request.
  void export_to(OtlpExporter* exporter) noexcept { exporter_ = exporter; }

  // Triton's trace settings of a model as JSON; the server's if `model` is empty.
  std::string settings(std::string_view model) const;
  // body: members to change; null restores the default. kInvalidArgument; kUnsupported for fixed settings.
  void change(std::string_view model, std::string_view body);
  // The last records, at most `limit`, as JSON; only of one model unless `model` is empty.
  std::string records(std::string_view model, size_t limit) const;

  // Records missing in the file because they arrived too fast, or because writing failed.
  uint64_t dropped() const noexcept { return writer_ ? writer_->dropped() : 0; }
  uint64_t failed() const noexcept { return writer_ ? writer_->failed() : 0; }

 private:
  struct Settings {
    TraceLevels levels;
    uint64_t rate = 1000;
    int64_t count = -1;  // remaining records; -1: no limit
  };
  struct Changes {  // a model's own settings; absent ones are inherited from the server
    std::optional<TraceLevels> levels;
    std::optional<uint64_t> rate;
    std::optional<int64_t> count;
    uint64_t seen = 0;
  };
  Settings effective(std::string_view model) const SCONCE_REQUIRES(mutex_);
  void update_enabled() SCONCE_REQUIRES(mutex_);

  const std::string path_;
  const TraceFormat format_;
  const Settings defaults_;
  const std::chrono::nanoseconds epoch_ = steady_epoch();
  std::atomic<bool> enabled_{false};
  // Settings that apply to every request without taking the lock: no model has its own settings, and there is no count.
  // rate 0: the lock is needed.
  struct ForAll {
    uint32_t rate = 0;
    TraceLevels levels;
  };
  std::atomic<ForAll> for_all_{ForAll{}};
  std::atomic<uint64_t> seen_{0};  // requests counted for the server's rate

  mutable Mutex mutex_;
  Settings server_ SCONCE_GUARDED_BY(mutex_);
  std::map<std::string, Changes, std::less<>> models_ SCONCE_GUARDED_BY(mutex_);
  uint64_t records_each_ SCONCE_GUARDED_BY(mutex_) = 0;  // of FILE.0, FILE.1 and so on; 0: one file
  TraceRing ring_;
  std::unique_ptr<TraceWriter> writer_;  // null: no file
  OtlpExporter* exporter_ = nullptr;
};

}  // namespace sconce::server::telemetry
