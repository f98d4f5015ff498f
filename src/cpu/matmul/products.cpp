#include "src/cpu/matmul/products.h"

#include <array>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/cpu/elementwise/binary_functions.h"
#include "src/cpu/reduction/sum.h"
#include "src/cpu/vector/row_sums.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cpu {

namespace {

bool is_real(const Scalar& beta, const Scalar& alpha) {
  return beta.to_complex().imag() == 0 && alpha.to_complex().imag() == 0;
}

// beta * self + alpha * product, for complex numbers, which the products' own kernels do not take.
Tensor combined(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  SCONCE_CHECK(is_complex(product.dtype()), kInvalidArgument,
               "For non-complex input tensors, argument alpha must not be a complex number.");
  const Tensor scaled = multiply_number(product, alpha);
  return beta.to_complex() == 0.0 ? scaled : add(scaled, self, beta);
}

void check_rank(const char* name, const Tensor& tensor, int64_t rank) {
  SCONCE_CHECK(tensor.dim() == rank, kInvalidArgument, name, ": expected a tensor of rank ", rank, ", got ",
               describe(tensor));
}

Tensor matrix(const char* name, const Tensor& a, const Tensor& b) {
  check_rank(name, a, 2);
  check_rank(name, b, 2);
  const int64_t sizes[] = {a.size(0), b.size(1)};
  return Tensor::empty(sizes, a.dtype());
}
Tensor matrices(const char* name, const Tensor& a, const Tensor& b) {
  check_rank(name, a, 3);
  check_rank(name, b, 3);
  const int64_t sizes[] = {a.size(0), a.size(1), b.size(2)};
  return Tensor::empty(sizes, a.dtype());
}

}  // namespace

Tensor mm(const Tensor& self, const Tensor& mat2) {
  Tensor out = matrix("mm", self, mat2);
  mm_out(out, self, mat2);
  return out;
}

Tensor bmm(const Tensor& self, const Tensor& mat2) {
  Tensor out = matrices("bmm", self, mat2);
  bmm_out(out, self, mat2);
  return out;
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  if (!is_real(beta, alpha)) return combined(self, mm(mat1, mat2), beta, alpha);
  Tensor out = matrix("addmm", mat1, mat2);
  addmm_out(out, self, mat1, mat2, beta.to_double(), alpha.to_double());
  return out;
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  if (!is_real(beta, alpha)) return combined(self, bmm(batch1, batch2), beta, alpha);
  Tensor out = matrices("baddbmm", batch1, batch2);
  baddbmm_out(out, self, batch1, batch2, beta.to_double(), alpha.to_double());
  return out;
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  if (!is_real(beta, alpha)) return combined(self, matmul(mat, vec), beta, alpha);
  return addmv(self, mat, vec, beta.to_double(), alpha.to_double());
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta, Scalar alpha) {
  if (is_real(beta, alpha)) return addbmm(self, batch1, batch2, beta.to_double(), alpha.to_double());
  const int64_t batches = 0;
  return combined(self, sum(bmm(batch1, batch2), IntSpan(&batches, 1), false, std::nullopt), beta, alpha);
}

void addmm_out(Tensor& out, const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta, Scalar alpha) {
  if (is_real(beta, alpha)) return addmm_out(out, self, mat1, mat2, beta.to_double(), alpha.to_double());
  copy(addmm(self, mat1, mat2, beta, alpha), out);
}

void baddbmm_out(Tensor& out, const Tensor& self, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                 Scalar alpha) {
  if (is_real(beta, alpha)) return baddbmm_out(out, self, batch1, batch2, beta.to_double(), alpha.to_double());
  copy(baddbmm(self, batch1, batch2, beta, alpha), out);
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a_rank = self.dim(), b_rank = other.dim();
  SCONCE_CHECK(a_rank > 0 && b_rank > 0, kInvalidArgument,
               "matmul: both arguments need to be at least 1D, but they are ", a_rank, "D and ", b_rank, "D");
  if (a_rank == 2 && b_rank == 2) return mm(self, other);
  // A vector is a row on the left, a column on the right; that dimension is dropped at the end.
  const int64_t k = self.size(a_rank - 1), m = a_rank > 1 ? self.size(a_rank - 2) : 1;
  const int64_t other_k = other.size(b_rank > 1 ? b_rank - 2 : 0), n = b_rank > 1 ? other.size(b_rank - 1) : 1;
  SCONCE_CHECK(k == other_k, kInvalidArgument, "matmul: shapes cannot be multiplied: ", to_string(self.sizes()),
               " and ", to_string(other.sizes()));
  const IntSpan a_batch = self.sizes().first(static_cast<size_t>(std::max<int64_t>(a_rank - 2, 0)));
  const IntSpan b_batch = other.sizes().first(static_cast<size_t>(std::max<int64_t>(b_rank - 2, 0)));
  const Shape batch = broadcast_shapes("matmul", a_batch, b_batch);
  int64_t count = 1;
  for (const int64_t size : IntSpan(batch)) count *= size;

  const auto as_batch = [&](const Tensor& tensor, int64_t rank, bool left) {
    Tensor matrix = tensor;
    if (rank == 1) {
      const int64_t sizes[] = {left ? 1 : k, left ? k : 1};
      const int64_t strides[] = {left ? 0 : tensor.stride(0), left ? tensor.stride(0) : 0};
      matrix = tensor.as_strided(sizes, strides, tensor.storage_offset());
    }
    Shape sizes = batch;
    sizes.push_back(left ? m : k);
    sizes.push_back(left ? k : n);
    const int64_t flat[] = {count, left ? m : k, left ? k : n};
    return reshape(expand("matmul", matrix, sizes), flat);
  };
  Shape sizes = batch;
  if (a_rank > 1) sizes.push_back(m);
  if (b_rank > 1) sizes.push_back(n);
  return reshape(bmm(as_batch(self, a_rank, true), as_batch(other, b_rank, false)), sizes);
}

