#include "src/cuda/abi/compute_abi.h"

#include <vector>

#include "src/aoti_abi/compute.h"
#include "src/aoti_abi/guard.h"
#include "src/aoti_abi/op_args.h"
#include "src/aoti_abi/results.h"
#include "src/cuda/indexing/index.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {
namespace {

using aoti_abi::deliver;
using aoti_abi::guard;
using aoti_abi::in;
using aoti_abi::ints;
using aoti_abi::new_handle;
using aoti_abi::optional_in;
using Handle = AtenTensorHandle;

// False for a null handle, so that the CPU's function refuses it.
bool on_device(Handle handle) noexcept {
  const Tensor* tensor = optional_in(&handle);
  return tensor && tensor->defined() && !tensor->is_cpu();
}

AOTITorchError mm_plus_mm(Handle out, Handle a, Handle b, Handle c, Handle d) {
  if (!on_device(a)) return aoti_torch__mm_plus_mm_out(out, a, b, c, d);
  return guard("aoti_torch__mm_plus_mm_out", [&] {
    Tensor& sum = in(out, "out");
    mm_out(sum, in(a, "a"), in(b, "b"));
    addmm_out(sum, sum, in(c, "c"), in(d, "d"), 1, 1);
  });
}

AOTITorchError scatter(Handle out, Handle self, int64_t dim, Handle index, Handle src) {
  if (!on_device(self)) return aoti_torch_scatter_out(out, self, dim, index, src);
  return guard("aoti_torch_scatter_out",
               [&] { scatter_src_out(in(out, "out"), in(self, "self"), dim, in(index, "index"), in(src, "src")); });
}

AOTITorchError scatter_reduce(Handle out, Handle self, int64_t dim, Handle index, Handle src, const char* reduce,
                              int32_t include_self) {
  if (!on_device(self)) return aoti_torch_scatter_reduce_out(out, self, dim, index, src, reduce, include_self);
  return guard("aoti_torch_scatter_reduce_out", [&] {
    SCONCE_CHECK(reduce, kInvalidArgument, "reduce is null");
    scatter_reduce_two_out(in(out, "out"), in(self, "self"), dim, in(index, "index"), in(src, "src"), reduce,
                           include_self != 0);
  });
}

AOTITorchError put(Handle out, Handle self, const Handle* indices, const uint32_t count, const Handle values,
                   bool accumulate) {
  if (!on_device(self)) return aoti_torch_index_put_out(out, self, indices, count, values, accumulate);
  return guard("aoti_torch_index_put_out", [&] {
    std::vector<const Tensor*> list(count);
    for (uint32_t i = 0; i < count; ++i) list[i] = optional_in(&indices[i]);
    index_put_out(in(out, "out"), in(self, "self"), list, in(values, "values"), accumulate);
  });
}

AOTITorchError addmm(Handle out, Handle self, Handle a, Handle b, float beta, float alpha) {
  if (!on_device(a)) return aoti_torch_addmm_out(out, self, a, b, beta, alpha);
  return guard("aoti_torch_addmm_out",
               [&] { addmm_out(in(out, "out"), in(self, "self"), in(a, "mat1"), in(b, "mat2"), beta, alpha); });
}

AOTITorchError bmm(Handle out, Handle self, Handle other) {
  if (!on_device(self)) return aoti_torch_bmm_out(out, self, other);
  return guard("aoti_torch_bmm_out", [&] { bmm_out(in(out, "out"), in(self, "self"), in(other, "mat2")); });
}

AOTITorchError mm(Handle out, Handle self, Handle other) {
  if (!on_device(self)) return aoti_torch_mm_out(out, self, other);
  return guard("aoti_torch_mm_out", [&] { mm_out(in(out, "out"), in(self, "self"), in(other, "mat2")); });
}

AOTITorchError convolve(Handle input, Handle weight, Handle bias, const int64_t* stride, int64_t strides,
                        const int64_t* padding, int64_t paddings, const int64_t* dilation, int64_t dilations,
                        int transposed, const int64_t* output_padding, int64_t output_paddings, int64_t groups,
                        Handle* ret) {
  if (!on_device(input))
    return aoti_torch_convolution(input, weight, bias, stride, strides, padding, paddings, dilation, dilations,
                                  transposed, output_padding, output_paddings, groups, ret);
  return guard("aoti_torch_convolution", [&] {
    *ret = new_handle(convolution(in(input, "input"), in(weight, "weight"), optional_in(&bias), ints(stride, strides),
                                  ints(padding, paddings), ints(dilation, dilations), transposed != 0,
                                  ints(output_padding, output_paddings), groups));
  });
}

AOTITorchError embedding_bag(Handle weight, Handle indices, Handle offsets, int32_t scale_grad_by_freq, int32_t mode,
                             int32_t sparse, Handle per_sample_weights, int32_t include_last_offset,
                             int32_t padding_idx, Handle* ret0, Handle* ret1, Handle* ret2, Handle* ret3) {
  if (!on_device(weight))
    return aoti_torch__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                     include_last_offset, padding_idx, ret0, ret1, ret2, ret3);
  return guard("aoti_torch__embedding_bag", [&] {
    deliver(
        _embedding_bag(in(weight, "weight"), in(indices, "indices"), in(offsets, "offsets"), scale_grad_by_freq != 0,
                       mode, sparse != 0, optional_in(&per_sample_weights), include_last_offset != 0, padding_idx),
        ret0, ret1, ret2, ret3);
  });
}

