#include "src/cuda/matmul/matmul_few_rows.h"

#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/matmul/matmul_few_rows_kernels.h"
#include "src/cuda/matmul/scaled_sums.h"
#include "src/cuda/runtime/device_properties.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {
namespace {

Tensor turned(const Tensor& t) {
  const int64_t sizes[] = {t.size(1), t.size(0)}, strides[] = {t.stride(1), t.stride(0)};
  return t.as_strided(sizes, strides, t.storage_offset());
}

// Whether the lines of `dim` are contiguous and consist of whole 16 bytes at aligned addresses.
bool loads_along(const Tensor& t, int64_t dim) {
  const int64_t whole = 16 / static_cast<int64_t>(t.itemsize()), lines = t.size(1 - dim);
  return t.stride(dim) == 1 && t.size(dim) % whole == 0 && aligned(t, 16) &&
         (lines == 1 || (t.stride(1 - dim) % whole == 0 && t.stride(1 - dim) >= t.size(dim)));
}

}  // namespace

bool try_few_rows(const Tensor& a, const Tensor& b, const Tensor* bias, double alpha, Tensor& out) {
  const DType dtype = out.dtype();
  if (dtype != DType::kFloat16 && dtype != DType::kBFloat16 && dtype != DType::kFloat32) return false;
  if (a.dtype() != dtype || out.numel() == 0 || a.size(1) == 0 || alpha == 0) return false;
  if (out.size(0) > kMaxFewRows) {  // few columns are few rows of the transposed product
    if (bias || out.size(1) > kMaxFewRows) return false;
    Tensor result = turned(out);
    return try_few_rows(turned(b), turned(a), nullptr, alpha, result);
  }
  const bool in_lines = (out.stride(1) == 1 || out.size(1) == 1) && (out.size(0) == 1 || out.stride(0) >= out.size(1));
  if (!in_lines || !loads_along(a, 1) || !loads_along(b, 0)) return false;
  if (overlap(a, out) || overlap(b, out) || (bias && overlap(*bias, out))) return false;
  const DeviceProperties& properties = device_properties(out.device().index);
  const int64_t rows = out.size(0);
  const FewRows call{.x = a.data(),
                     .weight = b.data(),
                     .constant_weight = b.storage()->immutable() && properties.capability >= 90,
                     .rows = rows,
                     .n = out.size(1),
                     .k = a.size(1),
                     .x_stride = rows == 1 ? 0 : a.stride(0),
                     .weight_stride = b.stride(1),
                     .alpha = static_cast<float>(alpha),
                     .bias = bias ? bias->data() : nullptr,
                     .out = out.data(),
                     .out_stride = rows == 1 ? 0 : out.stride(0),
                     .dtype = static_cast<int>(dtype)};
  SCONCE_CUDA(launch_few_rows(call, properties.multiprocessors, current_stream()));
  return true;
}

}  // namespace sconce::cuda
