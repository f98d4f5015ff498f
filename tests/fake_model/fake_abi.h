// The C interface between a compiled model and its host, as far as the fake model uses it: functions of the host below,
// functions of the model in fake_interface.cpp. Declared here anew, so that the fake model meets the host like any
// other model. Sources: aoti_torch/c/shim.h, aoti_runtime/interface.h, torch 2.15.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct AtenTensorOpaque;
struct AOTIProxyExecutorOpaque;
struct AOTInductorStreamOpaque;
struct AOTInductorModelContainerOpaque;
struct AOTInductorConstantMap;
using AtenTensorHandle = AtenTensorOpaque*;
using AOTIProxyExecutorHandle = AOTIProxyExecutorOpaque*;
using AOTInductorStreamHandle = AOTInductorStreamOpaque*;
using AOTInductorModelContainerHandle = AOTInductorModelContainerOpaque*;
using AOTInductorConstantMapHandle = AOTInductorConstantMap*;  // std::unordered_map<std::string, AtenTensorHandle>*
using AOTITorchError = int32_t;
using AOTIRuntimeError = int32_t;

struct AOTInductorConstantMapEntry {
  const char* name;
  AtenTensorHandle handle;
};

int32_t aoti_torch_device_type_cpu();
int32_t aoti_torch_dtype_float32();
int32_t aoti_torch_layout_strided();
bool aoti_torch_grad_mode_is_enabled();
void aoti_torch_grad_mode_set_enabled(bool enabled);
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle original, AtenTensorHandle* result);
AOTITorchError aoti_torch_clone(AtenTensorHandle self, AtenTensorHandle* result);
AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result);
AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle tensor, int64_t* bytes);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result);
AOTITorchError aoti_torch_get_size(AtenTensorHandle tensor, int64_t dim, int64_t* result);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result);
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle tensor, int64_t* result);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result);
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* result);
AOTITorchError aoti_torch_empty_strided(int64_t ndim, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                        int32_t device_type, int32_t device_index, AtenTensorHandle* result);
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void* data, int64_t ndim, const int64_t* sizes,
                                                     const int64_t* strides, int64_t storage_offset, int32_t dtype,
                                                     int32_t device_type, int32_t device_index,
                                                     AtenTensorHandle* result, int32_t layout,
                                                     const uint8_t* opaque_metadata, int64_t opaque_metadata_size);
void aoti_torch_check(bool condition, const char* function, const char* file, uint32_t line, const char* message);
}
