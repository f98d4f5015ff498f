// Names that packages of older torch versions import. ABI: c/shim_deprecated.h, torch 2.6 to 2.15. Unlike in the
// generated shims, optional tensors are plain handles here, null if absent.
#include "src/aoti_abi/compute.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/aoti_abi/results.h"
#include "src/operators/cpu_ops.h"

using sconce::IntSpan;
using sconce::aoti_abi::guard;
using sconce::aoti_abi::in;
using sconce::aoti_abi::ints;
using sconce::aoti_abi::new_handle;
using sconce::aoti_abi::optional_in;

extern "C" {

AOTITorchError aoti_torch_addmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat1,
                                    AtenTensorHandle mat2, float beta, float alpha) {
  return guard("aoti_torch_addmm_out", [&] {
    sconce::cpu::addmm_out(in(out, "out"), in(self, "self"), in(mat1, "mat1"), in(mat2, "mat2"), beta, alpha);
  });
}

AOTITorchError aoti_torch_bmm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2) {
  return guard("aoti_torch_bmm_out", [&] { sconce::cpu::bmm_out(in(out, "out"), in(self, "self"), in(mat2, "mat2")); });
}

AOTITorchError aoti_torch_mm_out(AtenTensorHandle out, AtenTensorHandle self, AtenTensorHandle mat2) {
  return guard("aoti_torch_mm_out", [&] { sconce::cpu::mm_out(in(out, "out"), in(self, "self"), in(mat2, "mat2")); });
}

AOTITorchError aoti_torch_convolution(AtenTensorHandle input, AtenTensorHandle weight, AtenTensorHandle bias,
                                      const int64_t* stride, int64_t stride_size, const int64_t* padding,
                                      int64_t padding_size, const int64_t* dilation, int64_t dilation_size,
                                      int transposed, const int64_t* output_padding, int64_t output_padding_size,
                                      int64_t groups, AtenTensorHandle* ret) {
  return guard("aoti_torch_convolution", [&] {
    *ret = new_handle(sconce::cpu::convolution(in(input, "input"), in(weight, "weight"), optional_in(&bias),
                                               ints(stride, stride_size), ints(padding, padding_size),
                                               ints(dilation, dilation_size), transposed != 0,
                                               ints(output_padding, output_padding_size), groups));
  });
}

AOTITorchError aoti_torch__embedding_bag(AtenTensorHandle weight, AtenTensorHandle indices, AtenTensorHandle offsets,
                                         int32_t scale_grad_by_freq, int32_t mode, int32_t sparse,
                                         AtenTensorHandle per_sample_weights, int32_t include_last_offset,
                                         int32_t padding_idx, AtenTensorHandle* ret0, AtenTensorHandle* ret1,
                                         AtenTensorHandle* ret2, AtenTensorHandle* ret3) {
  return guard("aoti_torch__embedding_bag", [&] {
    auto results = sconce::cpu::_embedding_bag(in(weight, "weight"), in(indices, "indices"), in(offsets, "offsets"),
                                               scale_grad_by_freq != 0, mode, sparse != 0,
                                               optional_in(&per_sample_weights), include_last_offset != 0, padding_idx);
    sconce::aoti_abi::deliver(std::move(results), ret0, ret1, ret2, ret3);
  });
}

AOTITorchError aoti_torch__fft_c2c(AtenTensorHandle self, const int64_t* dim, int64_t dim_size, int64_t normalization,
                                   int32_t forward, AtenTensorHandle* ret) {
  return guard("aoti_torch__fft_c2c", [&] {
    *ret = new_handle(
        sconce::cpu::_fft_c2c(in(self, "self"), {dim, static_cast<size_t>(dim_size)}, normalization, forward != 0));
  });
}

AOTITorchError aoti_torch_nonzero(AtenTensorHandle self, AtenTensorHandle* ret) {
  return guard("aoti_torch_nonzero", [&] { *ret = new_handle(sconce::cpu::nonzero(in(self, "self"))); });
}

AOTITorchError aoti_torch_repeat_interleave_Tensor(AtenTensorHandle repeats, int64_t* output_size,
                                                   AtenTensorHandle* ret) {
  return guard("aoti_torch_repeat_interleave_Tensor", [&] {
    *ret = new_handle(sconce::cpu::repeat_interleave_Tensor(in(repeats, "repeats"),
                                                            sconce::aoti_abi::optional_value<int64_t>(output_size)));
  });
}

AOTITorchError aoti_torch_view_as_real(AtenTensorHandle self, AtenTensorHandle* ret) {
  return guard("aoti_torch_view_as_real", [&] { *ret = new_handle(sconce::cpu::view_as_real(in(self, "self"))); });
}

AOTITorchError aoti_torch_view_dtype(AtenTensorHandle self, int32_t dtype, AtenTensorHandle* ret) {
  return guard("aoti_torch_view_dtype", [&] {
    *ret = new_handle(sconce::cpu::view_dtype(in(self, "self"), sconce::aoti_abi::dtype_in(dtype, "dtype")));
  });
}

// ret1, a maximum that PyTorch stopped computing before 2.6, is not written.
AOTITorchError aoti_torch__scaled_mm(AtenTensorHandle self, AtenTensorHandle mat2, AtenTensorHandle bias,
                                     int32_t* out_dtype, AtenTensorHandle scale_a, AtenTensorHandle scale_b,
                                     AtenTensorHandle scale_result, int8_t use_fast_accum, AtenTensorHandle* ret0,
                                     AtenTensorHandle*) {
  return guard("aoti_torch__scaled_mm", [&] {
    *ret0 = new_handle(sconce::cpu::_scaled_mm(
        in(self, "self"), in(mat2, "mat2"), in(scale_a, "scale_a"), in(scale_b, "scale_b"), optional_in(&bias),
        optional_in(&scale_result), sconce::aoti_abi::optional_dtype(out_dtype, "out_dtype"), use_fast_accum != 0));
  });
}

AOTITorchError aoti_torch__scaled_mm_v2(AtenTensorHandle self, AtenTensorHandle mat2, AtenTensorHandle scale_a,
                                        AtenTensorHandle scale_b, AtenTensorHandle bias, AtenTensorHandle scale_result,
                                        int32_t* out_dtype, int8_t use_fast_accum, AtenTensorHandle* ret0) {
  return guard("aoti_torch__scaled_mm_v2", [&] {
    *ret0 = new_handle(sconce::cpu::_scaled_mm(
        in(self, "self"), in(mat2, "mat2"), in(scale_a, "scale_a"), in(scale_b, "scale_b"), optional_in(&bias),
        optional_in(&scale_result), sconce::aoti_abi::optional_dtype(out_dtype, "out_dtype"), use_fast_accum != 0));
  });
}

}  // extern "C"
