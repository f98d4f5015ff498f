// cuDNN, opened when first needed; its errors become ours. Handles: dnn_lane.h.
#pragma once

#include <cudnn.h>

#include "sconce/check.h"
#include "sconce/dtype.h"
#include "src/cuda/runtime/handle.h"

namespace sconce::cuda {

void require_dnn();
bool try_dnn();  // false if it cannot be opened
// Any status of cuDNN's "not supported" group.
inline bool is_unsupported(cudnnStatus_t status) { return status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED; }
// Throws kUnsupported "NAME: not implemented for ..." for dtypes that cuDNN lacks.
cudnnDataType_t dnn_type_of(const char* name, DType dtype);

void check_dnn(cudnnStatus_t status, const char* expression);
#define SCONCE_DNN(expression) ::sconce::cuda::check_dnn((expression), #expression)

using TensorHandle = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

}  // namespace sconce::cuda