AOTITorchError fft(Handle self, const int64_t* dim, int64_t dims, int64_t normalization, int32_t forward, Handle* ret) {
  if (!on_device(self)) return aoti_torch__fft_c2c(self, dim, dims, normalization, forward, ret);
  return guard("aoti_torch__fft_c2c",
               [&] { *ret = new_handle(_fft_c2c(in(self, "self"), ints(dim, dims), normalization, forward != 0)); });
}

AOTITorchError positions(Handle self, Handle* ret) {
  if (!on_device(self)) return aoti_torch_nonzero(self, ret);
  return guard("aoti_torch_nonzero", [&] { *ret = new_handle(nonzero(in(self, "self"))); });
}

AOTITorchError repeat_interleave(Handle repeats, int64_t* output_size, Handle* ret) {
  if (!on_device(repeats)) return aoti_torch_repeat_interleave_Tensor(repeats, output_size, ret);
  return guard("aoti_torch_repeat_interleave_Tensor", [&] {
    *ret = new_handle(repeat_interleave_Tensor(in(repeats, "repeats"), aoti_abi::optional_value<int64_t>(output_size)));
  });
}

AOTITorchError scaled_mm(const char* name, Handle self, Handle other, Handle scale_a, Handle scale_b, Handle bias,
                         Handle scale_result, int32_t* out_dtype, int8_t use_fast_accum, Handle* ret) {
  return guard(name, [&] {
    *ret = new_handle(_scaled_mm(in(self, "self"), in(other, "mat2"), in(scale_a, "scale_a"), in(scale_b, "scale_b"),
                                 optional_in(&bias), optional_in(&scale_result),
                                 aoti_abi::optional_dtype(out_dtype, "out_dtype"), use_fast_accum != 0));
  });
}

// ret1, a maximum that PyTorch no longer computes since before 2.6, is not written.
AOTITorchError scaled_mm_first(Handle self, Handle other, Handle bias, int32_t* out_dtype, Handle scale_a,
                               Handle scale_b, Handle scale_result, int8_t use_fast_accum, Handle* ret0, Handle* ret1) {
  if (!on_device(self))
    return aoti_torch__scaled_mm(self, other, bias, out_dtype, scale_a, scale_b, scale_result, use_fast_accum, ret0,
                                 ret1);
  return scaled_mm("aoti_torch__scaled_mm", self, other, scale_a, scale_b, bias, scale_result, out_dtype,
                   use_fast_accum, ret0);
}

AOTITorchError scaled_mm_second(Handle self, Handle other, Handle scale_a, Handle scale_b, Handle bias,
                                Handle scale_result, int32_t* out_dtype, int8_t use_fast_accum, Handle* ret0) {
  if (!on_device(self))
    return aoti_torch__scaled_mm_v2(self, other, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum, ret0);
  return scaled_mm("aoti_torch__scaled_mm_v2", self, other, scale_a, scale_b, bias, scale_result, out_dtype,
                   use_fast_accum, ret0);
}

// The compiler checks that a replacement has the type of the function that it replaces.
template <class F>
DeviceBackend::Replacement row(const char* name, F*, F* replacement) {
  return {name, reinterpret_cast<void*>(replacement)};
}

}  // namespace

std::span<const DeviceBackend::Replacement> compute_replacements() noexcept {
#define SCONCE_ROW(name, function) row(#name, &::name, &function)
  static const DeviceBackend::Replacement all[] = {
      SCONCE_ROW(aoti_torch__mm_plus_mm_out, mm_plus_mm),
      SCONCE_ROW(aoti_torch_scatter_out, scatter),
      SCONCE_ROW(aoti_torch_scatter_reduce_out, scatter_reduce),
      SCONCE_ROW(aoti_torch_index_put_out, put),
      SCONCE_ROW(aoti_torch_addmm_out, addmm),
      SCONCE_ROW(aoti_torch_bmm_out, bmm),
      SCONCE_ROW(aoti_torch_mm_out, mm),
      SCONCE_ROW(aoti_torch_convolution, convolve),
      SCONCE_ROW(aoti_torch__embedding_bag, embedding_bag),
      SCONCE_ROW(aoti_torch__fft_c2c, fft),
      SCONCE_ROW(aoti_torch_nonzero, positions),
      SCONCE_ROW(aoti_torch_repeat_interleave_Tensor, repeat_interleave),
      SCONCE_ROW(aoti_torch__scaled_mm, scaled_mm_first),
      SCONCE_ROW(aoti_torch__scaled_mm_v2, scaled_mm_second),
  };
#undef SCONCE_ROW
  return all;
}

}  // namespace sconce::cuda
