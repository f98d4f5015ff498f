// DnnLane: a stream's cuDNN handle and the plans made with it. A handle serves one stream at a time, and a plan may
// run on one thread at a time, so each stream has its own and waits for no lock of another.
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
  // The stream belongs to the current device.
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
  PlanCache<DnnGraph> graphs_{1024};  // bounded, because a model's shapes may keep changing
};

// The state of the calling thread's stream, else the thread's own state for `device`, its current one; on its current
// stream.
DnnLane& dnn_lane(int device);
inline cudnnHandle_t dnn_handle(int device) { return dnn_lane(device).handle(); }

// Runs a graph that was planned with this handle and allocates its workspace; tries further plans if one refuses.
cudnnStatus_t run_graph(DnnLane& lane, DnnGraph& graph, Device device, std::span<void* const> memory);

}  // namespace sconce::cuda
