#include "src/tensor/view.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

// Grows the storage to at least `bytes`: the old bytes, followed by uninitialised ones.
void make_room(const char* name, Storage& storage, size_t bytes) {
  if (bytes <= storage.bytes()) return;
  SCONCE_CHECK(!storage.immutable(), kFailedPrecondition, name, ": a constant's storage of ", storage.bytes(),
               " bytes cannot grow to ", bytes);
  const Device device = storage.device();
  StoragePtr grown;
  if (device.type == DeviceType::kCpu) {
    grown = allocate_cpu(bytes);
    if (storage.bytes() > 0) std::memcpy(grown->data(), storage.data(), storage.bytes());
  } else {
    const auto count = static_cast<int64_t>(bytes), kept = static_cast<int64_t>(storage.bytes()), one = int64_t{1};
    grown = Tensor::empty(IntSpan(&count, 1), DType::kUInt8, device).storage();
    const auto part = [&](void* data) {
      return Tensor::from_blob(data, IntSpan(&kept, 1), IntSpan(&one, 1), DType::kUInt8, device);
    };
    Tensor to = part(grown->data());
    if (kept > 0) copy(part(storage.data()), to);
  }
  grown->retain();  // dropped by the release below
  storage.reset(
      grown->data(), bytes, [](void*, size_t, void* context) noexcept { static_cast<Storage*>(context)->release(); },
      grown.get());
}

}  // namespace

std::optional<Shape> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape) {
  Shape out;
  const int rank = static_cast<int>(shape.size());
  out.resize(rank);
  if (sizes.empty()) {
    std::fill_n(out.data(), rank, 1);
    return out;
  }
  const bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (empty) {
    if (std::ranges::equal(sizes, shape)) return Shape(strides);
    contiguous_strides(shape, out.data());
    return out;
  }
  // Each run of old dimensions that is evenly spaced must be tiled by a run of new ones.
  int at = rank - 1;
  int64_t base = strides.back(), old_count = 1, new_count = 1;
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) {
    old_count *= sizes[d];
    if (d > 0 && (sizes[d - 1] == 1 || strides[d - 1] == old_count * base)) continue;
    for (; at >= 0 && (new_count < old_count || shape[at] == 1); --at) {
      out[at] = new_count * base;
      new_count *= shape[at];
    }
    if (new_count != old_count) return std::nullopt;
    if (d > 0) {
      base = strides[d - 1];
      old_count = new_count = 1;
    }
  }
  if (at >= 0) return std::nullopt;
  return out;
}

Shape infer_shape(IntSpan shape, int64_t numel) {
  SCONCE_CHECK(shape.size() <= Tensor::kMaxRank, kInvalidArgument, "reshape: rank ", shape.size(), " exceeds ",
               Tensor::kMaxRank);
  Shape out(shape);
  int inferred = -1;
  int64_t known = 1;
  bool overflow = false;
  for (int d = 0; d < out.rank(); ++d) {
    if (shape[d] == -1) {
      SCONCE_CHECK(inferred < 0, kInvalidArgument, "reshape: only one dimension can be inferred, got shape ",
                   to_string(shape));
      inferred = d;
    } else {
      SCONCE_CHECK(shape[d] >= 0, kInvalidArgument, "reshape: invalid dimension ", shape[d], " in shape ",
                   to_string(shape));
      overflow |= __builtin_mul_overflow(known, shape[d], &known);
    }
  }
  if (inferred >= 0) {
    SCONCE_CHECK(known != 0 || numel != 0, kInvalidArgument, "reshape: -1 is ambiguous in shape ", to_string(shape),
                 " for a tensor without elements");
    if (!overflow && known != 0 && numel % known == 0) {
      out[inferred] = numel / known;
      return out;
    }
  } else if (known == numel && !overflow) {
    return out;
  }
  SCONCE_FAIL(kInvalidArgument, "reshape: shape ", to_string(shape), " is invalid for ", numel, " elements");
}

void resize(Tensor& self, IntSpan size) {
  if (std::ranges::equal(self.sizes(), size)) return;
  for (const int64_t s : size)
    SCONCE_CHECK(s >= 0, kInvalidArgument, "resize_: negative dimension in size ", to_string(size));
  SCONCE_CHECK(size.size() <= Tensor::kMaxRank, kInvalidArgument, "resize_: rank ", size.size(), " exceeds ",
               Tensor::kMaxRank);
  int64_t strides[Tensor::kMaxRank];
  contiguous_strides(size, strides);
  const IntSpan new_strides(strides, size.size());
  make_room("resize_", *self.storage(),
            storage_bytes_needed(size, new_strides, self.storage_offset(), self.itemsize()));
  self = self.as_strided(size, new_strides, self.storage_offset());
}

