// PushLease: tells all servers of a push again and again that its pusher lives, on a thread for each server, so that
// one that says nothing does not cost the others their lease.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/http/client/admin_client.h"

namespace sconce::server::commands {

class PushLease {
 public:
  // target: what to post. It is repeated three times in a lease.
  PushLease(const std::vector<AdminClient>& servers, const std::string& target, std::chrono::milliseconds lease);
  ~PushLease();
  PushLease(const PushLease&) = delete;
  PushLease& operator=(const PushLease&) = delete;

 private:
  Mutex mutex_;
  ConditionVariable ending_;
  bool ended_ SCONCE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sconce::server::commands
