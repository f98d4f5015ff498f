// TraceWriter: a thread that writes records to a file, in Chrome's trace format or as OpenTelemetry's OTLP in JSON
// lines. Thread-safe. If it cannot keep up, records are dropped and counted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/support/config.h"
#include "server/telemetry/trace_record.h"
#include "server/telemetry/traces/trace_file.h"

namespace sconce::server::telemetry {

class TraceWriter {
 public:
  // Opens the file. kIo.
  TraceWriter(const std::string& path, TraceFormat format, std::string resource);
  TraceWriter(const TraceWriter&) = delete;
  ~TraceWriter();  // writes waiting records

  void add(std::shared_ptr<const TraceRecord> record);
  // From now on writes FILE.0, FILE.1 and so on, with records_each records per file; 0: one file.
  void number_files(uint64_t records_each);

  // Records that were dropped because they arrived too fast, or because writing failed.
  uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  uint64_t failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  void run() noexcept;
  // Chooses the file for the next record. Returns false if it cannot be written.
  bool choose_file(uint64_t records_each);
  void end_file();
  bool write(const TraceRecord& record);
  void note(bool written);

  const std::string path_;
  const TraceFormat format_;
  const std::string resource_;  // for OTLP, as JSON
  const std::chrono::nanoseconds epoch_ = steady_epoch();
  std::atomic<uint64_t> dropped_{0}, failed_{0};

  Mutex mutex_;
  std::vector<std::shared_ptr<const TraceRecord>> waiting_ SCONCE_GUARDED_BY(mutex_);
  size_t waiting_bytes_ SCONCE_GUARDED_BY(mutex_) = 0;  // of their tensors
  uint64_t records_each_ SCONCE_GUARDED_BY(mutex_) = 0;
  bool stopping_ SCONCE_GUARDED_BY(mutex_) = false;
  ConditionVariable wake_;

  TraceFile file_;    // used only by the thread, like the following
  std::string text_;  // of the current record
  uint64_t in_file_ = 0, next_file_ = 0;
  uint64_t row_ = 0;  // Chrome's "tid" for the next record
  bool failing_ = false;
  uint64_t noted_ = 0;  // number of records in failed_ that were logged
  TraceRecord::Clock::time_point note_again_{};
  std::thread thread_;
};

}  // namespace sconce::server::telemetry
