#include "src/tensor/factory.h"

#include <algorithm>
#include <initializer_list>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"

namespace sconce {
namespace {

// Strides that grow from the channels over the spatial dimensions to the batch. `order` from the innermost out.
bool grows_in_order(const Tensor& tensor, std::initializer_list<int> order) noexcept {
  if (tensor.stride(1) == 0) return false;
  int64_t least = 0;
  for (const int d : order) {
    const int64_t size = tensor.size(d), stride = tensor.stride(d);
    if (size == 0 || stride < least) return false;
    if (d == 0 && least == tensor.stride(1)) return false;  // [N, 1, 1, 1] is row-major
    least = stride * std::max<int64_t>(size, 1);
  }
  return true;
}

bool packed_in_order(const Tensor& tensor, std::initializer_list<int> order) noexcept {
  int64_t expected = 1;
  for (const int d : order) {
    if (tensor.size(d) == 1) continue;
    if (tensor.stride(d) != expected) return false;
    expected *= tensor.size(d);
  }
  return true;
}

}  // namespace

void check_factory(std::string_view name, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  SCONCE_CHECK(!layout || *layout == static_cast<int32_t>(Layout::kStrided), kUnsupported, name,
               ": only the strided layout is supported, got layout number ", layout.value_or(0));
  SCONCE_CHECK(!device || device->type == DeviceType::kCpu, kUnsupported, name, ": device ",
               to_string(device.value_or(Device{})), " in an operator for the CPU");
  SCONCE_CHECK(!pin_memory || !*pin_memory, kUnsupported, name, ": pinned memory needs an accelerator");
}

MemoryFormat memory_format_in(std::string_view name, OptEnum number, MemoryFormat otherwise) {
  if (!number) return otherwise;
  SCONCE_CHECK(*number >= 0 && *number <= 3, kInvalidArgument, name, ": memory format number ", *number,
               " is not known");
  return static_cast<MemoryFormat>(*number);
}

Tensor empty_checked(std::string_view name, IntSpan sizes, DType dtype) {
  for (const int64_t size : sizes)
    SCONCE_CHECK(size >= 0, kInvalidArgument, name, ": negative dimension in size ", to_string(sizes));
  return Tensor::empty(sizes, dtype);
}

void format_strides(std::string_view name, IntSpan sizes, MemoryFormat format, int64_t* strides) {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve)
    return contiguous_strides(sizes, strides);
  const size_t rank = format == MemoryFormat::kChannelsLast ? 4 : 5;
  SCONCE_CHECK(sizes.size() == rank, kInvalidArgument, name, ": channels-last needs rank ", rank, ", got ",
               to_string(sizes));
  int64_t stride = sizes[1];
  strides[1] = 1;
  for (size_t d = rank - 1; d >= 2; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  strides[0] = stride;
}

Tensor empty_in_format(std::string_view name, IntSpan sizes, DType dtype, MemoryFormat format, Device device) {
  if (format == MemoryFormat::kContiguous || format == MemoryFormat::kPreserve)
    return Tensor::empty(sizes, dtype, device);
  int64_t strides[Tensor::kMaxRank];
  format_strides(name, sizes, format, strides);
  return Tensor::empty_strided(sizes, {strides, sizes.size()}, dtype, device);
}
Tensor empty_in_format(std::string_view name, const Tensor& self, DType dtype, MemoryFormat format) {
  if (format == MemoryFormat::kPreserve) return empty_like(self, dtype);
  return empty_in_format(name, self.sizes(), dtype, format, self.device());
}

DType value_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kFloat16;
    case DType::kComplex64:
      return DType::kFloat32;
    case DType::kComplex128:
      return DType::kFloat64;
    default:
      return dtype;
  }
}

bool is_channels_last(const Tensor& tensor) noexcept {
  return tensor.dim() == 4 && packed_in_order(tensor, {1, 3, 2, 0});
}
bool is_channels_last_3d(const Tensor& tensor) noexcept {
  return tensor.dim() == 5 && packed_in_order(tensor, {1, 4, 3, 2, 0});
}
MemoryFormat suggested_format(const Tensor& tensor) noexcept {
  if (tensor.dim() == 4 && grows_in_order(tensor, {1, 3, 2, 0})) return MemoryFormat::kChannelsLast;
  if (tensor.dim() == 5 && grows_in_order(tensor, {1, 4, 3, 2, 0})) return MemoryFormat::kChannelsLast3d;
  return MemoryFormat::kContiguous;
}

namespace cpu {

// The number must fit the dtype (see fill.h); null dtypes are float32, those of new_* that of `self`.
Tensor full(IntSpan size, double fill_value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_factory("full", layout, device, pin_memory);
  Tensor out = empty_checked("full", size, dtype.value_or(kDefaultDType));
  fill(out, fill_value);
  return out;
}

Tensor new_empty(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory) {
  check_factory("new_empty", layout, device, pin_memory);
  return empty_checked("new_empty", size, dtype.value_or(self.dtype()));
}

Tensor new_zeros(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory) {
  check_factory("new_zeros", layout, device, pin_memory);
  Tensor out = empty_checked("new_zeros", size, dtype.value_or(self.dtype()));
  zero(out);
  return out;
}

// Zeros. PyTorch's take no memory until written; the difference is not visible.
Tensor _efficientzerotensor(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_factory("_efficientzerotensor", layout, device, pin_memory);
  Tensor out = empty_checked("_efficientzerotensor", size, dtype.value_or(kDefaultDType));
  zero(out);
  return out;
}

}  // namespace cpu
}  // namespace sconce
