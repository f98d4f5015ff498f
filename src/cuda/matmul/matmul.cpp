// Matrix products. Match aten::mm.out, mm.dtype_out, addmm.out, bmm.out, baddbmm.out, _int_mm.out, addmv, addbmm and
// _addmm_activation (torch 2.11, CUDA).
#include "src/cuda/matmul/matmul.h"

#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/matmul/matmul_few_rows.h"
#include "src/cuda/matmul/matmul_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

void check_matrices(const char* name, const Tensor& out, const Tensor& a, const Tensor& b, int64_t rank, DType result) {
  SCONCE_CHECK(a.dim() == rank && b.dim() == rank && out.dim() == rank, kInvalidArgument, name, ": expected ", rank,
               " dimensions, got ", describe(a), ", ", describe(b), " and ", describe(out));
  const int64_t r = rank - 2;
  bool fits = a.size(r + 1) == b.size(r) && out.size(r) == a.size(r) && out.size(r + 1) == b.size(r + 1);
  if (rank == 3) fits = fits && a.size(0) == b.size(0) && out.size(0) == a.size(0);
  SCONCE_CHECK(fits, kInvalidArgument, name, ": shapes do not fit: ", to_string(a.sizes()), ", ", to_string(b.sizes()),
               " into ", to_string(out.sizes()));
  SCONCE_CHECK(a.dtype() == b.dtype() && out.dtype() == result, kInvalidArgument, name, ": expected dtype ",
               dtype_name(result), " of ", dtype_name(a.dtype()), ", got ", dtype_name(b.dtype()), " and ",
               dtype_name(out.dtype()));
  SCONCE_CHECK(!a.is_cpu() && a.device() == b.device() && a.device() == out.device(), kInvalidArgument, name,
               ": expected tensors of one CUDA device");
}

// A row that is added to each row is added before sums are rounded, as in ATen, together with the activation. False if
// the library has no algorithm for that.
bool try_add_row(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha,
                 Activation activation) {
  const DeviceScope scope(out.device());
  const DType dtype = out.dtype();
  if (beta != 1 || self.dim() != 1 || !self.is_contiguous() || self.size(0) != out.size(1) || self.dtype() != dtype ||
      (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) || mat1.size(1) == 0 ||
      alpha == 0)
    return false;
  if (activation == Activation::kNone && try_few_rows(mat1, mat2, &self, alpha, out)) return true;
  ProductScales scales;
  scales.bias = &self;
  scales.activation = activation;
  Tensor target = as_batch(out);
  return try_product("addmm", as_batch(mat1), as_batch(mat2), nullptr, 0, alpha, target, &scales);
}

}  // namespace

void mm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  check_matrices("mm", out, self, mat2, 2, self.dtype());
  const DeviceScope scope(out.device());
  if (try_few_rows(self, mat2, nullptr, 1, out)) return;
  Tensor target = as_batch(out);
  product("mm", as_batch(self), as_batch(mat2), nullptr, 0, 1, target);
}

void addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha) {
  check_matrices("addmm", out, mat1, mat2, 2, mat1.dtype());
  if (try_add_row(out, self, mat1, mat2, beta, alpha, Activation::kNone)) return;
  Tensor target = as_batch(out);
  const Tensor bias = expand("addmm", self, out.sizes());
  const Tensor batch = as_batch(bias);
  product("addmm", as_batch(mat1), as_batch(mat2), &batch, beta, alpha, target);
}

void bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  check_matrices("bmm", out, self, mat2, 3, self.dtype());
  product("bmm", self, mat2, nullptr, 0, 1, out);
}

void baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, double beta,
                 double alpha) {
  check_matrices("baddbmm", out, batch1, batch2, 3, batch1.dtype());
  const Tensor bias = expand("baddbmm", self, out.sizes());
  product("baddbmm", batch1, batch2, &bias, beta, alpha, out);
}

// Half types may give float32, whose sums are not rounded.
void mm_dtype_out(Tensor& out, const Tensor& self, const Tensor& mat2, DType out_dtype) {
  SCONCE_CHECK(out_dtype == self.dtype() || (out_dtype == DType::kFloat32 &&
                                             (self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16)),
               kInvalidArgument, "mm: out_dtype ", dtype_name(out_dtype), " of ", dtype_name(self.dtype()));
  check_matrices("mm", out, self, mat2, 2, out_dtype);
  Tensor target = as_batch(out);
  product("mm", as_batch(self), as_batch(mat2), nullptr, 0, 1, target);
}