namespace {

const Scalar kOne{int64_t{1}};

void check_vectors(const char* name, const Tensor& a, const Tensor& b) {
  SCONCE_CHECK(a.dim() == 1 && b.dim() == 1, kInvalidArgument, name, ": 1D tensors expected, but got ", a.dim(),
               "D and ", b.dim(), "D tensors");
  SCONCE_CHECK(a.dtype() == b.dtype(), kInvalidArgument, name, ": expected both vectors to have same dtype, but found ",
               dtype_name(a.dtype()), " and ", dtype_name(b.dtype()));
  SCONCE_CHECK(a.size(0) == b.size(0), kInvalidArgument, name, ": inconsistent tensor size, expected tensor ",
               to_string(a.sizes()), " and src ", to_string(b.sizes()), " to have the same number of elements");
}

// Of the triples along dimension d.
template <class T>
void cross(const Tensor& a, const Tensor& b, int64_t d, Tensor& out) {
  Shape sizes;
  std::array<Shape, 3> strides;
  const std::array<const Tensor*, 3> all{&out, &a, &b};
  for (int64_t i = 0; i < out.dim(); ++i) {
    if (i == d) continue;
    sizes.push_back(out.size(i));
    for (size_t t = 0; t < 3; ++t) strides[t].push_back(all[t]->stride(i));
  }
  const StridedLoop<3> loop(sizes, {strides[0], strides[1], strides[2]}, {sizeof(T), sizeof(T), sizeof(T)});
  const int64_t to_step = out.stride(d), a_step = a.stride(d), b_step = b.stride(d);
  parallel_for(0, loop.numel, 16384, [&](int64_t begin, int64_t end) noexcept {
    loop.run({static_cast<char*>(out.data()), static_cast<char*>(a.data()), static_cast<char*>(b.data())}, begin, end,
             [&](char* const* p, const int64_t* stride, int64_t n) {
               for (int64_t i = 0; i < n; ++i) {
                 auto* const to = reinterpret_cast<T*>(p[0] + i * stride[0]);
                 const auto *const x = reinterpret_cast<const T*>(p[1] + i * stride[1]), *const y =
                                                                                             reinterpret_cast<const T*>(
                                                                                                 p[2] + i * stride[2]);
                 const T x0 = x[0], x1 = x[a_step], x2 = x[2 * a_step], y0 = y[0], y1 = y[b_step], y2 = y[2 * b_step];
                 to[0] = x1 * y2 - x2 * y1;
                 to[to_step] = x2 * y0 - x0 * y2;
                 to[2 * to_step] = x0 * y1 - x1 * y0;
               }
             });
  });
}

}  // namespace

