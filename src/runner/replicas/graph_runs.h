// Runs a container as device graphs. A graph is recorded after a shape of inputs was run a few times. From then on one
// call launches it, together with the copies of inputs to where the graph reads them and of outputs from where it
// leaves them.
//
// A graph belongs to one container, so new weights have new graphs. Used by the thread that holds the replica.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "src/device/device_backend.h"

namespace sconce::runner {

// What other threads may see of a replica's graphs. Thread-safe.
class GraphReport {
 public:
  void recorded(int change) noexcept;
  void ran() noexcept { runs_.fetch_add(1, std::memory_order_relaxed); }
  // Nothing is recorded for now, or for good. Returns true the first time for good.
  bool refused(std::string why, bool for_good);
  bool recordable() const noexcept { return !for_good_.load(std::memory_order_relaxed); }
  int count() const noexcept { return recorded_.load(std::memory_order_relaxed); }
  uint64_t runs() const noexcept { return runs_.load(std::memory_order_relaxed); }
  std::string why_none() const;  // empty: they may be recorded

 private:
  std::atomic<int> recorded_{0};
  std::atomic<uint64_t> runs_{0};
  std::atomic<bool> for_good_{false};
  mutable Mutex mutex_;
  std::string why_ SCONCE_GUARDED_BY(mutex_);
};

class alignas(64) GraphRuns {  // written with every run, so not on a cache line of other replicas
 public:
  static constexpr int kRunsBefore = 2;  // runs of a shape before it is recorded
  static constexpr int kTries = 6;       // attempts in all for a shape whose recording fails for a passing reason

  struct Shape {
    std::vector<int64_t> key;
    uint64_t used = 0;
    int runs = 0;
    int failed = 0;                       // recordings in a row
    std::vector<Tensor> inputs, outputs;  // the graph's own; empty without a graph
    std::vector<StoragePtr> staged;       // for each input: pinned host memory, for small ones from the host
    std::vector<DeviceCopy> before, after;
    std::unique_ptr<DeviceGraph> graph;
  };

  // most: graphs at a time; the least recently used one goes first.
  GraphRuns(size_t most, std::shared_ptr<GraphReport> report);
  ~GraphRuns();
  GraphRuns(const GraphRuns&) = delete;
  GraphRuns& operator=(const GraphRuns&) = delete;

  // The shape of these inputs by dtypes, sizes and strides; counts this run. Null if nothing can be recorded.
  Shape* find(std::span<const Tensor> inputs);
  bool wants_graph(const Shape& shape) const noexcept {
    return !shape.graph && shape.failed < kTries && shape.runs > kRunsBefore << (2 * shape.failed);
  }
  // Makes room for the shape's graph.
  void make_room(const Shape& shape);
  void keep(Shape& shape, std::unique_ptr<DeviceGraph> graph);
  // Drops all graphs and their memory, as nobody runs the container now. They are recorded again when it runs.
  void clear() noexcept;
  void ran() noexcept { report_->ran(); }
  // The model cannot be recorded; `why` is for people. Nothing is tried again.
  void refuse(std::string why);
  // The recording failed for a passing reason: no memory, or other work on the device.
  void postpone(Shape& shape, std::string why);

 private:
  void drop(Shape& shape) noexcept;

  const size_t most_;
  std::shared_ptr<GraphReport> report_;
  bool refused_ = false;
  uint64_t uses_ = 0;
  std::vector<std::unique_ptr<Shape>> shapes_;
};

}  // namespace sconce::runner
