#include "src/tensor/dimensions.h"

#include <algorithm>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce::cpu {
namespace {

// dim + rank + 1 for negative dims: the position of an inserted dimension.
int64_t wrap_new_dim(const char* name, int64_t dim, int64_t rank) { return wrap_dim(name, dim, rank + 1); }

Tensor with_dims(const Tensor& self, const Shape& sizes, const Shape& strides) {
  return self.as_strided(sizes, strides, self.storage_offset());
}

bool has_format(const Tensor& self, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::kContiguous:
      return self.is_contiguous();
    case MemoryFormat::kChannelsLast:
      return is_channels_last(self);
    case MemoryFormat::kChannelsLast3d:
      return is_channels_last_3d(self);
    default:
      return true;
  }
}

}  // namespace

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "select: cannot be applied to a 0-dim tensor");
  const int64_t at = wrap_dim("select", dim, self.dim()), size = self.size(at);
  SCONCE_CHECK(index >= -size && index < size, kInvalidArgument, "select: index ", index,
               " out of range for tensor of size ", to_string(self.sizes()), " at dimension ", dim);
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == at) continue;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return self.as_strided(sizes, strides, self.storage_offset() + (index < 0 ? index + size : index) * self.stride(at));
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const auto a = static_cast<int>(wrap_dim("transpose", dim0, self.dim())),
             b = static_cast<int>(wrap_dim("transpose", dim1, self.dim()));
  Shape sizes(self.sizes()), strides(self.strides());
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return with_dims(self, sizes, strides);
}

Tensor t(const Tensor& self) {
  SCONCE_CHECK(self.dim() <= 2, kInvalidArgument, "t: expects a tensor with <= 2 dimensions, got ", describe(self));
  return self.dim() < 2 ? self : transpose(self, 0, 1);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  SCONCE_CHECK(self.dim() < Tensor::kMaxRank, kInvalidArgument, "unsqueeze: more than ", Tensor::kMaxRank,
               " dimensions");
  const int64_t at = wrap_new_dim("unsqueeze", dim, self.dim());
  Shape sizes, strides;
  for (int64_t d = 0; d <= self.dim(); ++d) {
    if (d == at) {
      sizes.push_back(1);
      strides.push_back(at < self.dim() ? self.size(at) * self.stride(at) : 1);
    }
    if (d == self.dim()) break;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return with_dims(self, sizes, strides);
}

Tensor squeeze(const Tensor& self) {
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.size(d) == 1) continue;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return with_dims(self, sizes, strides);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t start = wrap_dim("flatten", start_dim, self.dim()), end = wrap_dim("flatten", end_dim, self.dim());
  SCONCE_CHECK(start <= end, kInvalidArgument, "flatten: start_dim cannot come after end_dim");
  if (self.dim() == 0) {
    const int64_t one = 1;
    return reshape(self, IntSpan(&one, 1));
  }
  if (start == end) return self;
  Shape sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d < start || d > end) {
      sizes.push_back(self.size(d));
    } else {
      joined *= self.size(d);
      if (d == end) sizes.push_back(joined);
    }
  }
  return reshape(self, sizes);
}

Tensor view(const Tensor& self, IntSpan size) {
  const Shape sizes = infer_shape(size, self.numel());
  const auto strides = view_strides(self.sizes(), self.strides(), sizes);
  SCONCE_CHECK(strides, kInvalidArgument,
               "view: size is not compatible with input tensor's size and stride (at least "
               "one dimension spans across two contiguous subspaces): ",
               to_string(size), " of ", describe(self));
  return with_dims(self, sizes, *strides);
}

Tensor expand(const Tensor& self, IntSpan size) {
  const auto added = static_cast<int64_t>(size.size()) - self.dim();
  SCONCE_CHECK(added >= 0, kInvalidArgument, "expand: the number of sizes provided (", size.size(),
               ") must be greater or equal to the number of dimensions in the tensor (", self.dim(), ")");
  Shape sizes(size);
  for (int64_t d = 0; d < sizes.rank(); ++d)
    if (sizes[static_cast<int>(d)] == -1) {
      SCONCE_CHECK(d >= added, kInvalidArgument, "expand: -1 is not allowed in a leading, non-existing dimension ", d);
      sizes[static_cast<int>(d)] = self.size(d - added);
    }
  Shape strides = broadcast_strides("expand", self, sizes);
  // Matches inferExpandGeometry: the stride of a new dimension of size 1 is one step more. It affects whether the
  // tensor is contiguous.
  if (self.dim() > 0)
    for (auto d = static_cast<int>(added) - 1; d >= 0; --d)
      if (sizes[d] == 1) strides[d] = sizes[d + 1] * strides[d + 1];
  return self.as_strided(sizes, strides, self.storage_offset());
}

