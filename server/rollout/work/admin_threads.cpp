#include "server/rollout/work/admin_threads.h"

#include "sconce/check.h"
#include "server/support/failure.h"

namespace sconce::server::rollout {

void AdminThreads::run(std::function<void()> work, std::function<void(const std::exception_ptr&)> failed,
                       std::function<void()> abandoned) {
  Threads joinable;
  {
    const MutexLock lock(mutex_);
    SCONCE_CHECK(!stopping_, kUnavailable, "the server is shutting down");
    SCONCE_CHECK(threads_.size() < kMost, kUnavailable, "too many admin requests at once: ", threads_.size());
    const auto self = threads_.emplace(threads_.end());
    // The thread takes the lock at its end, so it cannot end before it is in the list.
    const auto body = [this, self, work = std::move(work), failed = std::move(failed),
                       abandoned = std::move(abandoned)]() mutable noexcept {
      std::exception_ptr problem = exception_of(work);
      if (problem && !succeeds([&] { failed(problem); })) abandoned();
      work = nullptr;
      failed = nullptr;
      abandoned = nullptr;
      problem = nullptr;
      const MutexLock done(mutex_);
      joinable_.splice(joinable_.end(), threads_, self);
      ended_.notify_all();
    };
    struct Undo {
      Threads& threads;
      Threads::iterator self;
      bool started = false;
      ~Undo() {
        if (!started) threads.erase(self);
      }
    } undo{threads_, self};
    *self = std::thread(std::move(body));
    undo.started = true;
    joinable.swap(joinable_);
  }
  for (std::thread& thread : joinable) thread.join();
}

void AdminThreads::stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  while (!threads_.empty()) ended_.wait(mutex_);
  Threads joinable;
  joinable.swap(joinable_);
  lock.unlock();
  for (std::thread& thread : joinable) thread.join();
}

}  // namespace sconce::server::rollout
