#include "src/cuda/tensor/factory.h"

#include <algorithm>

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

const Scalar kZero = int64_t{0}, kOne = int64_t{1};

void fill_number(Tensor& out, const Scalar& value) {
  const DeviceScope scope(out.device());
  if (out.dtype() == DType::kInt64 && (value.is_integral() || value.is_bool())) {
    const int64_t whole = value.is_bool() ? value.to_double() != 0 : value.to_int();
    return fill(out, &whole);
  }
  if (!value.is_complex()) return cpu::fill__Scalar(out, value.to_double());
  const std::complex<double> number = value.to_complex();
  SCONCE_CHECK(is_complex(out.dtype()) || number.imag() == 0, kInvalidArgument,
               "full: a complex number in a tensor of ", dtype_name(out.dtype()));
  if (out.dtype() == DType::kComplex128) return fill(out, &number);
  if (out.dtype() != DType::kComplex64) return cpu::fill__Scalar(out, number.real());
  const std::complex<float> single(number);
  fill(out, &single);
}

}  // namespace

void check_maker(const char* name, OptEnum layout, OptEnum pin_memory) {
  SCONCE_CHECK(!layout || *layout == static_cast<int32_t>(Layout::kStrided), kUnsupported, name,
               ": only the strided layout is supported, got layout number ", layout.value_or(0));
  SCONCE_CHECK(!pin_memory || !*pin_memory, kUnsupported, name, ": a tensor on a device cannot be pinned");
}

Tensor make_like(const char* name, const Tensor& self, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory, OptEnum memory_format) {
  check_maker(name, layout, pin_memory);
  const auto format = static_cast<MemoryFormat>(memory_format.value_or(static_cast<int>(MemoryFormat::kPreserve)));
  const DType type = dtype.value_or(self.dtype());
  const Device where = device ? device_or_current(device) : self.device();
  if (format != MemoryFormat::kPreserve) return empty_in_format(name, self.sizes(), type, format, where);
  return empty_dense(self, type, where);
}

Tensor full(IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_maker("full", layout, pin_memory);
  SCONCE_CHECK(std::all_of(size.begin(), size.end(), [](int64_t n) { return n >= 0; }), kInvalidArgument,
               "full: negative dimension in size ", to_string(size));
  const DType type = dtype.value_or(value.is_floating()  ? kDefaultDType
                                    : value.is_complex() ? DType::kComplex64
                                                         : value.dtype());
  Tensor out = Tensor::empty(size, type, device_or_current(device));
  fill_number(out, value);
  return out;
}
Tensor full_like(const Tensor& self, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format) {
  Tensor out = make_like("full_like", self, dtype, layout, device, pin_memory, memory_format);
  fill_number(out, value);
  return out;
}
Tensor new_full(const Tensor& self, IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  return full(size, value, dtype.value_or(self.dtype()), layout, device ? device : self.device(), pin_memory);
}
Tensor made_zeros(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return full(size, kZero, dtype.value_or(kDefaultDType), layout, device, pin_memory);
}
Tensor made_ones(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return full(size, kOne, dtype.value_or(kDefaultDType), layout, device, pin_memory);
}
Tensor zeros_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format) {
  return full_like(self, kZero, dtype, layout, device, pin_memory, memory_format);
}
Tensor ones_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format) {
  return full_like(self, kOne, dtype, layout, device, pin_memory, memory_format);
}
Tensor new_zeros(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory) {
  return new_full(self, size, kZero, dtype, layout, device, pin_memory);
}
Tensor new_ones(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return new_full(self, size, kOne, dtype, layout, device, pin_memory);
}
Tensor scalar_tensor(Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return full({}, value, dtype.value_or(kDefaultDType), layout, device, pin_memory);
}

Tensor _efficientzerotensor(IntSpan size, OptType dtype, OptEnum, OptDevice device, OptEnum) {
  Tensor out = Tensor::empty(size, dtype.value_or(DType::kFloat32), device_or_current(device));
  fill_zero(out);
  return out;
}

}  // namespace sconce::cuda
