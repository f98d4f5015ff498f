// cuDNN: opened when first needed; a handle per thread and device; its errors as ours.
#pragma once

#include <cudnn.h>

#include "sconce/check.h"
#include "sconce/dtype.h"
#include "src/cuda/handle.h"

namespace sconce::cuda {

void require_dnn();
// Of the calling thread and its current device, on its current stream.
cudnnHandle_t dnn_handle(int device);
// One of the group of errors that say so.
inline bool is_unsupported(cudnnStatus_t status) { return status / 1000 * 1000 == CUDNN_STATUS_NOT_SUPPORTED; }
// kUnsupported "NAME: not implemented for ..." for dtypes that are none of cuDNN's.
cudnnDataType_t dnn_type_of(const char* name, DType dtype);

void check_dnn(cudnnStatus_t status, const char* expression);
#define SCONCE_DNN(expression) ::sconce::cuda::check_dnn((expression), #expression)

using TensorHandle = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

}  // namespace sconce::cuda
