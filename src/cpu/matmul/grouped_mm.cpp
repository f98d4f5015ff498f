// Products of groups of rows, columns or steps. Matches aten::_grouped_mm, torch 2.15.
#include <algorithm>
#include <cstring>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/matmul/gemm/gemm.h"
#include "src/operators/cpu_ops.h"

namespace sconce::cpu {
namespace {

constexpr const char* kName = "_grouped_mm";

void check_strides(const Tensor& t) {
  const int64_t last = t.dim() - 1, alignment = 16 / static_cast<int64_t>(t.itemsize());
  const int64_t rows = t.size(last - 1), columns = t.size(last);
  const bool by_row = t.stride(last) == 1 && t.stride(last - 1) >= std::max<int64_t>(1, columns);
  const bool by_column = t.stride(last - 1) == 1 && t.stride(last) >= std::max<int64_t>(1, rows);
  SCONCE_CHECK(by_row || by_column, kInvalidArgument, kName, ": Invalid strides/sizes, got ", to_string(t.strides()),
               " for strides and ", to_string(t.sizes()), " for sizes");
  const int64_t apart = by_column ? t.stride(last) : t.stride(last - 1);
  const int64_t other = by_row ? t.stride(last - 1) : apart;
  SCONCE_CHECK(apart % alignment == 0 || other % alignment == 0, kInvalidArgument, kName,
               ": strides should be multiple of 16 bytes, got ", to_string(t.strides()));
}

struct Slice {
  int64_t begin, length;
};

// As at::slice(begin, end): clamped, never negative.
std::vector<Slice> slices(const Tensor& offs, int64_t length) {
  std::vector<Slice> result;
  int64_t begin = 0;
  for (int64_t g = 0; g < offs.size(0); ++g) {
    const int64_t end = offs.data_as<int32_t>()[g * offs.stride(0)];
    const auto wrap = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + length : i, 0, length); };
    const int64_t from = wrap(begin);
    result.push_back({from, std::max<int64_t>(0, wrap(end) - from)});
    begin = end;
  }
  return result;
}

}  // namespace

