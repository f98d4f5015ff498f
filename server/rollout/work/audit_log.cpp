#include "server/rollout/work/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/rollout/work/admin_request.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "server/support/time_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

thread_local const AdminRequest* current = nullptr;

OrderedJson who(const AuditEntry& entry) {
  if (current == nullptr) return {{"server", entry.server.empty() ? "this one" : entry.server}};
  OrderedJson by = OrderedJson::object();
  by["client"] = current->peer;
  by["request"] = std::string(current->id.text());
  if (!current->user_agent.empty()) by["user_agent"] = excerpt(current->user_agent);
  if (current->has_token) by["token"] = "admin";
  return by;
}

std::string line_of(const AuditEntry& entry) {
  OrderedJson json = {{"time", time_text(std::chrono::system_clock::now())},
                      {"event", std::string(entry.event)},
                      {"model", entry.model},
                      {"version", std::to_string(entry.version)}};
  if (entry.before != 0) json["before"] = entry.before;
  if (entry.weight_version != 0) {
    json["weight_version"] = entry.weight_version;
    json["generation"] = entry.weight_version;  // deprecated
  }
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = text;
  };
  add("label", entry.label);
  add("digest", entry.digest);
  add("set", entry.set);
  add("push", entry.push);
  if (!entry.verdict.empty()) json["golden"] = parse_document(entry.verdict);
  if (!entry.routes.empty()) json["routes"] = parse_document(entry.routes);
  add("reason", entry.reason);
  json["by"] = who(entry);
  return dump(json);
}

}  // namespace

AuditRequest::AuditRequest(const AdminRequest& request) noexcept : outer_(std::exchange(current, &request)) {}
AuditRequest::~AuditRequest() { current = outer_; }

AuditLog::AuditLog(telemetry::UpdateCounters& counters, std::string path)
    : counters_(counters), path_(std::move(path)) {
  if (!has_file()) return;
  const MutexLock lock(mutex_);
  if (const int problem = open(); problem != 0) {
    counters_.audit_failures.fetch_add(1, std::memory_order_relaxed);
    log_error("audit_log {} cannot be written: {}", printable(path_), std::strerror(problem));
  }
}

AuditLog::~AuditLog() {
  const MutexLock lock(mutex_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

// Opens the file; opens it again if its name was removed or refers to another file by now.
int AuditLog::open() noexcept {
  struct stat named {
  }, opened{};
  if (descriptor_ >= 0 && ::stat(path_.c_str(), &named) == 0 && ::fstat(descriptor_, &opened) == 0 &&
      named.st_dev == opened.st_dev && named.st_ino == opened.st_ino)
    return 0;
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  // O_NONBLOCK: a FIFO without a reader must not block the server.
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640);
  torn_ = false;
  return descriptor_ >= 0 ? 0 : errno;
}

int AuditLog::write(std::string_view line) noexcept {
  if (const int problem = open(); problem != 0) return problem;
  for (;;) {
    const ssize_t done = ::write(descriptor_, line.data(), line.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    if (static_cast<size_t>(done) == line.size()) break;
    torn_ |= done > 0;
    return ENOSPC;
  }
  torn_ = false;
  // Devices and pipes cannot be synced, which is not an error.
  return ::fdatasync(descriptor_) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

void AuditLog::add(const AuditEntry& entry) noexcept {
  int problem = ENOMEM;
  succeeds([&] {
    std::string text = line_of(entry);
    const MutexLock lock(mutex_);
    problem = has_file() ? write((torn_ ? "\n" : "") + text + "\n") : 0;
    if (entries_.size() == kMaxEntries) entries_.pop_front();
    entries_.push_back({entry.model, std::move(text)});
  });
  if (problem == 0) return;
  counters_.audit_failures.fetch_add(1, std::memory_order_relaxed);
  log_error("audit_log: '{}' of model {} version {} is not written: {}", entry.event, entry.model, entry.version,
            std::strerror(problem));
}

std::vector<std::string> AuditLog::last(std::string_view model, size_t most) const {
  std::vector<std::string> texts;
  const MutexLock lock(mutex_);
  for (auto it = entries_.rbegin(); it != entries_.rend() && texts.size() < most; ++it)
    if (model.empty() || it->model == model) texts.push_back(it->text);
  std::reverse(texts.begin(), texts.end());
  return texts;
}

}  // namespace sconce::server::rollout