// int8 into int32. If cuBLASLt refuses, multiplies in double, which holds every sum exactly.
void _int_mm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  SCONCE_CHECK(self.dtype() == DType::kInt8, kInvalidArgument, "_int_mm: expected self of dtype int8, got ",
               dtype_name(self.dtype()));
  check_matrices("_int_mm", out, self, mat2, 2, DType::kInt32);
  Tensor target = as_batch(out);
  if (try_product("_int_mm", as_batch(self), as_batch(mat2), nullptr, 0, 1, target)) return;
  const auto as_double = [](const Tensor& t) {
    Tensor wide = Tensor::empty(t.sizes(), DType::kFloat64, t.device());
    copy(t, wide, false);
    return as_batch(wide);
  };
  Tensor sums = Tensor::empty(target.sizes(), DType::kFloat64, out.device());
  product("_int_mm", as_double(self), as_double(mat2), nullptr, 0, 1, sums);
  copy(sums, target, false);
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  SCONCE_CHECK(self.dim() == 2 && mat2.dim() == 2, kInvalidArgument, "mm: expected matrices, got ", describe(self),
               " and ", describe(mat2));
  const int64_t sizes[] = {self.size(0), mat2.size(1)};
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  mm_out(out, self, mat2);
  return out;
}

Tensor _int_mm(const Tensor& self, const Tensor& mat2) {
  SCONCE_CHECK(self.dim() == 2 && mat2.dim() == 2, kInvalidArgument, "_int_mm: expected matrices, got ", describe(self),
               " and ", describe(mat2));
  const int64_t sizes[] = {self.size(0), mat2.size(1)};
  Tensor out = Tensor::empty(sizes, DType::kInt32, self.device());
  _int_mm_out(out, self, mat2);
  return out;
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  SCONCE_CHECK(self.dim() == 3 && mat2.dim() == 3, kInvalidArgument, "bmm: expected batches of matrices, got ",
               describe(self), " and ", describe(mat2));
  const int64_t sizes[] = {self.size(0), self.size(1), mat2.size(2)};
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  bmm_out(out, self, mat2);
  return out;
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, double beta, double alpha) {
  SCONCE_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1, kInvalidArgument,
               "addmv: vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(), ", ", vec.dim());
  const int64_t rows = mat.size(0), sizes[] = {rows, 1}, one[] = {vec.size(0), 1};
  Tensor out = Tensor::empty(sizes, mat.dtype(), mat.device());
  const Tensor column = reshape(vec, one), bias = reshape(expand("addmv", self, IntSpan(&rows, 1)), sizes);
  check_matrices("addmv", out, mat, column, 2, mat.dtype());
  const Tensor batch = as_batch(bias);
  Tensor target = as_batch(out);
  product("addmv", as_batch(mat), as_batch(column), &batch, beta, alpha, target);
  return reshape(out, IntSpan(&rows, 1));
}

// Summing over the batch is one product with longer rows.
Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, double beta, double alpha) {
  SCONCE_CHECK(
      batch1.dim() == 3 && batch2.dim() == 3 && batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1),
      kInvalidArgument, "addbmm: ", describe(batch1), " and ", describe(batch2), " do not fit");
  const int64_t inner = batch1.size(0) * batch1.size(2), order[] = {1, 0, 2};
  const int64_t left[] = {batch1.size(1), inner}, right[] = {inner, batch2.size(2)},
                sizes[] = {batch1.size(1), batch2.size(2)};
  Tensor out = Tensor::empty(sizes, batch1.dtype(), batch1.device());
  const Tensor bias = expand("addbmm", self, sizes);
  addmm_out(out, bias, reshape(permute(batch1, order), left), reshape(batch2, right), beta, alpha);
  return out;
}

Tensor _addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha,
                         bool use_gelu) {
  SCONCE_CHECK(mat1.dim() == 2 && mat2.dim() == 2, kInvalidArgument, "_addmm_activation: expected matrices, got ",
               describe(mat1), " and ", describe(mat2));
  const int64_t sizes[] = {mat1.size(0), mat2.size(1)};
  Tensor out = Tensor::empty(sizes, mat1.dtype(), mat1.device());
  check_matrices("_addmm_activation", out, mat1, mat2, 2, mat1.dtype());
  if (try_add_row(out, self, mat1, mat2, beta, alpha, use_gelu ? Activation::kGelu : Activation::kRelu)) return out;
  addmm_out(out, self, mat1, mat2, beta, alpha);
  const DeviceScope scope(out.device());
  check_launch("_addmm_activation",
               launch_activation(out.data(), out.numel(), use_gelu, static_cast<int>(out.dtype()), current_stream()),
               out.dtype());
  return out;
}

}  // namespace sconce::cuda
