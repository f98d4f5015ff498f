// ReplicaThread: the thread that runs a replica. Requests arrive in order on a lock-free stack. The first one starts
// the thread, which sleeps when there are none. A run's exception ends in its request.
//
// Thread-safe, except that one thread at a time calls close() and reopen().
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "sconce/model.h"
#include "sconce/mutex.h"

namespace sconce::runner {

// Restricts the calling thread to these cores.
void stay_on(const std::vector<int>& cpus);
// Calls body as a ReplicaThread on these cores would: on a new thread there, whose helper threads stay there too.
// Empty: here.
template <class F>
auto on_cores(const std::vector<int>& cpus, F&& body) {
  if (cpus.empty()) return body();
  return std::async(std::launch::async,
                    [&] {
                      stay_on(cpus);
                      return body();
                    })
      .get();
}

// kInvalidArgument for a core that the process may not use.
void check_cores(const std::vector<int>& cpus);

class ReplicaThread {
 public:
  // `run` is called on the thread for each request; what it throws becomes the request's error. cpus: cores to
  // pin the thread to; empty: any. kInvalidArgument for a core that the process may not use.
  ReplicaThread(std::function<void(RunRequest&)> run, std::vector<int> cpus, std::string name);
  ~ReplicaThread();  // calls close()

  // Returns false if the thread is closed; nothing happens to the request then. If the thread cannot be started, the
  // request finishes with kUnavailable.
  bool submit(RunRequest& request) noexcept;
  // Requests queued or running.
  int64_t load() const noexcept { return load_.load(std::memory_order_relaxed); }

  // Runs what is queued, then ends the thread. Others may call submit() during and after this.
  void close() noexcept;
  // `cpus` have passed check_cores().
  void reopen(std::vector<int> cpus) noexcept;
  const std::vector<int>& cpus() const noexcept { return cpus_; }

 private:
  void loop();
  void wake() noexcept;
  void sleep(uint32_t seen) noexcept;
  bool start(RunRequest& request) noexcept;
  void leave() noexcept;

  std::function<void(RunRequest&)> run_;
  // Made while there is memory, because submit() does not throw.
  const std::exception_ptr no_thread_ =
      std::make_exception_ptr(Error(ErrorCode::kUnavailable, "no thread can be started for a replica"));
  std::vector<int> cpus_;
  std::string name_;
  std::atomic<RunRequest*> stack_{nullptr};  // newest first
  std::atomic<uint32_t> arrivals_{0};        // a futex
  std::atomic<bool> asleep_{false};
  std::atomic<int64_t> load_{0};
  std::atomic<bool> closed_{false}, stopping_{false}, started_{false};
  Mutex starting_;
  std::thread thread_ SCONCE_GUARDED_BY(starting_);
};

}  // namespace sconce::runner
