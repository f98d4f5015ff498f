#include "src/cpu/matmul/matmul.h"

#include <cmath>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/cpu/matmul/gemm/gemm_integer.h"
#include "src/cpu/vector/vector_math.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {
namespace {

void check_operand(const char* name, const char* operand, const Tensor& tensor, int64_t rank) {
  SCONCE_CHECK(tensor.dim() == rank, kInvalidArgument, name, ": ", operand, " must have ", rank, " dimensions, not ",
               tensor.dim());
  SCONCE_CHECK(tensor.is_cpu() && tensor.layout() == Layout::kStrided, kInvalidArgument, name, ": ", operand,
               " must be a strided CPU tensor");
}

void check_same_dtype(const char* name, const char* operand, const Tensor& tensor, DType dtype) {
  SCONCE_CHECK(tensor.dtype() == dtype, kInvalidArgument, name, ": ", operand, " must have the dtype of the others, ",
               dtype_name(dtype), ", not ", dtype_name(tensor.dtype()));
}

void check_out(const char* name, const Tensor& out, IntSpan sizes) {
  SCONCE_CHECK(std::equal(out.sizes().begin(), out.sizes().end(), sizes.begin(), sizes.end()), kInvalidArgument, name,
               ": out must have sizes ", to_string(sizes), ", not ", to_string(out.sizes()));
  for (int64_t d = 0; d < out.dim(); ++d)
    SCONCE_CHECK(out.stride(d) != 0 || out.size(d) <= 1 || out.numel() == 0, kInvalidArgument, name,
                 ": unsupported operation: more than one element of the written-to tensor refers to a single memory "
                 "location: out has strides ",
                 to_string(out.strides()));
}

// tensor [batch, rows, columns] or, with rank 2, [rows, columns].
MatrixView view(const Tensor& tensor) {
  const int64_t d = tensor.dim();
  return {tensor.data(), d == 3 ? tensor.stride(0) : 0, tensor.stride(d - 2), tensor.stride(d - 1)};
}

// self, broadcast to [batch, m, n].
MatrixView view_broadcast(const char* name, const Tensor& self, IntSpan sizes) {
  int64_t strides[3] = {0, 0, 0};
  const int64_t rank = self.dim(), extra = static_cast<int64_t>(sizes.size()) - rank;
  SCONCE_CHECK(extra >= 0, kInvalidArgument, name, ": self of sizes ", to_string(self.sizes()),
               " cannot be expanded to ", to_string(sizes));
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = self.size(d);
    SCONCE_CHECK(size == 1 || size == sizes[d + extra], kInvalidArgument, name, ": self of sizes ",
                 to_string(self.sizes()), " cannot be expanded to ", to_string(sizes));
    if (size != 1) strides[d + extra + 3 - static_cast<int64_t>(sizes.size())] = self.stride(d);
  }
  return {self.data(), strides[0], strides[1], strides[2]};
}

Storage* constant_storage(const Tensor& tensor) {
  Storage* storage = tensor.storage().get();
  return storage && storage->immutable() ? storage : nullptr;
}

// The product of matrices or, with rank 3, of batches of them; all checks but self's.
MatrixProduct prepare(const char* name, int64_t rank, Tensor& out, const Tensor& a, const Tensor& b) {
  check_operand(name, "mat1", a, rank);
  check_operand(name, "mat2", b, rank);
  const int64_t r = rank - 2;
  SCONCE_CHECK(a.size(r + 1) == b.size(r) && (rank == 2 || a.size(0) == b.size(0)), kInvalidArgument, name,
               ": mat1 and mat2 shapes cannot be multiplied: ", to_string(a.sizes()), " and ", to_string(b.sizes()));
  check_same_dtype(name, "mat2", b, a.dtype());
  MatrixProduct p{};
  p.dtype = a.dtype();
  p.batch = rank == 3 ? a.size(0) : 1;
  p.m = a.size(r);
  p.n = b.size(r + 1);
  p.k = b.size(r);
  p.a = view(a);
  p.b = view(b);
  p.b_constant = constant_storage(b);
  check_operand(name, "out", out, rank);
  check_same_dtype(name, "out", out, a.dtype());
  const int64_t sizes[] = {p.batch, p.m, p.n};
  check_out(name, out, IntSpan(sizes).last(static_cast<size_t>(rank)));
  const MatrixView c = view(out);
  p.c = out.data();
  p.c_batch_stride = c.batch_stride;
  p.c_row_stride = c.row_stride;
  p.c_column_stride = c.column_stride;
  return p;
}

bool is_blas_dtype(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kComplex64 ||
         dtype == DType::kComplex128;
}

void add_self(const char* name, MatrixProduct& p, int64_t rank, const Tensor& self, double beta, double alpha) {
  check_same_dtype(name, "self", self, p.dtype);
  SCONCE_CHECK(self.is_cpu() && self.layout() == Layout::kStrided, kInvalidArgument, name,
               ": self must be a strided CPU tensor");
  const int64_t sizes[] = {p.batch, p.m, p.n};
  p.self = view_broadcast(name, self, IntSpan(sizes).last(static_cast<size_t>(rank)));
  p.alpha = alpha;
  p.beta = beta;
}

