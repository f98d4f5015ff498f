#include "src/cuda/cudnn/cudnn_library.h"

#include <array>

#include "src/cuda/cudnn/dnn_lane.h"
#include "src/cuda/runtime/per_device.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/device/lazy_library.h"

SCONCE_LAZY_LIBRARY(cudnn);

namespace sconce::cuda {

void require_dnn() { require_library(sconce_lazy_cudnn); }
bool try_dnn() {
  static const bool opened = try_open_library(sconce_lazy_cudnn);
  return opened;
}

void check_dnn(cudnnStatus_t status, const char* expression) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  SCONCE_CHECK(!is_unsupported(status), kUnsupported, expression, ": cuDNN does not support it");
  std::array<char, 1024> why{};
  cudnnGetLastErrorString(why.data(), why.size() - 1);
  SCONCE_FAIL(kDevice, expression, ": cuDNN error ", static_cast<int>(status), ": ", why.data());
}

DnnLane& dnn_lane(int device) {
  if (std::shared_ptr<DnnLane>* const mine = current().dnn) {
    if (!*mine) *mine = std::make_shared<DnnLane>(current_stream());
    return **mine;
  }
  static thread_local PerDevice<std::unique_ptr<DnnLane>> of_thread;
  auto& lane = of_thread[device];
  if (!lane) lane = std::make_unique<DnnLane>(current_stream());
  lane->follow(current_stream());
  return *lane;
}

cudnnStatus_t run_graph(DnnLane& lane, DnnGraph& graph, Device device, std::span<void* const> memory) {
  cudnnStatus_t status = graph.status();
  while (status == CUDNN_STATUS_SUCCESS) {
    const Tensor workspace = graph.workspace() > 0 ? scratch(graph.workspace(), device) : Tensor();
    status = graph.run(lane.handle(), memory, workspace.defined() ? workspace.data() : nullptr);
    if (!is_unsupported(status)) break;
    status = graph.next(lane.handle());
  }
  return status;
}

cudnnDataType_t dnn_type_of(const char* name, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDNN_DATA_FLOAT;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      SCONCE_FAIL(kUnsupported, name, ": not implemented for '", dtype_name(dtype), "' on CUDA");
  }
}

}  // namespace sconce::cuda
