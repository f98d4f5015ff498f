#include "src/tensor/fill.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

constexpr int64_t kElementsPerThread = 32 << 10;

// The largest finite value of a small float, as a double.
template <class T>
constexpr double largest() {
  if constexpr (std::is_same_v<T, Half>) return 65504;
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1.FEp127;
  if constexpr (std::is_same_v<T, Float8E5M2> || std::is_same_v<T, Float8E5M2FNUZ>) return 57344;
  if constexpr (std::is_same_v<T, Float8E4M3FN>) return 448;
  if constexpr (std::is_same_v<T, Float8E4M3FNUZ>) return 240;
  if constexpr (std::is_same_v<T, Float8E8M0FNU>) return 0x1p127;
}
template <class T>
constexpr bool kHasInfinity = std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                              std::is_same_v<T, Float8E5M2>;

template <class T>
bool fits(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    // The limits themselves are exact in double up to 53 bits; above, the next power of two is the first number out of
    // range.
    constexpr double kBelow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kAbove =
        sizeof(T) < 8 ? static_cast<double>(std::numeric_limits<T>::max()) : (std::is_signed_v<T> ? 0x1p63 : 0x1p64);
    return value >= kBelow && (sizeof(T) < 8 ? value <= kAbove : value < kAbove);
  } else {
    if (std::isnan(value) || (std::isinf(value) && kHasInfinity<T>)) return true;
    if constexpr (std::is_same_v<T, Float8E8M0FNU>)
      return value >= 0x1p-127 && value <= largest<T>();
    else if constexpr (std::is_floating_point_v<T>)
      return std::abs(value) <= static_cast<double>(std::numeric_limits<T>::max());
    else
      return std::abs(value) <= largest<T>();
  }
}
template <class T>
bool fits(int64_t value) {
  if constexpr (std::is_same_v<T, bool>)
    return true;
  else if constexpr (std::is_unsigned_v<T>)  // negative integers wrap, as far as they have as many bits
    return value < 0 ? -static_cast<uint64_t>(value) <= std::numeric_limits<T>::max() : std::in_range<T>(value);
  else if constexpr (std::is_integral_v<T>)
    return std::in_range<T>(value);
  else
    return fits<T>(static_cast<double>(value));
}

template <class T>
concept SmallFloat = !std::is_integral_v<T> && !kIsComplex<T> && sizeof(T) < sizeof(float);

enum class Filled { kMany, kOne };

// The type that the parts of a complex number must fit. ATen fills many complex halves by rounding complex floats, but
// fills a single one unchanged.
template <class T, Filled kFilled>
using PartOf =
    std::conditional_t<std::is_same_v<T, ComplexDouble>, double,
                       std::conditional_t<std::is_same_v<T, ComplexFloat> || kFilled == Filled::kMany, float, Half>>;

// ATen does not check the value for a single element of a small float type, or for tensors without dimensions.
template <class T, Filled kFilled>
bool real_fits(auto value) {
  if constexpr (kFilled == Filled::kOne && SmallFloat<T>)
    return true;
  else
    return fits<T>(value);
}

template <Filled kFilled = Filled::kMany, class Value>
void scalar_bytes_of(Value value, DType dtype, void* out) {
  dispatch_all(dtype, "fill_", [&]<class T>() {
    bool ok;
    if constexpr (std::is_same_v<Value, ComplexDouble>) {
      if constexpr (kIsComplex<T>) {
        using Part = PartOf<T, kFilled>;
        ok = fits<Part>(value.real()) && fits<Part>(value.imag());
      } else {
        ok = (std::is_same_v<T, bool> || value.imag() == 0) && real_fits<T, kFilled>(value.real());
      }
    } else if constexpr (kIsComplex<T>) {
      ok = fits<PartOf<T, kFilled>>(value);
    } else {
      ok = real_fits<T, kFilled>(value);
    }
    SCONCE_CHECK(ok, kInvalidArgument, "value cannot be converted to type ", dtype_name(dtype),
                 " without overflow: ", value);
    const T element = convert_value<T>(value);
    std::memcpy(out, &element, sizeof(T));
  });
}

template <class Value>
void fill_with(Tensor& self, Value value) {
  unsigned char element[16];
  if (self.is_cpu() && self.numel() == 1)
    scalar_bytes_of<Filled::kOne>(value, self.dtype(), element);
  else
    scalar_bytes_of(value, self.dtype(), element);
  fill_bytes(self, element);
}

}  // namespace

void scalar_bytes(double value, DType dtype, void* out) { scalar_bytes_of(value, dtype, out); }
void scalar_bytes(int64_t value, DType dtype, void* out) { scalar_bytes_of(value, dtype, out); }
void scalar_bytes(std::complex<double> value, DType dtype, void* out) { scalar_bytes_of(value, dtype, out); }

void fill_bytes(Tensor& self, const void* element) {
  check_no_internal_overlap("fill_", self);
  if (!self.is_cpu()) [[unlikely]]
    return device_backend(self.device()).fill(self, element);
  if (self.numel() == 0) return;
  const auto* bytes = static_cast<const unsigned char*>(element);
  bool uniform = true;
  for (size_t i = 1; i < self.itemsize(); ++i) uniform &= bytes[i] == bytes[0];
  auto* data = static_cast<char*>(self.data());
  if (uniform && self.is_dense()) {
    const auto item = static_cast<int64_t>(self.itemsize());
    return parallel_for(0, self.numel(), kElementsPerThread, [=](int64_t begin, int64_t end) noexcept {
      std::memset(data + begin * item, bytes[0], static_cast<size_t>((end - begin) * item));
    });
  }
  const StridedLoop<1> loop(self.sizes(), {self.strides()}, {self.itemsize()});
  dispatch_bytes(self.itemsize(), [&]<class E>() {
    E value;
    std::memcpy(&value, element, sizeof(E));
    parallel_for(0, loop.numel, kElementsPerThread, [&](int64_t begin, int64_t end) noexcept {
      loop.run({data}, begin, end, [value](char* const* p, const int64_t* stride, int64_t n) {
        char* to = p[0];
        if (stride[0] == static_cast<int64_t>(sizeof(E))) {
          fill_run(to, value, n);
        } else {
          for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * stride[0], &value, sizeof(E));
        }
      });
    });
  });
}

void fill(Tensor& self, double value) { fill_with(self, value); }
void fill(Tensor& self, int64_t value) { fill_with(self, value); }
void fill(Tensor& self, std::complex<double> value) { fill_with(self, value); }

void zero(Tensor& self) {
  static constexpr unsigned char kZero[16] = {};
  fill_bytes(self, kZero);
}

namespace cpu {
void fill__Scalar(const Tensor& self, double value) {
  Tensor view = self;
  fill(view, value);
}
}  // namespace cpu

}  // namespace sconce