// BLAS does not look at the operands when alpha is 0.
void skip_product_of_zero(MatrixProduct& p) {
  if (p.alpha == 0 && is_blas_dtype(p.dtype)) p.k = 0;
}

template <class T>
void activate(Tensor& tensor, bool gelu) {
  using C = ComputeType<T>;
  T* values = tensor.data_as<T>();
  if constexpr (std::is_same_v<T, float>) {
    if (gelu)
      return parallel_for(0, tensor.numel(), 32768, [values](int64_t begin, int64_t end) noexcept {
        for (int64_t i = begin; i < end; ++i)
          values[i] = values[i] * 0.5f * (1.0f + error_function(values[i] * static_cast<float>(M_SQRT1_2)));
      });
  }
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const C v = static_cast<C>(values[i]);
    if constexpr (std::is_floating_point_v<C>) {
      if (gelu) {
        values[i] = static_cast<T>(v * C{0.5} * (C{1} + std::erf(v * C{M_SQRT1_2})));
        continue;
      }
    }
    if (v < C{0}) values[i] = static_cast<T>(C{0});  // NaN stays
  }
}

}  // namespace

void mm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  const MatrixProduct p = prepare("mm", 2, out, self, mat2);
  if (p.k == 0) return zero(out);  // of any dtype, as ATen
  if (!is_float8(p.dtype)) return matrix_product("mm", p);
  Tensor wide = Tensor::empty(out.sizes(), DType::kFloat32);
  mm_out(wide, to_dtype(self, DType::kFloat32), to_dtype(mat2, DType::kFloat32));
  copy(wide, out);
}

// out[b, m, n] = self[b, m, k] @ mat2[b, k, n]. Matches aten::bmm.out.
void bmm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  const MatrixProduct p = prepare("bmm", 3, out, self, mat2);
  if (p.k == 0) return zero(out);
  matrix_product("bmm", p);
}

void addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha) {
  MatrixProduct p = prepare("addmm", 2, out, mat1, mat2);
  add_self("addmm", p, 2, self, beta, alpha);
  if (is_float8(p.dtype)) {
    Tensor wide = Tensor::empty(out.sizes(), DType::kFloat32);
    const auto floats = [](const Tensor& t) { return to_dtype(t, DType::kFloat32); };
    addmm_out(wide, floats(self), floats(mat1), floats(mat2), beta, alpha);
    return copy(wide, out);
  }
  skip_product_of_zero(p);
  matrix_product("addmm", p);
}

void baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, double beta,
                 double alpha) {
  MatrixProduct p = prepare("baddbmm", 3, out, batch1, batch2);
  add_self("baddbmm", p, 3, self, beta, alpha);
  if (p.m * p.n * p.k >= 400) skip_product_of_zero(p);  // smaller ones do not go to BLAS
  matrix_product("baddbmm", p);
}

