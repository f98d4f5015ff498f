// AuditLog: who changed which weights, when, and what came of it. The last entries are in memory; with the setting
// audit_log, each is also a line of JSON in a file. Thread-safe.
//
// A line is one write to a file that is opened for appending, and it is on the disk when add() returns. A line that
// cannot be written is counted and logged, and nothing else happens: what it tells of is done already. A file that was
// renamed or removed is made anew by the next line, so logrotate needs no signal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"

namespace sconce::server {

struct AdminRequest;

// What happened. Empty texts and zeros are left out of the line.
struct AuditEntry {
  std::string_view event;  // "committed"
  std::string model;
  int64_t version = 0;
  uint64_t before = 0, generation = 0;  // of the active set, before and now
  std::string label, digest, set, push, reason;
  std::string verdict;  // of golden requests, as JSON
  std::string routes;   // as JSON
  std::string server;   // who did it, where no request did: "the other servers of the push"
};

// While an object of this class lives, entries of this thread name the request, which must outlive the object.
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
  // path: empty for no file.
  explicit AuditLog(std::string path = {});
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  bool has_file() const noexcept { return !path_.empty(); }
  void add(const AuditEntry& entry) noexcept;
  // The last `most` entries, oldest first, as JSON objects. model: empty for all.
  std::vector<std::string> last(std::string_view model, size_t most) const;
  // The number of entries that could not be written.
  uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kKept = 512;
  struct Kept {
    std::string model, text;
  };
  // Returns errno, or 0.
  int write(std::string_view line) noexcept SCONCE_REQUIRES(mutex_);
  int open() noexcept SCONCE_REQUIRES(mutex_);

  const std::string path_;
  std::atomic<uint64_t> failures_{0};
  mutable Mutex mutex_;
  int descriptor_ SCONCE_GUARDED_BY(mutex_) = -1;
  bool torn_ SCONCE_GUARDED_BY(mutex_) = false;  // the file ends within a line
  std::deque<Kept> kept_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
