// Products of float8 matrices with scales. Match aten::_scaled_mm (torch 2.11, CUDA). If cuBLASLt has no algorithm,
// they are computed in float32, which holds float8 exactly.
#include <optional>

#include "src/cuda/matmul/scaled_sums.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {
namespace {

// How many rows and columns of a matrix share a scale.
struct Blocks {
  int64_t rows, columns;
};
std::optional<Blocks> blocks_of(const Tensor& matrix, const Tensor& scale) {
  if (scale.dim() != 2) return {};
  const auto each = [](int64_t length, int64_t count) -> int64_t {
    for (const int64_t size : {int64_t{1}, int64_t{128}})
      if (count == (length + size - 1) / size) return size;
    return 0;
  };
  const Blocks blocks{each(matrix.size(0), scale.size(0)), each(matrix.size(1), scale.size(1))};
  if (blocks.rows && blocks.columns) return blocks;
  return {};
}

Tensor scaled_by_blocks(const Tensor& matrix, const Tensor& scale, const Blocks& blocks) {
  Tensor wide = Tensor::empty(matrix.sizes(), DType::kFloat32, matrix.device());
  copy(matrix, wide, false);
  launch_scale_blocks(wide.data_as<float>(), wide.size(0), wide.size(1), scale.data_as<float>(), scale.stride(0),
                      scale.stride(1), blocks.rows, blocks.columns, current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return wide;
}

}  // namespace

void _scaled_mm_out(Tensor& out, const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                    const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype,
                    bool use_fast_accum) {
  constexpr const char* kName = "_scaled_mm";
  SCONCE_CHECK(self.dim() == 2 && mat2.dim() == 2 && self.size(1) == mat2.size(0), kInvalidArgument, kName,
               ": mat1 and mat2 shapes cannot be multiplied: ", to_string(self.sizes()), " and ",
               to_string(mat2.sizes()));
  const int64_t m = self.size(0), n = mat2.size(1);
  SCONCE_CHECK(is_scaled_float8(self.dtype()) && is_scaled_float8(mat2.dtype()) && scale_a.dtype() == DType::kFloat32 &&
                   scale_b.dtype() == DType::kFloat32,
               kInvalidArgument, kName, ": Invalid scaling configuration. mat1 ", describe(self), ", mat2 ",
               describe(mat2), ", scale_a ", describe(scale_a), ", scale_b ", describe(scale_b));
  SCONCE_CHECK(!out_dtype || *out_dtype == out.dtype(), kInvalidArgument, kName,
               ": out_dtype must match output matrix type, ", dtype_name(out.dtype()), ", not ",
               dtype_name(out_dtype.value_or(out.dtype())));
  SCONCE_CHECK(out.dim() == 2 && out.size(0) == m && out.size(1) == n, kInvalidArgument, kName,
               ": out must have sizes [", m, ", ", n, "], not ", to_string(out.sizes()));
  SCONCE_CHECK(!bias || (bias->numel() == n && bias->dim() == 1), kInvalidArgument, kName, ": Bias must be size ", n,
               " but got ", bias ? bias->numel() : 0);
  const bool single = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool by_row = !single && scale_a.dim() == 2 && scale_a.size(0) == m && scale_a.size(1) == 1 &&
                      scale_b.dim() == 2 && scale_b.size(0) == 1 && scale_b.size(1) == n;
  const auto a_blocks = blocks_of(self, scale_a), b_blocks = blocks_of(mat2, scale_b);
  SCONCE_CHECK(single || by_row || (a_blocks && b_blocks), kInvalidArgument, kName,
               ": Invalid scaling configuration. mat1 ", describe(self), ", mat2 ", describe(mat2), ", scale_a ",
               describe(scale_a), ", scale_b ", describe(scale_b));
  if (out.numel() == 0) return;
  const DeviceScope scope(out.device());
  const Tensor* factor = is_scaled_float8(out.dtype()) ? scale_result : nullptr;
  const PerLine add = bias ? per_line(*bias, bias->stride(0)) : PerLine{},
                times = factor ? per_line(*factor, 0) : PerLine{};
  if (single || by_row) {
    const Tensor rows = contiguous(scale_a), columns = contiguous(scale_b);
    const Tensor row = bias ? contiguous(*bias) : Tensor();
    if (try_scaled(kName, self, mat2, {&rows, &columns, factor, by_row, use_fast_accum, bias ? &row : nullptr}, out))
      return;
    store(sums_of(kName, self, mat2), per_line(rows, single ? 0 : 1), per_line(columns, single ? 0 : 1), add, times,
          out);
    return;
  }
  store(sums_of(kName, scaled_by_blocks(self, scale_a, *a_blocks), scaled_by_blocks(mat2, scale_b, *b_blocks)), {}, {},
        add, times, out);
}

Tensor _scaled_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                  const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype, bool use_fast_accum) {
  const int64_t sizes[] = {self.dim() > 0 ? self.size(0) : 0, mat2.dim() > 1 ? mat2.size(1) : 0};
  Tensor out = Tensor::empty(sizes, out_dtype.value_or(self.dtype()), self.device());
  _scaled_mm_out(out, self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum);
  return out;
}

}  // namespace sconce::cuda