Tensor mv(const Tensor& self, const Tensor& vec) {
  SCONCE_CHECK(self.dim() == 2 && vec.dim() == 1, kInvalidArgument, "mv: vector + matrix @ vector expected, got 1, ",
               self.dim(), ", ", vec.dim());
  Tensor zero_row = Tensor::empty({}, self.dtype());
  zero(zero_row);
  return addmv(zero_row, self, vec, Scalar(int64_t{0}), kOne);
}
Tensor dot(const Tensor& self, const Tensor& other) {
  check_vectors("dot", self, other);
  if (is_floating(self.dtype())) {
    // Products of halves are exact in float. If they were rounded to half, the sum would consist of rounding errors.
    const DType type = summed_dtype(self.dtype());
    const Tensor a = contiguous(to_dtype(self, type)), b = contiguous(to_dtype(other, type));
    Tensor out = Tensor::empty({}, type);
    dispatch_float_double(type, "dot", [&]<class T>() -> void {
      *out.data_as<T>() = static_cast<T>(row_dot(a.data_as<T>(), b.data_as<T>(), a.numel()));
    });
    return to_dtype(out, self.dtype());
  }
  if (self.dtype() == DType::kBool) {
    const Tensor total = sum(multiply(self, other), std::nullopt, false, std::nullopt);
    return to_dtype(total, self.dtype());
  }
  // As a matrix of one row by one of one column: products of the small floats are summed up before they are rounded.
  const int64_t k = self.size(0), row[] = {1, k}, column[] = {k, 1};
  const int64_t row_strides[] = {1, self.stride(0)}, column_strides[] = {other.stride(0), 1};
  return reshape(mm(self.as_strided(row, row_strides, self.storage_offset()),
                    other.as_strided(column, column_strides, other.storage_offset())),
                 {});
}
Tensor vdot(const Tensor& self, const Tensor& other) {
  check_vectors("vdot", self, other);
  return dot(conj(self), other);
}
Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, Scalar beta, Scalar alpha) {
  SCONCE_CHECK(vec1.dim() == 1 && vec2.dim() == 1, kInvalidArgument,
               "addr: Expected 1-D arguments vec1 and vec2, but got ", vec1.dim(), "-D and ", vec2.dim(), "-D");
  const Tensor column = unsqueeze(vec1, 1), outer = multiply(column, vec2);
  const int64_t sizes[] = {vec1.size(0), vec2.size(0)};
  const Tensor base = sconce::expand("addr", self, sizes);
  const DType dtype = ResultType().add(base).add(outer).get();
  // One loop over all three operands decides how the result lies.
  const Tensor* const operands[] = {&base, &column, &vec2};
  const auto laid_out = [&](const Tensor& values) {
    Tensor out = Tensor::empty_strided(sizes, elementwise_strides(sizes, operands), dtype);
    copy(values, out);
    return out;
  };
  if (dtype == DType::kBool) {
    const bool with_outer = alpha.to_complex() != 0.0, with_base = beta.to_complex() != 0.0;
    Tensor out = with_outer ? outer : multiply_number(outer, Scalar(false));
    return laid_out(with_base ? logical_or(base, out) : out);
  }
  const Tensor scaled = multiply_number(to_dtype(outer, dtype), alpha);
  if (beta.to_complex() == 0.0) return laid_out(scaled);  // NaN in self does not spread
  return laid_out(add(multiply_number(to_dtype(base, dtype), beta), scaled, kOne));
}
Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  SCONCE_CHECK(self.dim() == other.dim(), kInvalidArgument,
               "linalg.cross: inputs must have the same number of dimensions.");
  const int64_t d = wrap_dim("linalg.cross", dim, self.dim());
  SCONCE_CHECK(self.dim() > 0 && self.size(d) == 3 && other.size(d) == 3, kInvalidArgument,
               "linalg.cross: inputs dimension ", d, " must have length 3. Got ", self.dim() ? self.size(d) : 1,
               " and ", other.dim() ? other.size(d) : 1);
  const DType dtype = ResultType().add(self).add(other).get();
  const Shape sizes = broadcast_shapes("linalg.cross", self.sizes(), other.sizes());
  const Tensor a = sconce::expand("linalg.cross", to_dtype(self, dtype), sizes),
               b = sconce::expand("linalg.cross", to_dtype(other, dtype), sizes);
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
    Tensor out = Tensor::empty(sizes, dtype);
    dispatch_float_double(dtype, "linalg.cross", [&]<class T>() -> void { cross<T>(a, b, d, out); });
    return out;
  }
  std::array<Tensor, 3> parts;  // rounded at each step
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3, k = (i + 2) % 3;
    parts[static_cast<size_t>(i)] =
        subtract(multiply(select(a, d, j), select(b, d, k)), multiply(select(a, d, k), select(b, d, j)), kOne);
  }
  const Tensor* const pointers[] = {&parts[0], &parts[1], &parts[2]};
  return contiguous(stack(TensorList(pointers, 3), d));
}

Tensor _compute_linear_combination(const Tensor& input, const Tensor& coefficients) {
  SCONCE_CHECK(input.dim() > 0 && input.numel() > 0 && coefficients.dim() == 2 && coefficients.size(1) == input.size(0),
               kInvalidArgument, "_compute_linear_combination: input ", describe(input),
               " does not go with coefficients ", describe(coefficients));
  const int64_t rows[] = {input.size(0), -1};
  Shape sizes(input.sizes());
  sizes[0] = coefficients.size(0);
  // Products and sums of bools are bools.
  const DType dtype = input.dtype() == DType::kBool ? DType::kInt64 : input.dtype();
  const Tensor sums = mm(to_dtype(coefficients, dtype), reshape(to_dtype(input, dtype), rows));
  return to_dtype(reshape(sums, sizes), input.dtype());
}

}  // namespace sconce::cpu