void mm_plus_mm_out(Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
  MatrixProduct second = prepare("mm_plus_mm", 2, out, c, d);
  matrix_product("mm_plus_mm", prepare("mm_plus_mm", 2, out, a, b));
  add_self("mm_plus_mm", second, 2, out, 1, 1);
  matrix_product("mm_plus_mm", second);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, double beta, double alpha) {
  check_operand("addmv", "mat", mat, 2);
  check_operand("addmv", "vec", vec, 1);
  SCONCE_CHECK(mat.size(1) == vec.size(0) && self.dim() <= 1 && (self.numel() == 1 || self.numel() == mat.size(0)),
               kInvalidArgument, "addmv: size mismatch, got self ", to_string(self.sizes()), ", mat ",
               to_string(mat.sizes()), ", vec ", to_string(vec.sizes()));
  const int64_t sizes[] = {mat.size(0)}, columns[] = {vec.size(0), 1}, rows[] = {mat.size(0), 1};
  const int64_t vec_strides[] = {vec.stride(0), 1}, out_strides[] = {1, 1};
  Tensor out = Tensor::empty(sizes, mat.dtype());
  Tensor out_column = out.as_strided(rows, out_strides, 0);
  const Tensor vec_column = vec.as_strided(columns, vec_strides, vec.storage_offset());
  MatrixProduct p = prepare("addmv", 2, out_column, mat, vec_column);
  const int64_t self_sizes[] = {self.numel(), 1}, self_strides[] = {self.dim() == 1 ? self.stride(0) : 0, 1};
  add_self("addmv", p, 2, self.as_strided(self_sizes, self_strides, self.storage_offset()), beta, alpha);
  skip_product_of_zero(p);
  matrix_product("addmv", p);
  return out;
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, double beta, double alpha) {
  check_operand("addbmm", "batch1", batch1, 3);
  check_operand("addbmm", "batch2", batch2, 3);
  const int64_t batch = batch1.size(0), m = batch1.size(1), n = batch2.size(2);
  SCONCE_CHECK(batch == batch2.size(0) && batch1.size(2) == batch2.size(1), kInvalidArgument,
               "addbmm: batch1 and batch2 shapes cannot be multiplied: ", to_string(batch1.sizes()), " and ",
               to_string(batch2.sizes()));
  check_same_dtype("addbmm", "batch2", batch2, batch1.dtype());
  const int64_t sizes[] = {m, n};
  Tensor out = Tensor::empty(sizes, batch1.dtype());
  MatrixProduct p{};
  p.dtype = batch1.dtype();
  p.m = m;
  p.n = n;
  p.a = view(batch1);
  p.b = view(batch2);
  p.c = out.data();
  p.c_row_stride = n;
  p.c_column_stride = 1;
  add_self("addbmm", p, 2, self, beta, alpha);
  if (batch == 0) matrix_product("addbmm", p);
  if (is_float8(p.dtype)) {
    const auto matrix = [](const Tensor& t, int64_t i) {
      return t.as_strided(t.sizes().last(2), t.strides().last(2), t.storage_offset() + i * t.stride(0));
    };
    for (int64_t i = 0; i < batch; ++i)
      addmm_out(out, i == 0 ? self : out, matrix(batch1, i), matrix(batch2, i), i == 0 ? beta : 1, alpha);
    return out;
  }
  // One after the other, each rounded to the dtype.
  const auto itemsize = static_cast<int64_t>(batch1.itemsize());
  for (int64_t i = 0; i < batch; ++i) {
    p.k = batch1.size(2);
    skip_product_of_zero(p);
    matrix_product("addbmm", p);
    p.a.data = static_cast<const std::byte*>(p.a.data) + p.a.batch_stride * itemsize;
    p.b.data = static_cast<const std::byte*>(p.b.data) + p.b.batch_stride * itemsize;
    p.self = {p.c, 0, n, 1};
    p.beta = 1;
  }
  return out;
}

// relu or gelu (exact) of addmm.
Tensor _addmm_activation(const Tensor& self, const Tensor& mat1, const Tensor& mat2, double beta, double alpha,
                         bool use_gelu) {
  check_operand("_addmm_activation", "mat1", mat1, 2);
  check_operand("_addmm_activation", "mat2", mat2, 2);
  const DType dtype = mat1.dtype();
  SCONCE_CHECK(is_floating(dtype) || (!use_gelu && is_integral(dtype, false)), kUnsupported,
               "_addmm_activation: ", use_gelu ? "gelu" : "relu", " is not implemented for '", dtype_name(dtype), "'");
  const int64_t sizes[] = {mat1.size(0), mat2.size(1)};
  Tensor out = Tensor::empty(sizes, dtype);
  addmm_out(out, self, mat1, mat2, beta, alpha);
  switch (dtype) {
#define SCONCE_CASE(type)          \
  case kDType<type>:               \
    activate<type>(out, use_gelu); \
    break;
    SCONCE_CASE(float)
    SCONCE_CASE(double)
    SCONCE_CASE(Half)
    SCONCE_CASE(BFloat16)
    SCONCE_CASE(int8_t)
    SCONCE_CASE(int16_t)
    SCONCE_CASE(int32_t)
    SCONCE_CASE(int64_t)
#undef SCONCE_CASE
    default:  // unsigned: nothing is below 0
      break;
  }
  return out;
}

// out[m, n] int32 = self[m, k] int8 or uint8 @ mat2[k, n] int8.
void _int_mm_out(Tensor& out, const Tensor& self, const Tensor& mat2) {
  check_operand("_int_mm", "self", self, 2);
  check_operand("_int_mm", "mat2", mat2, 2);
  check_operand("_int_mm", "out", out, 2);
  SCONCE_CHECK(self.dtype() == DType::kInt8 || self.dtype() == DType::kUInt8, kInvalidArgument,
               "_int_mm: self must be int8 or uint8, not ", dtype_name(self.dtype()));
  check_same_dtype("_int_mm", "mat2", mat2, DType::kInt8);
  check_same_dtype("_int_mm", "out", out, DType::kInt32);
  SCONCE_CHECK(self.size(1) == mat2.size(0), kInvalidArgument,
               "_int_mm: self and mat2 shapes cannot be multiplied: ", to_string(self.sizes()), " and ",
               to_string(mat2.sizes()));
  const int64_t sizes[] = {self.size(0), mat2.size(1)};
  check_out("_int_mm", out, sizes);
  MatrixProduct p{};
  p.m = sizes[0];
  p.n = sizes[1];
  p.k = mat2.size(0);
  p.a = view(self);
  p.b = view(mat2);
  p.c = out.data();
  p.c_row_stride = out.stride(0);
  p.c_column_stride = out.stride(1);
  int8_matrix_product(self.dtype() == DType::kInt8, p);
}

}  // namespace sconce::cpu