namespace cpu {

Tensor permute(const Tensor& self, IntSpan dims) {
  SCONCE_CHECK(static_cast<int64_t>(dims.size()) == self.dim(), kInvalidArgument, "permute: ", dims.size(),
               " dims for a tensor of rank ", self.dim());
  Shape sizes, strides;
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim("permute", dim, self.dim());
    SCONCE_CHECK(!(seen >> d & 1), kInvalidArgument, "permute: duplicate dims in ", to_string(dims));
    seen |= uint64_t{1} << d;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return self.as_strided(sizes, strides, self.storage_offset());
}

Tensor reshape(const Tensor& self, IntSpan shape) {
  const Shape sizes = infer_shape(shape, self.numel());
  if (const auto strides = view_strides(self.sizes(), self.strides(), sizes))
    return self.as_strided(sizes, *strides, self.storage_offset());
  const Tensor copy = contiguous(self);
  Shape strides;
  strides.resize(sizes.rank());
  contiguous_strides(sizes, strides.data());
  return copy.as_strided(sizes, strides, copy.storage_offset());
}

Tensor slice_Tensor(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
                    int64_t step) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "slice: cannot be applied to a 0-dim tensor");
  SCONCE_CHECK(step > 0, kInvalidArgument, "slice: step must be positive, got ", step);
  dim = wrap_dim("slice", dim, self.dim());
  Shape sizes(self.sizes()), strides(self.strides());
  const int d = static_cast<int>(dim);
  const int64_t size = sizes[d];
  const auto clamp = [size](int64_t at, int64_t least) { return std::clamp(at < 0 ? at + size : at, least, size); };
  const int64_t first = clamp(start.value_or(0), 0);
  const int64_t last = clamp(end.value_or(std::numeric_limits<int64_t>::max()), first);
  const int64_t offset = self.storage_offset() + first * strides[d];
  sizes[d] = last == first ? 0 : (last - first - 1) / step + 1;
  // One element or none: the step may be any number.
  if (sizes[d] > 1)
    strides[d] *= step;
  else
    strides[d] = static_cast<int64_t>(static_cast<uint64_t>(strides[d]) * static_cast<uint64_t>(step));
  return self.as_strided(sizes, strides, offset);
}

Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  dim = wrap_dim("squeeze", dim, self.dim());
  if (self.dim() == 0 || self.size(dim) != 1) return self;
  Shape sizes, strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == dim) continue;
    sizes.push_back(self.size(d));
    strides.push_back(self.stride(d));
  }
  return self.as_strided(sizes, strides, self.storage_offset());
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "narrow: cannot be applied to a 0-dim tensor");
  SCONCE_CHECK(length >= 0, kInvalidArgument, "narrow: length must be non-negative, got ", length);
  dim = wrap_dim("narrow", dim, self.dim());
  const int64_t size = self.size(dim);
  SCONCE_CHECK(start >= -size && start <= size, kInvalidArgument, "narrow: start out of range (expected to be in [",
               -size, ", ", size, "], but got ", start, ")");
  if (start < 0) start += size;
  SCONCE_CHECK(start <= size - length, kInvalidArgument, "narrow: start (", start, ") + length (", length,
               ") exceeds dimension size (", size, ")");
  return slice_Tensor(self, dim, start, start + length, 1);
}

Tensor view_dtype(const Tensor& self, DType dtype) {
  const auto from = static_cast<int64_t>(self.itemsize()), to = static_cast<int64_t>(dtype_bytes(dtype));
  if (from == to) return self.view_as(dtype, self.sizes(), self.strides(), self.storage_offset());
  const auto fail_unless = [&](bool fits, const char* what, int64_t got) {
    SCONCE_CHECK(fits, kInvalidArgument, "view_dtype: ", what, " to view ", dtype_name(self.dtype()), " as ",
                 dtype_name(dtype), ", which differ in size, but got ", got);
  };
  fail_unless(self.dim() > 0, "self.dim() cannot be 0", 0);
  Shape sizes(self.sizes()), strides(self.strides());
  const int last = sizes.rank() - 1;
  fail_unless(strides[last] == 1, "self.stride(-1) must be 1", strides[last]);
  if (from > to) {
    const int64_t ratio = from / to;
    sizes[last] *= ratio;
    for (int d = 0; d < last; ++d) strides[d] *= ratio;
    return self.view_as(dtype, sizes, strides, self.storage_offset() * ratio);
  }
  const int64_t ratio = to / from;
  fail_unless(sizes[last] % ratio == 0, "self.size(-1) must be divisible by the ratio", sizes[last]);
  fail_unless(self.storage_offset() % ratio == 0, "self.storage_offset() must be divisible by the ratio",
              self.storage_offset());
  sizes[last] /= ratio;
  for (int d = 0; d < last; ++d) {
    fail_unless(strides[d] % ratio == 0, "the strides must be divisible by the ratio", strides[d]);
    strides[d] /= ratio;
  }
  return self.view_as(dtype, sizes, strides, self.storage_offset() / ratio);
}

