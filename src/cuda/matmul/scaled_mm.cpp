// Products of float8 matrices with scales, of groups, and with packed weights. Match aten::_scaled_mm, _grouped_mm,
// _scaled_grouped_mm, _weight_int4pack_mm and _weight_int8pack_mm (torch 2.11, CUDA). If cuBLASLt has no algorithm,
// computes in float32, which holds float8 exactly.
#include <algorithm>
#include <vector>

#include "src/cuda/matmul/cublaslt_matmul.h"
#include "src/cuda/matmul/few_rows.h"
#include "src/cuda/matmul/matmul_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

bool aligned(const Tensor& t, size_t bytes) { return reinterpret_cast<uintptr_t>(t.data()) % bytes == 0; }

bool takes(DType dtype) { return dtype == DType::kFloat8E4M3FN || dtype == DType::kFloat8E5M2; }

Tensor as_float(const Tensor& t) { return moved_to(t, DType::kFloat32, t.device()); }

// a [m, k] times b [k, n] as float32, whatever their dtypes.
Tensor sums_of(const char* name, const Tensor& a, const Tensor& b) {
  const int64_t sizes[] = {a.size(0), b.size(1)};
  Tensor sums = Tensor::empty(sizes, DType::kFloat32, a.device());
  Tensor target = as_batch(sums);
  const bool half = a.dtype() == b.dtype() && (a.dtype() == DType::kFloat16 || a.dtype() == DType::kBFloat16);
  if (half && try_product(name, as_batch(a), as_batch(b), nullptr, 0, 1, target)) return sums;
  product(name, as_batch(as_float(a)), as_batch(as_float(b)), nullptr, 0, 1, target);
  return sums;
}

// Tries cuBLASLt, which needs float8 sizes that are multiples of 16 and aligned addresses.
bool try_scaled(const char* name, const Tensor& a, const Tensor& b, const ProductScales& scales, Tensor& out) {
  if (a.size(1) == 0 || a.size(1) % 16 != 0 || b.size(1) % 16 != 0 || !aligned(a, 16) || !aligned(b, 16) ||
      !aligned(out, 16) || (scales.by_row && (!aligned(*scales.a, 16) || !aligned(*scales.b, 16))))
    return false;
  Tensor target = as_batch(out);
  return try_product(name, as_batch(a), as_batch(b), nullptr, 0, 1, target, &scales);
}

PerLine per_line(const Tensor& t, int64_t stride) { return {t.data(), stride, static_cast<int>(t.dtype())}; }