Tensor as_strided(const Tensor& self, IntSpan size, IntSpan stride, std::optional<int64_t> storage_offset) {
  SCONCE_CHECK(size.size() == stride.size(), kInvalidArgument, "as_strided: ", size.size(), " sizes, ", stride.size(),
               " strides");
  return self.as_strided(size, stride, storage_offset.value_or(self.storage_offset()));
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "split: expects at least a 1-dimensional tensor");
  const int64_t size = self.size(wrap_dim("split", dim, self.dim()));
  SCONCE_CHECK(split_size > 0 || (split_size == 0 && size == 0), kInvalidArgument,
               "split: expects split_size to be non-negative, got ", split_size, " for a dimension of size ", size);
  std::vector<int64_t> sizes;
  for (int64_t done = 0; done < size; done += split_size) sizes.push_back(std::min(split_size, size - done));
  if (sizes.empty()) sizes.push_back(0);
  return split_with_sizes(self, sizes, dim);
}

std::vector<Tensor> split_with_sizes(const Tensor& self, IntSpan sizes, int64_t dim) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "split: expects at least a 1-dimensional tensor");
  const int64_t at = wrap_dim("split", dim, self.dim());
  int64_t begin = 0;
  std::vector<Tensor> parts;
  for (const int64_t size : sizes) {
    SCONCE_CHECK(size >= 0, kInvalidArgument, "split: expects split_sizes have only non-negative entries, got ",
                 to_string(sizes));
    parts.push_back(narrow(self, at, begin, size));
    begin += size;
  }
  SCONCE_CHECK(begin == self.size(at), kInvalidArgument, "split: expects split_sizes to sum exactly to ", self.size(at),
               " (input tensor's size at dimension ", dim, "), but got ", to_string(sizes));
  return parts;
}

std::vector<Tensor> split_with_sizes_copy(const Tensor& self, IntSpan sizes, int64_t dim) {
  std::vector<Tensor> parts = split_with_sizes(self, sizes, dim);
  for (Tensor& part : parts) part = clone_contiguous(part);
  return parts;
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t at = wrap_dim("unbind", dim, self.dim());
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "unbind: a tensor without dimensions");
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < self.size(at); ++i) parts.push_back(select(self, at, i));
  return parts;
}

namespace {
int64_t check_stack(TensorList tensors, int64_t dim) {
  SCONCE_CHECK(tensors.size() > 0, kInvalidArgument, "stack: expects a non-empty TensorList");
  for (size_t i = 0; i < tensors.size(); ++i)
    SCONCE_CHECK(std::ranges::equal(tensors[i].sizes(), tensors[0].sizes()), kInvalidArgument,
                 "stack: expects each tensor to be equal size, but got ", to_string(tensors[0].sizes()),
                 " at entry 0 and ", to_string(tensors[i].sizes()), " at entry ", i);
  return wrap_new_dim("stack", dim, tensors[0].dim());
}
}  // namespace

Tensor _stack(TensorList tensors, int64_t dim) {
  const int64_t at = check_stack(tensors, dim);
  std::vector<Tensor> parts;
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < tensors.size(); ++i) parts.push_back(unsqueeze(tensors[i], at));
  for (const Tensor& part : parts) pointers.push_back(&part);
  return cat(TensorList(pointers.data(), pointers.size()), at);
}

// A concatenation whose dimension is split: it is channels-last if the tensors are.
Tensor stack(TensorList tensors, int64_t dim) {
  const int64_t at = check_stack(tensors, dim);
  if (at == tensors[0].dim()) return _stack(tensors, dim);
  Shape sizes;
  for (int64_t d = 0; d < tensors[0].dim(); ++d) {
    if (d == at) sizes.push_back(static_cast<int64_t>(tensors.size()));
    sizes.push_back(tensors[0].size(d));
  }
  return view(cat(tensors, at), sizes);
}