Tensor view_as_real(const Tensor& self) {
  SCONCE_CHECK(is_complex(self.dtype()), kInvalidArgument, "view_as_real: only complex tensors, got ",
               dtype_name(self.dtype()));
  Shape sizes(self.sizes()), strides(self.strides());
  for (int d = 0; d < strides.rank(); ++d) strides[d] *= 2;
  SCONCE_CHECK(sizes.rank() < Tensor::kMaxRank, kInvalidArgument, "view_as_real: rank ", sizes.rank() + 1, " exceeds ",
               Tensor::kMaxRank);
  sizes.push_back(2);
  strides.push_back(1);
  return self.view_as(value_dtype(self.dtype()), sizes, strides, self.storage_offset() * 2);
}

Tensor view_as_complex(const Tensor& self) {
  const DType from = self.dtype();
  SCONCE_CHECK(from == DType::kFloat16 || from == DType::kFloat32 || from == DType::kFloat64, kUnsupported,
               "view_as_complex: only float16, float32 and float64, got ", dtype_name(from));
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "view_as_complex: the tensor needs at least one dimension");
  Shape sizes(self.sizes()), strides(self.strides());
  const int last = sizes.rank() - 1;
  SCONCE_CHECK(sizes[last] == 2, kInvalidArgument, "view_as_complex: the last dimension must have size 2, got ",
               to_string(self.sizes()));
  SCONCE_CHECK(strides[last] == 1, kInvalidArgument, "view_as_complex: the last dimension must have stride 1, got ",
               strides[last]);
  SCONCE_CHECK(self.storage_offset() % 2 == 0, kInvalidArgument,
               "view_as_complex: the storage offset must be divisible by 2, got ", self.storage_offset());
  for (int d = 0; d < last; ++d) {
    SCONCE_CHECK(sizes[d] == 1 || strides[d] % 2 == 0, kInvalidArgument,
                 "view_as_complex: strides of all but the last dimension must be divisible by 2, got ",
                 to_string(self.strides()));
    strides[d] /= 2;
  }
  sizes.resize(last);
  strides.resize(last);
  const DType to = from == DType::kFloat16   ? DType::kComplex32
                   : from == DType::kFloat32 ? DType::kComplex64
                                             : DType::kComplex128;
  return self.view_as(to, sizes, strides, self.storage_offset() / 2);
}

namespace {
void restride(Tensor& self, MemoryFormat format) {
  int64_t strides[Tensor::kMaxRank];
  format_strides("resize_", self.sizes(), format, strides);
  self = self.as_strided(Shape(self.sizes()), {strides, static_cast<size_t>(self.dim())}, self.storage_offset());
}
}  // namespace

void resize_(Tensor& self, IntSpan size, OptEnum memory_format) {
  const MemoryFormat format = memory_format_in("resize_", memory_format, MemoryFormat::kContiguous);
  SCONCE_CHECK(format != MemoryFormat::kPreserve, kInvalidArgument, "resize_: memory format preserve is not supported");
  resize(self, size);
  if (memory_format) restride(self, format);
}

void resize_as_(Tensor& self, const Tensor& the_template, OptEnum memory_format) {
  MemoryFormat format = memory_format_in("resize_as_", memory_format, MemoryFormat::kContiguous);
  resize(self, Shape(the_template.sizes()));
  if (!memory_format) return;
  if (format == MemoryFormat::kPreserve) format = suggested_format(the_template);
  restride(self, format);
}

void set__source_Tensor(Tensor& self, const Tensor& source) {
  // Offset and strides count elements of `self`, whose dtype stays.
  make_room("set_", *source.storage(),
            storage_bytes_needed(source.sizes(), source.strides(), source.storage_offset(), self.itemsize()));
  self = source.view_as(self.dtype(), source.sizes(), source.strides(), source.storage_offset());
}

}  // namespace cpu
}  // namespace sconce
