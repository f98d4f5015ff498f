// The core functions of the C ABI as a model declares them (c/shim.h, torch 2.15).
#pragma once

#include "sconce/float_types.h"
#include "src/aoti_abi/abi_types.h"

extern "C" {
AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle);
AOTITorchError aoti_torch_new_tensor_handle(AtenTensorHandle, AtenTensorHandle*);
AOTITorchError aoti_torch_new_uninitialized_tensor(AtenTensorHandle*);
AOTITorchError aoti_torch_empty_strided(int64_t, const int64_t*, const int64_t*, int32_t, int32_t, int32_t,
                                        AtenTensorHandle*);
AOTITorchError aoti_torch__reinterpret_tensor(AtenTensorHandle, int64_t, const int64_t*, const int64_t*, int64_t,
                                              AtenTensorHandle*);
AOTITorchError aoti_torch__alloc_from_pool(AtenTensorHandle, int64_t, int32_t, int64_t, const int64_t*, const int64_t*,
                                           AtenTensorHandle*);
AOTITorchError aoti_torch_as_strided(AtenTensorHandle, const int64_t*, const int64_t*, AtenTensorHandle*);
AOTITorchError aoti_torch_create_tensor_from_blob(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t,
                                                  int32_t, int32_t, AtenTensorHandle*);
AOTITorchError aoti_torch_create_tensor_from_blob_v2(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t,
                                                     int32_t, int32_t, AtenTensorHandle*, int32_t, const uint8_t*,
                                                     int64_t);
AOTITorchError aoti_torch_assign_tensors(AtenTensorHandle, AtenTensorHandle);
AOTITorchError aoti_torch_assign_tensors_out(AtenTensorHandle, AtenTensorHandle*);
AOTITorchError aoti_torch_tensor_copy_(AtenTensorHandle, AtenTensorHandle);
AOTITorchError aoti_torch_copy_(AtenTensorHandle, AtenTensorHandle, int32_t);
AOTITorchError aoti_torch_clone(AtenTensorHandle, AtenTensorHandle*);
AOTITorchError aoti_torch_clone_preserve_strides(AtenTensorHandle, AtenTensorHandle*);
AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle, void**);
AOTITorchError aoti_torch_get_storage_size(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_storage_offset(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_sizes(AtenTensorHandle, int64_t**);
AOTITorchError aoti_torch_get_strides(AtenTensorHandle, int64_t**);
AOTITorchError aoti_torch_get_size(AtenTensorHandle, int64_t, int64_t*);
AOTITorchError aoti_torch_get_stride(AtenTensorHandle, int64_t, int64_t*);
AOTITorchError aoti_torch_get_dim(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_numel(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_get_dtype(AtenTensorHandle, int32_t*);
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle, int32_t*);
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle, int32_t*);
AOTITorchError aoti_torch_is_defined(AtenTensorHandle, bool*);
AOTITorchError aoti_torch_item_int8(AtenTensorHandle, int8_t*);
AOTITorchError aoti_torch_item_uint8(AtenTensorHandle, uint8_t*);
AOTITorchError aoti_torch_item_int64(AtenTensorHandle, int64_t*);
AOTITorchError aoti_torch_item_bool(AtenTensorHandle, bool*);
AOTITorchError aoti_torch_item_float32(AtenTensorHandle, float*);
AOTITorchError aoti_torch_item_float16(AtenTensorHandle, sconce::Half*);
AOTITorchError aoti_torch_scalar_to_tensor_float64(double, AtenTensorHandle*);
AOTITorchError aoti_torch_scalar_to_tensor_int64(int64_t, AtenTensorHandle*);
AOTITorchError aoti_torch_scalar_to_tensor_uint64(uint64_t, AtenTensorHandle*);
AOTITorchError aoti_torch_scalar_to_tensor_bool(bool, AtenTensorHandle*);
AOTITorchError aoti_torch_check_inf_and_nan(const char*, AtenTensorHandle);
void aoti_torch_check(bool, const char*, const char*, uint32_t, const char*);
size_t aoti_torch_dtype_element_size(int32_t);
}
