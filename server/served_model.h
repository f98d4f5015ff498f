// ServedModel: one version of a model that is loaded, with what the server knows about it. Thread-safe; destroyed by
// the reaper once it is served no more and its last request has left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sconce/model.h"
#include "server/config.h"
#include "server/interface.h"
#include "server/reaper.h"
#include "server/statistics.h"

namespace sconce {

class ServedModel final : public Reaped {
 public:
  // statistics: those of earlier loads go on. inline_below: see settings.def.
  ServedModel(ModelInterface interface, std::shared_ptr<Model> model, const ModelConfig& config,
              std::shared_ptr<Statistics> statistics, std::chrono::nanoseconds inline_below);

  const ModelInterface& interface() const noexcept { return interface_; }
  Model& model() const noexcept { return *model_; }
  const std::string& config_json() const noexcept { return config_json_; }
  Statistics& statistics() const noexcept { return *statistics_; }
  ModelStatistics statistics_now() const;
  int64_t in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }
  // Replicas were added or removed: how many there are now.
  void set_replicas(int64_t count) noexcept { replicas_.store(count, std::memory_order_relaxed); }
  // Requests that wait for a replica.
  int64_t pending() const noexcept;

  enum class Place : int8_t { kHere, kLane };
  // Takes a place for one request: on the calling thread, if the model is quick and a replica is free, else on a lane.
  // kQueueFull. leave() gives it back, with how long the run took (zero: it did not run).
  Place admit();
  void leave(std::chrono::nanoseconds compute) noexcept;

 private:
  const ModelInterface interface_;
  const std::shared_ptr<Model> model_;
  const std::string config_json_;
  const int64_t queue_;
  std::atomic<int64_t> replicas_;
  const int64_t inline_below_ns_;  // 0: never
  const std::shared_ptr<Statistics> statistics_;
  alignas(64) std::atomic<int64_t> in_flight_{0};
  std::atomic<int64_t> runs_{0};
  std::atomic<int64_t> average_ns_{0};  // moving, over the last dozen runs or so
};

}  // namespace sconce
