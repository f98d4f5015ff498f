// cuDNN: opened when first needed; its errors as ours. Handles: dnn_lane.h.
#pragma once

#include <cudnn.h>

#include "sconce/check.h"
#include "sconce/dtype.h"
#include "src/cuda/runtime/handle.h"

namespace sconce::cuda {

void require_dnn();
bool try_dnn();  // false where it cannot be opened
// One of the group of errors that say so.
inline bool is_unsupported(cudnnStatus_t status) { return status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED; }
// kUnsupported "NAME: not implemented for ..." for dtypes that are none of cuDNN's.
cudnnDataType_t dnn_type_of(const char* name, DType dtype);

void check_dnn(cudnnStatus_t status, const char* expression);
#define SCONCE_DNN(expression) ::sconce::cuda::check_dnn((expression), #expression)

using TensorHandle = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

}  // namespace sconce::cuda
