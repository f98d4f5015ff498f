// DnnLane: cuDNN's handle of a lane and what it has planned with it. A handle works for one stream at a time, and plans
// are not safe to run on several threads: so neither is shared, and neither takes a lock that others wait for.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "sconce/tensor.h"
#include "src/cuda/cudnn/cudnn_library.h"
#include "src/cuda/cudnn/dnn_graph.h"
#include "src/cuda/runtime/plan_cache.h"

namespace sconce::cuda {

class DnnLane {
 public:
  // Of the current device.
  explicit DnnLane(cudaStream_t stream) : stream_(stream) {
    SCONCE_DNN(cudnnCreate(&handle_.value));
    SCONCE_DNN(cudnnSetStream(handle_.value, stream));
  }
  void follow(cudaStream_t stream) {
    if (stream != stream_) SCONCE_DNN(cudnnSetStream(handle_.value, stream));
    stream_ = stream;
  }
  cudnnHandle_t handle() const noexcept { return handle_.value; }
  PlanCache<DnnGraph>& graphs() noexcept { return graphs_; }

 private:
  Handle<cudnnHandle_t, cudnnDestroy> handle_;
  cudaStream_t stream_;
  PlanCache<DnnGraph> graphs_{1024};  // shapes that keep changing must not fill the memory
};

// Of the calling thread's lane, else of the thread and `device`, its current one; on its current stream.
DnnLane& dnn_lane(int device);
inline cudnnHandle_t dnn_handle(int device) { return dnn_lane(device).handle(); }

// Runs a graph that was planned with the lane's handle, which may be that it refuses; takes memory for it.
cudnnStatus_t run_graph(DnnLane& lane, DnnGraph& graph, Device device, std::span<void* const> memory);

}  // namespace sconce::cuda
