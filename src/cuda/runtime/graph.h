// A recorded CUDA graph that copies memory before and after its work. The copies are kernel nodes whose arguments are
// set again when they differ from the last launch's.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "src/device/device_backend.h"

namespace sconce::cuda {

class CachingAllocator;

// Called while the stream is recorded; makes as many copy nodes as `count` pieces need.
std::vector<cudaGraphNode_t> record_copies(size_t count, cudaStream_t stream);

class Graph final : public DeviceGraph {
 public:
  // Takes over the recorded graph, which contains the copy nodes, and its memory, which the destructor orphans. If the
  // constructor throws, both still belong to the caller. `kept` holds what the recorded work uses.
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