Tensor conj(const Tensor& self) {
  if (!is_complex(self.dtype())) return self;
  // PyTorch returns a view with the same strides, and compiled code relies on them.
  Tensor out = Tensor::empty_strided(self.sizes(), self.strides(), self.dtype());
  Shape once(self.sizes());
  for (int d = 0; d < once.rank(); ++d)
    if (self.stride(d) == 0 && once[d] > 1) once[d] = 1;
  Tensor to = out.as_strided(once, out.strides(), 0);
  const Tensor from = self.as_strided(once, self.strides(), self.storage_offset());
  const auto run = [&]<class T>() { map_elements<T, T>("conj", to, [](T z) { return std::conj(z); }, {&from}); };
  if (self.dtype() == DType::kComplex128)
    run.template operator()<ComplexDouble>();
  else
    run.template operator()<ComplexFloat>();
  return out;
}

Tensor empty(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum memory_format) {
  check_factory("empty", layout, device, pin_memory);
  const DType type = dtype.value_or(kDefaultDType);
  const MemoryFormat format = memory_format_in("empty", memory_format, MemoryFormat::kContiguous);
  if (format == MemoryFormat::kContiguous) return empty_checked("empty", size, type);
  Shape strides;
  strides.resize(static_cast<int>(size.size()));
  format_strides("empty", size, format, strides.data());
  return Tensor::empty_strided(size, strides, type);
}

Tensor empty_strided(IntSpan size, IntSpan stride, OptType dtype, OptEnum layout, OptDevice device,
                     OptEnum pin_memory) {
  check_factory("empty_strided", layout, device, pin_memory);
  SCONCE_CHECK(size.size() == stride.size(), kInvalidArgument, "empty_strided: ", size.size(), " sizes, ",
               stride.size(), " strides");
  return Tensor::empty_strided(size, stride, dtype.value_or(kDefaultDType));
}

Tensor empty_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format) {
  check_factory("empty_like", layout, device, pin_memory);
  return empty_in_format("empty_like", self, dtype.value_or(self.dtype()),
                         memory_format_in("empty_like", memory_format, MemoryFormat::kPreserve));
}

Tensor full_like(const Tensor& self, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format) {
  Tensor out = empty_like(self, dtype, layout, device, pin_memory, memory_format);
  fill(out, value);
  return out;
}

Tensor full(IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  const DType type = dtype.value_or(value.is_floating()  ? kDefaultDType
                                    : value.is_complex() ? DType::kComplex64
                                                         : value.dtype());
  Tensor out = empty(size, type, layout, device, pin_memory, std::nullopt);
  fill(out, value);
  return out;
}

Tensor new_full(const Tensor& self, IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  return full(size, value, dtype.value_or(self.dtype()), layout, device, pin_memory);
}

Tensor clone_in_format(const Tensor& self, OptEnum memory_format) {
  Tensor out =
      empty_in_format("clone", self, self.dtype(), memory_format_in("clone", memory_format, MemoryFormat::kPreserve));
  copy(self, out);
  return out;
}

Tensor contiguous_in_format(const Tensor& self, int32_t memory_format) {
  const MemoryFormat format = memory_format_in("contiguous", memory_format, MemoryFormat::kContiguous);
  SCONCE_CHECK(format != MemoryFormat::kPreserve, kInvalidArgument,
               "contiguous: preserve memory format is unsupported by the contiguous operator");
  return has_format(self, format) ? self : clone_in_format(self, memory_format);
}

Tensor to(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory, bool, bool copy,
          OptEnum memory_format) {
  check_factory("to", layout, device, pin_memory);
  const MemoryFormat format = memory_format_in("to", memory_format, MemoryFormat::kPreserve);
  const DType type = dtype.value_or(self.dtype());
  // As in ATen: a tensor has the format that its strides suggest, which for most is contiguous.
  const bool in_format = format == MemoryFormat::kPreserve || format == suggested_format(self);
  if (type == self.dtype() && !copy && in_format) return self;
  Tensor out = empty_in_format("to", self, type, format);
  sconce::copy(self, out);
  return out;
}

}  // namespace sconce::cpu
