// A recorded graph that copies pieces of memory before and after its work: nodes of it, whose arguments are exchanged
// where they differ from the last launch's.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "src/device/device_backend.h"

namespace sconce::cuda {

class CachingAllocator;

// While a stream is recorded: as many nodes as `count` pieces need.
std::vector<cudaGraphNode_t> record_copies(size_t count, cudaStream_t stream);

class Graph final : public DeviceGraph {
 public:
  // Takes the recorded graph, whose nodes the copies are, and its memory, which is orphaned when it goes: where it
  // throws, both are the caller's still. `kept` is what its work needs.
  Graph(cudaGraph_t recorded, CachingAllocator* memory, cudaStream_t stream,
        std::vector<std::shared_ptr<const void>> kept, std::vector<cudaGraphNode_t> before,
        std::vector<cudaGraphNode_t> after);
  ~Graph() override;
  void launch(std::span<const DeviceCopy> before, std::span<const DeviceCopy> after) override;

 private:
  struct Copies {
    std::vector<cudaGraphNode_t> nodes;
    std::vector<DeviceCopy> last;
  };
  void set(Copies& copies, std::span<const DeviceCopy> wanted);

  cudaGraph_t recorded_;
  cudaGraphExec_t graph_ = nullptr;
  CachingAllocator* memory_;
  cudaStream_t stream_;
  std::vector<std::shared_ptr<const void>> kept_;
  Copies before_, after_;
};

}  // namespace sconce::cuda