// float32, float16 or bfloat16, one dtype; strides as ATen asks for: one of the last two 1, the other a multiple of 16
// bytes. Group g covers [offs[g-1], offs[g]) of the dimension that the groups share, offs int32 [G]:
//   self [T, K], mat2 [G, K, N]: rows,    result [T, N]
//   self [M, T], mat2 [T, N]:    steps,   result [G, M, N]
//   self [G, M, K], mat2 [K, T]: columns, result [M, T]
//   self [G, M, K], mat2 [G, K, N], without offs: [G, M, N]
// Rows of the result are a multiple of 16 bytes apart; what no group covers is zero (undefined in ATen).
Tensor _grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor* offs, const Tensor* bias,
                   std::optional<DType> out_dtype) {
  const DType dtype = self.dtype();
  SCONCE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16, kInvalidArgument,
               kName, ": Expected mat_a to be Float32, BFloat16 or Float16 matrix, got ", dtype_name(dtype));
  SCONCE_CHECK(mat2.dtype() == dtype, kInvalidArgument, kName,
               ": Expected mat_a and mat_b to have the same dtype, got ", dtype_name(dtype), " and ",
               dtype_name(mat2.dtype()));
  SCONCE_CHECK((self.dim() == 2 || self.dim() == 3) && (mat2.dim() == 2 || mat2.dim() == 3), kInvalidArgument, kName,
               ": mat_a and mat_b have to be 2 or 3 dimensional, got ", self.dim(), " and ", mat2.dim());
  const bool a_2d = self.dim() == 2, b_2d = mat2.dim() == 2;
  const int64_t m = self.size(self.dim() - 2), k = self.size(self.dim() - 1), n = mat2.size(mat2.dim() - 1);
  SCONCE_CHECK(k == mat2.size(mat2.dim() - 2), kInvalidArgument, kName,
               ": contraction dimension of mat_a and mat_b must match, got ", to_string(self.sizes()), " and ",
               to_string(mat2.sizes()));
  check_strides(self);
  check_strides(mat2);
  SCONCE_CHECK(static_cast<bool>(offs) == (a_2d || b_2d), kInvalidArgument, kName,
               ": Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  if (offs) {
    SCONCE_CHECK(offs->dim() == 1, kInvalidArgument, kName, ": offs has to be 1D, got ", describe(*offs));
    SCONCE_CHECK(offs->dtype() == DType::kInt32, kInvalidArgument, kName, ": Offsets have to be int32, got ",
                 dtype_name(offs->dtype()));
  }
  SCONCE_CHECK(!bias, kUnsupported, kName, ": Bias not supported yet");
  SCONCE_CHECK(out_dtype.value_or(dtype) == dtype, kInvalidArgument, kName,
               ": Grouped gemm output dtype must match `mat_a` dtype ", dtype_name(dtype), ", got ",
               dtype_name(out_dtype.value_or(dtype)));
  const int64_t groups = offs ? offs->size(0) : self.size(0);
  SCONCE_CHECK((a_2d || self.size(0) == groups) && (b_2d || mat2.size(0) == groups), kInvalidArgument, kName,
               ": matrix batch sizes have to match, got ", to_string(self.sizes()), ", ", to_string(mat2.sizes()),
               " and ", groups, " groups");

  const int64_t alignment = 16 / static_cast<int64_t>(self.itemsize());
  const int64_t pitch = (n + alignment - 1) / alignment * alignment;
  const bool batched = a_2d == b_2d;
  const int64_t sizes[3] = {groups, m, n}, strides[3] = {m * pitch, pitch, 1};
  const IntSpan all_sizes(sizes), all_strides(strides);
  Tensor out = Tensor::empty_strided(batched ? all_sizes : all_sizes.last(2),
                                     batched ? all_strides : all_strides.last(2), dtype);
  if (out.numel() == 0) return out;
  MatrixProduct p{};
  p.dtype = dtype;
  p.m = m;
  p.n = n;
  p.k = k;
  const auto view = [](const Tensor& t) {
    const int64_t d = t.dim();
    return MatrixView{t.data(), d == 3 ? t.stride(0) : 0, t.stride(d - 2), t.stride(d - 1)};
  };
  p.a = view(self);
  p.b = view(mat2);
  p.c = out.data();
  p.c_batch_stride = m * pitch;
  p.c_row_stride = pitch;
  p.c_column_stride = 1;
  if (!offs) {
    p.batch = groups;
    matrix_product(kName, p);
    return out;
  }
  if (!batched) std::memset(out.data(), 0, out.storage()->bytes());
  const auto itemsize = static_cast<int64_t>(self.itemsize());
  const auto at = [&](const void* data, int64_t elems) {
    return static_cast<const std::byte*>(data) + elems * itemsize;
  };
  int64_t g = 0;
  for (const Slice& s : slices(*offs, batched ? k : a_2d ? m : n)) {
    MatrixProduct one = p;
    if (batched) {  // steps
      one.k = s.length;
      one.a.data = at(p.a.data, s.begin * p.a.column_stride);
      one.b.data = at(p.b.data, s.begin * p.b.row_stride);
      one.c = static_cast<std::byte*>(p.c) + g * p.c_batch_stride * itemsize;
    } else if (a_2d) {  // rows
      one.m = s.length;
      one.a.data = at(p.a.data, s.begin * p.a.row_stride);
      one.b.data = at(p.b.data, g * p.b.batch_stride);
      one.c = static_cast<std::byte*>(p.c) + s.begin * pitch * itemsize;
    } else {  // columns
      one.n = s.length;
      one.a.data = at(p.a.data, g * p.a.batch_stride);
      one.b.data = at(p.b.data, s.begin * p.b.column_stride);
      one.c = static_cast<std::byte*>(p.c) + s.begin * itemsize;
    }
    one.a.batch_stride = one.b.batch_stride = 0;
    matrix_product(kName, one);
    ++g;
  }
  return out;
}

}  // namespace sconce::cpu
