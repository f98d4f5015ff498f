#include "src/runner/lane.h"

#include <pthread.h>
#include <sched.h>

#include <utility>

#include "sconce/check.h"

namespace sconce {

Lane::Lane(std::function<void(RunRequest&)> run, std::vector<int> cpus, std::string name) : run_(std::move(run)) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) {
    SCONCE_CHECK(cpu >= 0 && cpu < CPU_SETSIZE, kInvalidArgument, "cpu_set: no core ", cpu);
    CPU_SET(static_cast<size_t>(cpu), &set);
  }
  thread_ = std::thread([this] { loop(); });
  name.resize(std::min<size_t>(name.size(), 15));
  pthread_setname_np(thread_.native_handle(), name.c_str());
  if (!cpus.empty() && pthread_setaffinity_np(thread_.native_handle(), sizeof set, &set) != 0) {
    stopping_.store(true);
    arrivals_.fetch_add(1);
    arrivals_.notify_one();
    thread_.join();
    SCONCE_FAIL(kInvalidArgument, "cpu_set: the process may not use these cores");
  }
}

Lane::~Lane() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  arrivals_.fetch_add(1, std::memory_order_release);
  arrivals_.notify_one();
  thread_.join();
}

void Lane::submit(RunRequest& request) noexcept {
  request.submitted_ = std::chrono::steady_clock::now();
  load_.fetch_add(1, std::memory_order_relaxed);
  RunRequest* head = stack_.load(std::memory_order_relaxed);
  do request.next_ = head;
  while (!stack_.compare_exchange_weak(head, &request, std::memory_order_release, std::memory_order_relaxed));
  if (!head) {
    arrivals_.fetch_add(1, std::memory_order_release);
    arrivals_.notify_one();
  }
}

void Lane::loop() {
  for (;;) {
    const uint32_t seen = arrivals_.load(std::memory_order_acquire);
    RunRequest* newest = stack_.exchange(nullptr, std::memory_order_acquire);
    if (!newest) {
      if (stopping_.load(std::memory_order_acquire)) return;
      arrivals_.wait(seen, std::memory_order_acquire);
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
      load_.fetch_sub(1, std::memory_order_relaxed);
      request.finished();  // the request may be gone after this
    }
  }
}

}  // namespace sconce
