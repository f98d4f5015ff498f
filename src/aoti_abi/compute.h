// Compute functions that shim.h and shim_deprecated.h declare without a device in their name. These are for the CPU;
// DeviceBackend::replacements() replaces them in a model for another device. ABI: c/shim.h, c/shim_deprecated.h, torch
// 2.6 to 2.15.
#pragma once

#include "sconce/tensor.h"
#include "src/aoti_abi/abi_types.h"

namespace sconce::aoti_abi {
inline IntSpan ints(const int64_t* values, int64_t count) { return {values, static_cast<size_t>(count)}; }
}  // namespace sconce::aoti_abi

extern "C" {
AOTITorchError aoti_torch__mm_plus_mm_out(AtenTensorHandle out, AtenTensorHandle a, AtenTensorHandle b,
                                          AtenTensorHandle c, AtenTensorHandle d);
AOTITorchError aoti_torch_scatter_out(AtenTensorHandle out, AtenTensorHandle self, int64_t dim, AtenTensorHandle index,
                                      AtenTensorHandle src);
AOTITorchError aoti_torch_scatter_reduce_out(AtenTensorHandle out, AtenTensorHandle self, int64_t dim,
                                             AtenTensorHandle index, AtenTensorHandle src, const char* reduce,
                                             int32_t include_self);
AOTITorchError aoti_torch_index_put_out(AtenTensorHandle out, AtenTensorHandle self, const AtenTensorHandle* indices,
                                        const uint32_t num_indices, const AtenTensorHandle values, bool accumulate);
AOTITorchError aoti_torch_addmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat1,
                                    AtenTensorHandle mat2, float beta, float alpha);
AOTITorchError aoti_torch_bmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2);
AOTITorchError aoti_torch_mm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2);
AOTITorchError aoti_torch_convolution(AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle bias,
                                      const int64_t* stride, int64_t stride_size, const int64_t* padding,
                                      int64_t padding_size, const int64_t* dilation, int64_t dilation_size,
                                      int transposed, const int64_t* output_padding, int64_t output_padding_size,
                                      int64_t groups, AtenTensorHandle* ret);
AOTITorchError aoti_torch__embedding_bag(AtenTensorHandle weight, AtenTensorHandle indices, AtenTensorHandle offsets,
                                         int32_t scale_grad_by_freq, int32_t mode, int32_t sparse,
                                         AtenTensorHandle per_sample_weights, int32_t include_last_offset,
                                         int32_t padding_idx, AtenTensorHandle* ret0, AtenTensorHandle* ret1,
                                         AtenTensorHandle* ret2, AtenTensorHandle* ret3);
AOTITorchError aoti_torch__fft_c2c(AtenTensorHandle self, const int64_t* dim, int64_t dim_size, int64_t normalization,
                                   int32_t forward, AtenTensorHandle* ret);
AOTITorchError aoti_torch_nonzero(AtenTensorHandle self, AtenTensorHandle* ret);
AOTITorchError aoti_torch_repeat_interleave_Tensor(AtenTensorHandle repeats, int64_t* output_size,
                                                   AtenTensorHandle* ret);
AOTITorchError aoti_torch_view_as_real(AtenTensorHandle self, AtenTensorHandle* ret);
AOTITorchError aoti_torch_view_dtype(AtenTensorHandle self, int32_t dtype, AtenTensorHandle* ret);
AOTITorchError aoti_torch__scaled_mm(AtenTensorHandle self, AtenTensorHandle mat2, AtenTensorHandle bias,
                                     int32_t* out_dtype, AtenTensorHandle scale_a, AtenTensorHandle scale_b,
                                     AtenTensorHandle scale_result, int8_t use_fast_accum, AtenTensorHandle* ret0,
                                     AtenTensorHandle*);
AOTITorchError aoti_torch__scaled_mm_v2(AtenTensorHandle self, AtenTensorHandle mat2, AtenTensorHandle scale_a,
                                        AtenTensorHandle scale_b, AtenTensorHandle bias, AtenTensorHandle scale_result,
                                        int32_t* out_dtype, int8_t use_fast_accum, AtenTensorHandle* ret0);
}
