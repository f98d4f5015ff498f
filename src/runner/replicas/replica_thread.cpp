#include "src/runner/replicas/replica_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sconce/check.h"

namespace sconce::runner {
namespace {

cpu_set_t mask_of(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    SCONCE_CHECK(cpu >= 0 && cpu < CPU_SETSIZE, kInvalidArgument, "cpu_set: no core ", cpu);
    CPU_SET(static_cast<size_t>(cpu), &set);
  }
  return set;
}

}  // namespace

void check_cores(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const cpu_set_t wanted = mask_of(cpus);
  // The kernel tells which cores the process may use only by moving a thread: the calling thread goes there and back.
  cpu_set_t before, got;
  SCONCE_CHECK(sched_getaffinity(0, sizeof before, &before) == 0, kInternal, "sched_getaffinity failed");
  CPU_ZERO(&got);
  if (sched_setaffinity(0, sizeof wanted, &wanted) == 0) {
    sched_getaffinity(0, sizeof got, &got);
    sched_setaffinity(0, sizeof before, &before);
  }
  for (const int cpu : cpus)
    SCONCE_CHECK(CPU_ISSET(static_cast<size_t>(cpu), &got), kInvalidArgument, "cpu_set: the process may not use core ",
                 cpu);
}

void stay_on(const std::vector<int>& cpus) {
  const cpu_set_t cores = mask_of(cpus);
  sched_setaffinity(0, sizeof cores, &cores);
}

ReplicaThread::ReplicaThread(std::function<void(RunRequest&)> run, std::vector<int> cpus, std::string name)
    : run_(std::move(run)), cpus_(std::move(cpus)), name_(std::move(name)) {
  check_cores(cpus_);
  name_.resize(std::min<size_t>(name_.size(), 15));
}

ReplicaThread::~ReplicaThread() { close(); }

// Not std::atomic's wait and notify: wait yields the core before it sleeps, which costs as many thread switches as the
// sleep, and notify makes a system call even if the thread waits for something else.
void ReplicaThread::wake() noexcept {
  arrivals_.fetch_add(1);
  if (asleep_.load()) syscall(SYS_futex, &arrivals_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void ReplicaThread::sleep(uint32_t seen) noexcept {
  asleep_.store(true);
  // A submitter before this sees asleep_; one after this has changed arrivals_.
  if (arrivals_.load() == seen) syscall(SYS_futex, &arrivals_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  asleep_.store(false, std::memory_order_relaxed);
}

void ReplicaThread::leave() noexcept {
  if (load_.fetch_sub(1) == 1 && closed_.load()) load_.notify_all();
}

bool ReplicaThread::submit(RunRequest& request) noexcept {
  // Count first: either close() sees the request, or the request sees that the thread is closed.
  load_.fetch_add(1);
  if (closed_.load()) [[unlikely]] {
    leave();
    return false;
  }
  if (!started_.load(std::memory_order_acquire) && !start(request)) [[unlikely]] {
    leave();
    request.finished();
    return true;
  }
  request.submitted_ = std::chrono::steady_clock::now();
  RunRequest* head = stack_.load(std::memory_order_relaxed);
  do request.next_ = head;
  while (!stack_.compare_exchange_weak(head, &request, std::memory_order_release, std::memory_order_relaxed));
  if (!head) wake();
  return true;
}

bool ReplicaThread::start(RunRequest& request) noexcept {
  const MutexLock lock(starting_);
  if (started_.load(std::memory_order_relaxed)) return true;
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (...) {
    request.error = no_thread_;
    return false;
  }
  started_.store(true, std::memory_order_release);
  return true;
}

void ReplicaThread::close() noexcept {
  closed_.store(true);
  for (int64_t left = load_.load(); left != 0; left = load_.load()) load_.wait(left);
  const MutexLock lock(starting_);
  if (!started_.load(std::memory_order_relaxed)) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
  stopping_.store(false, std::memory_order_relaxed);
  started_.store(false, std::memory_order_release);
}

void ReplicaThread::reopen(std::vector<int> cpus) noexcept {
  cpus_ = std::move(cpus);
  closed_.store(false);
}

void ReplicaThread::loop() {
  pthread_setname_np(pthread_self(), name_.c_str());
  if (!cpus_.empty()) stay_on(cpus_);
  for (;;) {
    const uint32_t seen = arrivals_.load(std::memory_order_acquire);
    RunRequest* newest = stack_.exchange(nullptr, std::memory_order_acquire);
    if (!newest) {
      if (stopping_.load(std::memory_order_acquire)) return;
      sleep(seen);
      continue;
    }
    RunRequest* oldest = nullptr;
    while (newest) {
      RunRequest* next = std::exchange(newest->next_, oldest);
      oldest = std::exchange(newest, next);
    }
    while (oldest) {
      RunRequest& request = *oldest;
      oldest = request.next_;
      request.info.queue = std::chrono::steady_clock::now() - request.submitted_;
      try {
        run_(request);
      } catch (...) {
        request.error = std::current_exception();
      }
      leave();
      request.finished();  // may destroy the request
    }
  }
}

}  // namespace sconce::runner
