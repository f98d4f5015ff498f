// Tracer: records single requests; a thread of its own writes them to a file, in Chrome's trace format or as
// OpenTelemetry's OTLP in JSON lines. Has Triton's trace settings. Thread-safe.
//
// A request is recorded if the level allows it and its turn has come (one in `rate`), or if its traceparent is marked
// as sampled. If the writer cannot keep up, records are dropped and counted.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/base/config.h"
#include "server/observe/trace_file.h"
#include "server/protocols/trace_tensor.h"

namespace sconce::server {

// W3C Trace Context, level 1.
struct TraceParent {
  std::array<char, 32> trace_id;
  std::array<char, 16> span_id;
  bool sampled = false;
  // nullopt for a malformed field, which counts as absent.
  static std::optional<TraceParent> parse(std::string_view field) noexcept;
};

// What is recorded of a request.
struct TraceLevels {
  bool timestamps = false, tensors = false;
  explicit operator bool() const noexcept { return timestamps || tensors; }
};

struct TraceRecord {
  using Clock = std::chrono::steady_clock;
  std::string model, version, request_id, method_and_path;
  int status = 200;
  std::optional<TraceParent> parent;
  Clock::time_point start, decoded, run_done, encoded, sent;  // decoded, run_done: zero if not reached
  std::chrono::nanoseconds queue{}, compute{};
  TraceLevels levels;
  std::vector<TraceTensor> tensors;
};

class Tracer {
 public:
  // Opens the file that the settings name. kInvalidArgument, kIo.
  explicit Tracer(const ServerConfig& config);
  Tracer(const Tracer&) = delete;
  ~Tracer();  // writes waiting records

  // Whether any request is recorded. Costs one load.
  bool enabled() const noexcept { return enabled_.load(std::memory_order_relaxed); }
  TraceLevels sample(std::string_view model, const std::optional<TraceParent>& parent);
  void record(TraceRecord record);

  // Triton's trace settings of a model as JSON; of the server if `model` is empty.
  std::string settings(std::string_view model) const;
  // body: members to change; null restores the default. kInvalidArgument; kUnsupported for settings that are fixed.
  void change(std::string_view model, std::string_view body);

  // Records dropped because they came too fast or the file did not take them.
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  uint64_t failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  struct Settings {
    TraceLevels levels;
    uint64_t rate = 1000;
    int64_t count = -1;  // how many more records; -1: no limit
  };
  struct Changes {  // a model's own settings; absent ones are the server's
    std::optional<TraceLevels> levels;
    std::optional<uint64_t> rate;
    std::optional<int64_t> count;
    uint64_t seen = 0;
  };
  Settings effective(std::string_view model) const SCONCE_REQUIRES(mutex_);
  void update_enabled() SCONCE_REQUIRES(mutex_);
  void run() noexcept;
  // Chooses the file for the next record. Returns false if it cannot be written.
  bool choose_file(uint64_t records_each);
  void end_file();
  bool write(const TraceRecord& record);
  void write_chrome(const TraceRecord& record);
  void write_otlp(const TraceRecord& record);
  void note(bool written);

  const std::string path_;
  const TraceFormat format_;
  const Settings defaults_;
  std::atomic<bool> enabled_{false};
  std::atomic<uint64_t> dropped_{0}, failed_{0};
  std::chrono::nanoseconds epoch_{};  // the steady clock's zero, since 1970

  mutable Mutex mutex_;
  Settings server_ SCONCE_GUARDED_BY(mutex_);
  std::map<std::string, Changes, std::less<>> models_ SCONCE_GUARDED_BY(mutex_);
  uint64_t seen_ SCONCE_GUARDED_BY(mutex_) = 0;
  uint64_t records_each_ SCONCE_GUARDED_BY(mutex_) = 0;  // of FILE.0, FILE.1 and so on; 0: one file
  std::vector<TraceRecord> waiting_ SCONCE_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SCONCE_GUARDED_BY(mutex_) = 0;  // of their tensors
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  ConditionVariable wake_;

  TraceFile file_;    // used only by the writer, like the following
  std::string text_;  // of the record that is being written
  uint64_t in_file_ = 0, next_file_ = 0;
  uint64_t row_ = 0;  // Chrome's "tid" for the next record
  bool failing_ = false;
  uint64_t noted_ = 0;  // how many of failed_ were logged
  TraceRecord::Clock::time_point note_again_{};
  std::thread thread_;
};

}  // namespace sconce::server
