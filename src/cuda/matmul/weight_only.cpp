// Products with weights of 4 and 8 bits. Match aten::_weight_int4pack_mm and _weight_int8pack_mm (torch 2.11, CUDA).
#include "src/cuda/matmul/scaled_sums.h"
#include "src/cuda/matmul/weight_only_few_rows.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor _weight_int4pack_mm(const Tensor& self, const Tensor& mat2, int64_t group, const Tensor& scales_and_zeros) {
  constexpr const char* kName = "_weight_int4pack_mm";
  SCONCE_CHECK(self.dim() == 2 && self.dtype() == DType::kBFloat16, kInvalidArgument, kName,
               ": expected A bfloat16 of 2 dimensions, got ", describe(self));
  SCONCE_CHECK(mat2.dim() == 4 && mat2.dtype() == DType::kInt32 && mat2.size(2) == 32, kInvalidArgument, kName,
               ": expected B int32 [n / 8, k / (16 inner), 32, inner / 2], got ", describe(mat2));
  const int64_t inner = mat2.size(3) * 2, n = mat2.size(0) * 8, k = mat2.size(1) * 16 * inner;
  SCONCE_CHECK(self.size(1) == k, kInvalidArgument, kName, ": A has ", self.size(1), " columns, B ", k, " rows");
  SCONCE_CHECK((group == 32 || group == 64 || group == 128 || group == 256) && k % group == 0, kInvalidArgument, kName,
               ": qGroupSize ", group, " must be 32, 64, 128 or 256 and divide ", k);
  SCONCE_CHECK(scales_and_zeros.dim() == 3 && scales_and_zeros.dtype() == DType::kBFloat16 &&
                   scales_and_zeros.size(0) == k / group && scales_and_zeros.size(1) == n &&
                   scales_and_zeros.size(2) == 2,
               kInvalidArgument, kName, ": expected qScaleAndZeros bfloat16 [", k / group, ", ", n, ", 2], got ",
               describe(scales_and_zeros));
  const DeviceScope scope(self.device());
  const int64_t sizes[] = {self.size(0), n}, weight_sizes[] = {n, k}, turned[] = {k, n}, strides[] = {1, k};
  Tensor out = Tensor::empty(sizes, DType::kBFloat16, self.device());
  if (out.numel() == 0) return out;
  const Tensor packed = contiguous(mat2), scales = contiguous(scales_and_zeros);
  if (self.size(0) <= kMaxFewRowsInt4 && self.stride(1) == 1 && self.stride(0) % 2 == 0 && aligned(self, 4) &&
      aligned(scales, 4) && aligned(packed, 16) && (inner == 2 || inner == 4 || inner == 8)) {
    launch_few_rows_int4({self.data(), self.size(0), self.stride(0), n, k, packed.data_as<int32_t>(),
                          static_cast<int>(inner), scales.data(), group, out.data()},
                         current_stream());
    SCONCE_CUDA(cudaGetLastError());
    return out;
  }
  Tensor weight = Tensor::empty(weight_sizes, DType::kBFloat16, self.device());
  launch_unpack_int4(packed.data_as<int32_t>(), n, k, static_cast<int>(inner), scales.data(), group, weight.data(),
                     current_stream());
  SCONCE_CUDA(cudaGetLastError());
  Tensor target = as_batch(out);
  product(kName, as_batch(self), as_batch(weight.as_strided(turned, strides, 0)), nullptr, 0, 1, target);
  return out;
}

// self [m, k], mat2 int8 [n, k], scales [n].
Tensor _weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  constexpr const char* kName = "_weight_int8pack_mm";
  SCONCE_CHECK(self.dim() == 2 && is_floating(self.dtype()) && mat2.dim() == 2 && mat2.dtype() == DType::kInt8 &&
                   mat2.size(1) == self.size(1) && scales.dim() == 1 && scales.size(0) == mat2.size(0),
               kInvalidArgument, kName, ": A ", describe(self), ", B ", describe(mat2), " and scales ",
               describe(scales), " do not fit");
  const DeviceScope scope(self.device());
  const int64_t m = self.size(0), n = mat2.size(0), k = mat2.size(1);
  const int64_t sizes[] = {m, n}, turned[] = {k, n}, strides[] = {1, k};
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  if (m <= kMaxFewRowsInt8 && self.dtype() != DType::kFloat64 && k % 16 == 0 && self.is_contiguous() &&
      mat2.is_contiguous() && aligned(self, 16) && aligned(mat2, 16)) {
    check_launch(kName,
                 launch_few_rows_int8({self.data(), m, n, k, mat2.data_as<int8_t>(), per_line(scales, scales.stride(0)),
                                       out.data(), static_cast<int>(self.dtype())},
                                      current_stream()),
                 self.dtype());
    return out;
  }
  Tensor weight = Tensor::empty(mat2.sizes(), self.dtype(), self.device());
  if (mat2.is_contiguous() && mat2.numel() % 16 == 0 && aligned(mat2, 16) && self.dtype() != DType::kFloat64)
    check_launch(kName,
                 launch_widen_int8(mat2.data_as<int8_t>(), mat2.numel(), static_cast<int>(self.dtype()), weight.data(),
                                   current_stream()),
                 self.dtype());
  else
    copy(mat2, weight, false);
  store(sums_of(kName, self, weight.as_strided(turned, strides, 0)), {}, per_line(scales, scales.stride(0)), {}, {},
        out);
  return out;
}

}  // namespace sconce::cuda