void store(const Tensor& sums, const PerLine& by_row, const PerLine& by_column, const PerLine& bias,
           const PerLine& factor, Tensor& out) {
  launch_scaled_sums({sums.data_as<float>(), sums.size(0), sums.size(1), by_row, by_column, bias, factor, out.data(),
                      static_cast<int>(out.dtype()), out.stride(0), out.stride(1)},
                     current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

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

// The groups of a dimension of `length`, from their end offsets. Waits for the device.
struct Group {
  int64_t begin, length;
};
std::vector<Group> groups_of(const char* name, const Tensor& offs, int64_t length) {
  SCONCE_CHECK(offs.dim() == 1 && offs.dtype() == DType::kInt32, kInvalidArgument, name,
               ": Offsets have to be int32 of one dimension, got ", describe(offs));
  refuse_capture("groups whose sizes the host reads");
  Tensor host = Tensor::empty(offs.sizes(), DType::kInt32);
  copy(offs, host, true);
  std::vector<Group> groups;
  int64_t begin = 0;
  for (int64_t g = 0; g < host.numel(); ++g) {
    const int64_t end = std::clamp<int64_t>(host.data_as<int32_t>()[g], 0, length);
    groups.push_back({std::min(begin, length), std::max<int64_t>(0, end - begin)});
    begin = end;
  }
  return groups;
}

Tensor part(const Tensor& t, int64_t dim, const Group& group) {
  Shape sizes(t.sizes());
  sizes[static_cast<int>(dim)] = group.length;
  return t.as_strided(sizes, t.strides(), t.storage_offset() + group.begin * t.stride(dim));
}
Tensor element(const Tensor& t, int64_t index) {
  return t.as_strided(t.sizes().subspan(1), t.strides().subspan(1), t.storage_offset() + index * t.stride(0));
}

void check_groups(const char* name, const Tensor& self, const Tensor& mat2, const Tensor* offs, const Tensor* bias) {
  SCONCE_CHECK((self.dim() == 2 || self.dim() == 3) && (mat2.dim() == 2 || mat2.dim() == 3), kInvalidArgument, name,
               ": mat_a and mat_b have to be 2 or 3 dimensional, got ", self.dim(), " and ", mat2.dim());
  SCONCE_CHECK(self.size(self.dim() - 1) == mat2.size(mat2.dim() - 2), kInvalidArgument, name,
               ": contraction dimension of mat_a and mat_b must match, got ", to_string(self.sizes()), " and ",
               to_string(mat2.sizes()));
  SCONCE_CHECK(static_cast<bool>(offs) == (self.dim() == 2 || mat2.dim() == 2), kInvalidArgument, name,
               ": Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d");
  SCONCE_CHECK(!bias, kUnsupported, name, ": Bias not supported yet");
}

Tensor grouped_result(const Tensor& self, const Tensor& mat2, const Tensor* offs, DType dtype) {
  const int64_t groups = offs ? offs->size(0) : self.size(0), m = self.size(self.dim() - 2),
                n = mat2.size(mat2.dim() - 1), alignment = 16 / static_cast<int64_t>(dtype_bytes(dtype)),
                pitch = (n + alignment - 1) / alignment * alignment;
  const int64_t sizes[] = {groups, m, n}, strides[] = {m * pitch, pitch, 1};
  const bool batched = self.dim() == mat2.dim();
  return Tensor::empty_strided(batched ? IntSpan(sizes) : IntSpan(sizes).last(2),
                               batched ? IntSpan(strides) : IntSpan(strides).last(2), dtype, self.device());
}

// Calls multiply(a, b, out, group, of). `of` is the group's part of the shared dimension, if groups divide that one.
template <class Multiply>
Tensor by_group(const char* name, const Tensor& self, const Tensor& mat2, const Tensor* offs, DType dtype,
                const Multiply& multiply) {
  Tensor out = grouped_result(self, mat2, offs, dtype);
  if (out.numel() == 0) return out;
  const bool a_2d = self.dim() == 2, b_2d = mat2.dim() == 2;
  if (a_2d != b_2d) {
    fill_zero(out);  // for parts that no group covers
  }
  const auto run = [&](int64_t g, const Group& group) {
    Tensor a = a_2d ? part(self, b_2d ? 1 : 0, group) : element(self, g);
    Tensor b = b_2d ? part(mat2, a_2d ? 0 : 1, group) : element(mat2, g);
    Tensor target = a_2d == b_2d ? element(out, g) : part(out, a_2d ? 0 : 1, group);
    if (target.numel() > 0) multiply(a, b, target, g, group);
  };
  if (!offs) {
    for (int64_t g = 0; g < self.size(0); ++g) run(g, {0, 0});
    return out;
  }
  const int64_t shared = a_2d && b_2d ? self.size(1) : a_2d ? self.size(0) : mat2.size(1);
  const std::vector<Group> groups = groups_of(name, *offs, shared);
  SCONCE_CHECK((a_2d || self.size(0) == offs->size(0)) && (b_2d || mat2.size(0) == offs->size(0)), kInvalidArgument,
               name, ": matrix batch sizes have to match");
  for (size_t g = 0; g < groups.size(); ++g) run(static_cast<int64_t>(g), groups[g]);
  return out;
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
  SCONCE_CHECK(takes(self.dtype()) && takes(mat2.dtype()) && scale_a.dtype() == DType::kFloat32 &&
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
  const Tensor* factor = takes(out.dtype()) ? scale_result : nullptr;
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

Tensor _grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor* offs, const Tensor* bias,
                   std::optional<DType> out_dtype) {
  check_groups("_grouped_mm", self, mat2, offs, bias);
  SCONCE_CHECK(self.dtype() == mat2.dtype() && out_dtype.value_or(self.dtype()) == self.dtype(), kInvalidArgument,
               "_grouped_mm: expected one dtype, got ", dtype_name(self.dtype()), ", ", dtype_name(mat2.dtype()),
               " and ", dtype_name(out_dtype.value_or(self.dtype())));
  const DeviceScope scope(self.device());
  return by_group("_grouped_mm", self, mat2, offs, self.dtype(),
                  [](const Tensor& a, const Tensor& b, Tensor& out, int64_t, const Group&) {
                    Tensor target = as_batch(out);
                    product("_grouped_mm", as_batch(a), as_batch(b), nullptr, 0, 1, target);
                  });
}

// scale_a: one per row of self ([m], [groups, m], or [groups * m] if groups divide the shared dimension); scale_b: the
// same for columns of mat2.
Tensor _scaled_grouped_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                          const Tensor* offs, const Tensor* bias, const Tensor* scale_result,
                          std::optional<DType> out_dtype, bool use_fast_accum) {
  constexpr const char* kName = "_scaled_grouped_mm";
  check_groups(kName, self, mat2, offs, bias);
  SCONCE_CHECK(takes(self.dtype()) && takes(mat2.dtype()), kInvalidArgument, kName, ": expected float8 matrices, got ",
               dtype_name(self.dtype()), " and ", dtype_name(mat2.dtype()));
  SCONCE_CHECK(!scale_result, kUnsupported, kName, ": Scale result not supported yet");
  const int64_t groups = offs ? offs->size(0) : self.size(0);
  const bool steps = self.dim() == 2 && mat2.dim() == 2;
  const auto check = [&](const char* what, const Tensor& matrix, int64_t lines, const Tensor& scale) {
    const int64_t wanted = lines * (steps || matrix.dim() == 3 ? groups : 1);
    SCONCE_CHECK(scale.dtype() == DType::kFloat32 && scale.numel() == wanted, kInvalidArgument, kName, ": ", what,
                 " must be float32 with ", wanted, " elements, got ", describe(scale));
  };
  const int64_t m = self.size(self.dim() - 2), n = mat2.size(mat2.dim() - 1);
  check("scale_a", self, m, scale_a);
  check("scale_b", mat2, n, scale_b);
  const DeviceScope scope(self.device());
  const Tensor rows = contiguous(scale_a), columns = contiguous(scale_b);
  const auto lines = [](const Tensor& scale, int64_t first, int64_t count) {
    const int64_t step = 1;
    return scale.as_strided(IntSpan(&count, 1), IntSpan(&step, 1), scale.storage_offset() + first);
  };
  return by_group(kName, self, mat2, offs, out_dtype.value_or(DType::kBFloat16),
                  [&](const Tensor& a, const Tensor& b, Tensor& out, int64_t g, const Group& group) {
                    const int64_t row = self.dim() == 3 || steps ? g * m : group.begin;
                    const int64_t column = mat2.dim() == 3 || steps ? g * n : group.begin;
                    const Tensor by_row = lines(rows, row, out.size(0)),
                                 by_column = lines(columns, column, out.size(1));
                    if (!try_scaled(kName, a, b, {&by_row, &by_column, nullptr, true, use_fast_accum}, out))
                      store(sums_of(kName, a, b), per_line(by_row, 1), per_line(by_column, 1), {}, {}, out);
                  });
}

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
  if (self.size(0) <= kMostFewRowsInt4 && self.stride(1) == 1 && self.stride(0) % 2 == 0 && aligned(self, 4) &&
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
  if (m <= kMostFewRowsInt8 && self.dtype() != DType::kFloat64 && k % 16 == 0 && self.is_contiguous() &&
      mat2.is_contiguous() && aligned(self, 16) && aligned(mat2, 16)) {
    check_launch(kName,
                 launch_few_rows_int8({self.data(), m, n, k, mat2.data_as<int8_t>(), per_line(scales, scales.stride(0)),
                                       out.data(), static_cast<int>(self.dtype())},
                                      current_stream()),
                 self.dtype());
    return out;
  }
  Tensor weight = Tensor::empty(mat2.sizes(), self.dtype(), self.device());
  copy(mat2, weight, false);
  store(sums_of(kName, self, weight.as_strided(turned, strides, 0)), {}, per_line(scales, scales.stride(0)), {}, {},
        out);
  return out;
}

}  // namespace sconce::cuda
