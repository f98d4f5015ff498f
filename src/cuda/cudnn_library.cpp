#include "src/cuda/cudnn_library.h"

#include <array>

#include "src/cuda/stream.h"
#include "src/device/lazy_library.h"

SCONCE_LAZY_LIBRARY(cudnn);

namespace sconce::cuda {

void require_dnn() { require_library(sconce_lazy_cudnn); }

void check_dnn(cudnnStatus_t status, const char* expression) {
  SCONCE_CHECK(!is_unsupported(status), kUnsupported, expression, ": cuDNN does not support it");
  SCONCE_CHECK(status == CUDNN_STATUS_SUCCESS, kDevice, expression, ": cuDNN error ", static_cast<int>(status));
}

cudnnHandle_t dnn_handle(int device) {
  // A handle works for one stream at a time.
  static thread_local std::array<Handle<cudnnHandle_t, cudnnDestroy>, 64> handles;
  auto& handle = handles[static_cast<size_t>(device) % handles.size()].value;
  if (!handle) SCONCE_DNN(cudnnCreate(&handle));
  SCONCE_DNN(cudnnSetStream(handle, current_stream()));
  return handle;
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
