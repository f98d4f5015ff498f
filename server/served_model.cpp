#include "server/served_model.h"

#include "sconce/check.h"
#include "server/documents.h"

namespace sconce {
namespace {

// Runs to look at before one is trusted to be quick.
constexpr int64_t kProbation = 8;
constexpr int64_t kAverageOver = 8;

int64_t inline_limit(const ModelInterface& interface, const ModelConfig& config, std::chrono::nanoseconds limit) {
  // A run that writes its buffers stays on its lane: nothing else may run before its outputs were looked at. One that
  // uses several threads has them on its lane.
  const bool possible = !interface.mutates_constants && interface.spec.threads <= 1 && config.threads <= 1;
  return possible ? limit.count() : 0;
}

}  // namespace

ServedModel::ServedModel(ModelInterface interface, std::shared_ptr<Model> model, const ModelConfig& config,
                         std::shared_ptr<Statistics> statistics, std::chrono::nanoseconds inline_below)
    : interface_(std::move(interface)),
      model_(std::move(model)),
      config_json_(config_document(interface_, config.replicas, config.devices.front())),
      queue_(config.queue),
      replicas_(model_->info().replicas),
      inline_below_ns_(inline_limit(interface_, config, inline_below)),
      statistics_(std::move(statistics)) {}

ModelStatistics ServedModel::statistics_now() const {
  return {interface_.name, interface_.version, statistics_->totals(), model_->info().constant_bytes};
}

int64_t ServedModel::pending() const noexcept {
  return std::max<int64_t>(in_flight() - replicas_.load(std::memory_order_relaxed), 0);
}

ServedModel::Place ServedModel::admit() {
  const int64_t replicas = replicas_.load(std::memory_order_relaxed);
  const int64_t before = in_flight_.fetch_add(1, std::memory_order_relaxed);
  if (before < replicas) {
    const bool known = runs_.load(std::memory_order_relaxed) >= kProbation;
    return known && average_ns_.load(std::memory_order_relaxed) < inline_below_ns_ ? Place::kHere : Place::kLane;
  }
  if (before >= replicas + queue_) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    SCONCE_FAIL(kQueueFull, "Exceeds maximum queue size: model '", interface_.name, "' has ", queue_,
                " requests waiting");
  }
  return Place::kLane;
}

void ServedModel::leave(std::chrono::nanoseconds compute) noexcept {
  if (compute.count() > 0) {
    const int64_t average = average_ns_.load(std::memory_order_relaxed);
    average_ns_.store(average + (compute.count() - average) / kAverageOver, std::memory_order_relaxed);
    const int64_t runs = runs_.load(std::memory_order_relaxed);
    if (runs < kProbation) {
      if (runs == 0) average_ns_.store(compute.count(), std::memory_order_relaxed);
      runs_.store(runs + 1, std::memory_order_relaxed);
    }
  }
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace sconce
