// Lane: the thread that runs a replica. Requests come in order through a lock-free stack; the thread sleeps when there
// are none. An exception of a run ends in its request.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "sconce/model.h"

namespace sconce {

class Lane {
 public:
  // `run` is called on the lane's thread for each request; what it throws becomes the request's error.
  // cpus: cores to pin the thread to; empty: any. kInvalidArgument for a core the process may not use.
  Lane(std::function<void(RunRequest&)> run, std::vector<int> cpus, std::string name);
  ~Lane();  // runs what is queued, then joins

  void submit(RunRequest& request) noexcept;
  // Requests queued or running.
  int64_t load() const noexcept { return load_.load(std::memory_order_relaxed); }

 private:
  void loop();

  std::function<void(RunRequest&)> run_;
  std::atomic<RunRequest*> stack_{nullptr};  // newest first
  std::atomic<uint32_t> arrivals_{0};
  std::atomic<int64_t> load_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sconce
