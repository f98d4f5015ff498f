// AuditLog: who changed which weights, when, and with which result. The last entries are in memory; with setting
// audit_log, each entry is also a line of JSON in a file. Thread-safe.
//
// A line is one write to a file opened for appending, and is on disk when add() returns. If a line cannot be written,
// the failure is counted and logged, and the audited change is not affected, because it has already happened. If the
// file was renamed or removed, the next line creates it, so logrotate needs no signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/telemetry/update_counters.h"

namespace sconce::server::rollout {

struct AdminRequest;

// One event. Empty texts and zeros are omitted from the line.
struct AuditEntry {
  std::string_view event;  // "committed"
  std::string model;
  int64_t version = 0;
  uint64_t before = 0, weight_version = 0;  // weight version of the active set, before and after
  std::string label, digest, set, push, reason;
  std::string verdict;  // of golden requests, as JSON
  std::string routes;   // as JSON
  std::string server;   // the actor, if it was not a request: "the other servers of the push"
};

// While an object of this class lives, entries of its thread name the request, which must outlive the object.
class AuditRequest {
 public:
  explicit AuditRequest(const AdminRequest& request) noexcept;
  ~AuditRequest();
  AuditRequest(const AuditRequest&) = delete;
  AuditRequest& operator=(const AuditRequest&) = delete;

 private:
  const AdminRequest* const outer_;
};

class AuditLog {
 public:
  // counters: outlives the log, and counts entries that could not be written. path: empty: no file.
  explicit AuditLog(telemetry::UpdateCounters& counters, std::string path = {});
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  bool has_file() const noexcept { return !path_.empty(); }
  void add(const AuditEntry& entry) noexcept;
  // The last `most` entries, oldest first, as JSON objects. model: empty for all.
  std::vector<std::string> last(std::string_view model, size_t most) const;

 private:
  static constexpr size_t kMaxEntries = 512;
  struct Entry {
    std::string model, text;
  };
  // Returns errno, or 0.
  int write(std::string_view line) noexcept SCONCE_REQUIRES(mutex_);
  int open() noexcept SCONCE_REQUIRES(mutex_);

  telemetry::UpdateCounters& counters_;
  const std::string path_;
  mutable Mutex mutex_;
  int descriptor_ SCONCE_GUARDED_BY(mutex_) = -1;
  bool torn_ SCONCE_GUARDED_BY(mutex_) = false;  // the file ends with an incomplete line
  std::deque<Entry> entries_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rollout
