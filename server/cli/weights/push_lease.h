// PushLease: renews the lease of a push on all servers, with one thread per server, so that an unresponsive server does
// not delay the renewals on the others.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sconce/mutex.h"
#include "server/http/client/admin_client.h"

namespace sconce::server::cli {

class PushLease {
 public:
  // target: of the POST request. It is repeated three times per lease.
  PushLease(const std::vector<http::AdminClient>& servers, const std::string& target, std::chrono::milliseconds lease);
  ~PushLease();
  PushLease(const PushLease&) = delete;
  PushLease& operator=(const PushLease&) = delete;

 private:
  Mutex mutex_;
  ConditionVariable ending_;
  bool ended_ SCONCE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace sconce::server::cli
