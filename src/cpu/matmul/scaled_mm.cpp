// Products of float8 matrices with scales. Matches aten::_scaled_mm, torch 2.15.
#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/vector/channel_values.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce::cpu {
namespace {

constexpr const char* kName = "_scaled_mm";

bool takes(DType dtype) { return dtype == DType::kFloat8E4M3FN || dtype == DType::kFloat8E5M2; }

}  // namespace

// As _scaled_mm; out of any layout.
void _scaled_mm_out(Tensor& out, const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                    const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype, bool) {
  SCONCE_CHECK(self.dim() == 2 && mat2.dim() == 2 && self.size(1) == mat2.size(0), kInvalidArgument, kName,
               ": mat1 and mat2 shapes cannot be multiplied: ", to_string(self.sizes()), " and ",
               to_string(mat2.sizes()));
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  const bool single = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool by_row = scale_a.dim() == 2 && scale_a.size(0) == m && scale_a.size(1) == 1 && scale_b.dim() == 2 &&
                      scale_b.size(0) == 1 && scale_b.size(1) == n;
  SCONCE_CHECK(takes(self.dtype()) && takes(mat2.dtype()) && scale_a.dtype() == DType::kFloat32 &&
                   scale_b.dtype() == DType::kFloat32 && (single || by_row),
               kInvalidArgument, kName, ": Invalid scaling configuration. mat1 ", describe(self), ", mat2 ",
               describe(mat2), ", scale_a ", describe(scale_a), ", scale_b ", describe(scale_b));
  SCONCE_CHECK(!out_dtype || *out_dtype == out.dtype(), kInvalidArgument, kName,
               ": out_dtype must match output matrix type, ", dtype_name(out.dtype()), ", not ",
               dtype_name(out_dtype.value_or(out.dtype())));
  SCONCE_CHECK(is_floating(out.dtype()) || takes(out.dtype()), kInvalidArgument, kName, ": results of ",
               dtype_name(out.dtype()), " are not supported");
  SCONCE_CHECK(out.dim() == 2 && out.size(0) == m && out.size(1) == n, kInvalidArgument, kName,
               ": out must have sizes [", m, ", ", n, "], not ", to_string(out.sizes()));
  SCONCE_CHECK(!bias || bias->numel() == n, kInvalidArgument, kName, ": Bias must be size ", n, " but got ",
               bias ? bias->numel() : 0);
  if (out.numel() == 0) return;
  const Tensor a = to_dtype(self, DType::kFloat32), b = to_dtype(mat2, DType::kFloat32);
  const int64_t sizes[2] = {m, n};
  Tensor sums = Tensor::empty(sizes, DType::kFloat32);
  MatrixProduct p{};
  p.dtype = DType::kFloat32;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = {a.data(), 0, a.stride(0), a.stride(1)};
  p.b = {b.data(), 0, b.stride(0), b.stride(1)};
  p.c = sums.data();
  p.c_row_stride = n;
  p.c_column_stride = 1;
  matrix_product(kName, p);

  const Tensor by_column = channel_values(kName, scale_b, n, "scale_b"), rows = contiguous(scale_a);
  const Tensor add = bias ? channel_values(kName, *bias, n, "bias") : Tensor();
  const double result =
      out_dtype && takes(*out_dtype) && scale_result ? single_value(kName, *scale_result, "scale_result", 1) : 1;
  const auto divide = static_cast<float>(1.0 / result);
  auto* row = sums.data_as<float>();
  for (int64_t i = 0; i < m; ++i, row += n) {
    const float scale = rows.data_as<float>()[single ? 0 : i];
    for (int64_t j = 0; j < n; ++j) {
      row[j] *= scale * by_column.data_as<float>()[j];
      if (bias) row[j] += add.data_as<float>()[j];
      row[j] *= divide;
    }
  }
  copy(sums, out);
}

// self [M, K] and mat2 [K, N] of float8_e4m3fn or float8_e5m2, any strides; scale_a and scale_b float32: one value
// each, or [M, 1] and [1, N]. (self @ mat2) * scale_a * scale_b + bias [N], divided by scale_result where out_dtype
// is given and float8; rounded to out_dtype, any floating one (self's without one), what is too large for float8_e4m3fn
// being its largest number. Sums are float32. kInvalidArgument as ATen refuses.
Tensor _scaled_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                  const Tensor* bias, const Tensor* scale_result, std::optional<DType> out_dtype, bool use_fast_accum) {
  const DType dtype = out_dtype.value_or(self.dtype());
  const int64_t sizes[2] = {self.dim() > 0 ? self.size(0) : 0, mat2.dim() > 1 ? mat2.size(1) : 0};
  Tensor out = Tensor::empty(sizes, dtype);
  _scaled_mm_out(out, self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum);
  return out;
}

}  // namespace sconce::cpu
