#include "server/cli/weights/push_lease.h"

namespace sconce::server::cli {

PushLease::PushLease(const std::vector<http::AdminClient>& servers, const std::string& target,
                     std::chrono::milliseconds lease) {
  const std::chrono::milliseconds pause = lease / 3;
  for (const http::AdminClient& server : servers) {
    threads_.emplace_back(
        [this, client = server.with_patience(std::chrono::ceil<std::chrono::seconds>(pause)), target, pause] {
          MutexLock lock(mutex_);
          while (!ended_) {
            ending_.wait_for(mutex_, pause);
            if (ended_) return;
            lock.unlock();
            // A server that has not started does not know the push yet; a server that has ended it reports that later.
            (void)client.post(target);
            lock.lock();
          }
        });
  }
}

PushLease::~PushLease() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    ending_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace sconce::server::cli
