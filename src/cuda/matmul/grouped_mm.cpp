// Products of groups of rows, columns or steps. Match aten::_grouped_mm and _scaled_grouped_mm (torch 2.11, CUDA).
#include <algorithm>
#include <vector>

#include "src/cuda/matmul/scaled_sums.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

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
  SCONCE_CHECK(is_scaled_float8(self.dtype()) && is_scaled_float8(mat2.dtype()), kInvalidArgument, kName,
               ": expected float8 matrices, got ", dtype_name(self.dtype()), " and ", dtype_name(mat2.dtype()));
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

}  // namespace sconce::cuda
