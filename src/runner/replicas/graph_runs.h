// Runs of a container as graphs of the device: recorded once a shape of inputs has been run a few times, and done with
// one call from then on, which also copies inputs to where the graph reads them and outputs from where it leaves them.
//
// A graph is of one container, so new weights have graphs of their own. Used by the thread that holds the replica.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "src/device/device_backend.h"

namespace sconce::runner {

// What others may know of a replica's graphs. Thread-safe.
class GraphReport {
 public:
  void recorded(int change) noexcept;
  void ran() noexcept { runs_.fetch_add(1, std::memory_order_relaxed); }
  // Nothing is recorded for now, or for good. True the first time for good.
  bool refused(std::string why, bool for_good);
  bool recordable() const noexcept { return !for_good_.load(std::memory_order_relaxed); }
  int count() const noexcept { return recorded_.load(std::memory_order_relaxed); }
  uint64_t runs() const noexcept { return runs_.load(std::memory_order_relaxed); }
  std::string why_none() const;  // empty: nothing speaks against them

 private:
  std::atomic<int> recorded_{0};
  std::atomic<uint64_t> runs_{0};
  std::atomic<bool> for_good_{false};
  mutable Mutex mutex_;
  std::string why_ SCONCE_GUARDED_BY(mutex_);
};

class alignas(64) GraphRuns {  // written with every run, beside those of other replicas
 public:
  static constexpr int kRunsBefore = 2;  // of a shape, until it is recorded
  static constexpr int kTries = 6;       // of a shape whose recording fails for what may pass, ever later

  struct Shape {
    std::vector<int64_t> key;
    uint64_t used = 0;
    int runs = 0;
    int failed = 0;                       // recordings in a row
    std::vector<Tensor> inputs, outputs;  // the graph's own; empty without one
    std::vector<StoragePtr> staged;       // by input: pinned memory of the host, for small ones from there
    std::vector<DeviceCopy> before, after;
    std::unique_ptr<DeviceGraph> graph;
  };

  // most: graphs at a time; the one that was not used for longest goes first.
  GraphRuns(size_t most, std::shared_ptr<GraphReport> report);
  ~GraphRuns();
  GraphRuns(const GraphRuns&) = delete;
  GraphRuns& operator=(const GraphRuns&) = delete;

  // The shape of these inputs, by dtypes, sizes and strides, with this run counted. Null where nothing can be recorded.
  Shape* find(std::span<const Tensor> inputs);
  bool wants_graph(const Shape& shape) const noexcept {
    return !shape.graph && shape.failed < kTries && shape.runs > kRunsBefore << (2 * shape.failed);
  }
  // Makes room for the graph that is given to the shape next.
  void make_room(const Shape& shape);
  void keep(Shape& shape, std::unique_ptr<DeviceGraph> graph);
  // Nobody runs the container for now: all graphs go, with their memory. Recorded again when it runs.
  void clear() noexcept;
  void ran() noexcept { report_->ran(); }
  // The model cannot be recorded; why is for people. Nothing is tried again.
  void refuse(std::string why);
  // The recording failed for what may pass: no memory, or a neighbour on the device.
  void postpone(Shape& shape, std::string why);

 private:
  void drop(Shape& shape) noexcept;

  const size_t most_;
  std::shared_ptr<GraphReport> report_;
  bool refused_ = false;
  uint64_t turn_ = 0;
  std::vector<std::unique_ptr<Shape>> shapes_;
};

}  // namespace sconce::runner
