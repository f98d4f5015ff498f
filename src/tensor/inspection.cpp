#include "src/tensor/inspection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sstream>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/device/device_backend.h"

namespace sconce {
namespace {

template <class T>
T read(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

void for_each_element(const Tensor& t, const std::function<void(const std::byte*)>& visit) {
  if (t.numel() == 0) return;
  int64_t index[Tensor::kMaxRank] = {};
  const auto* base = static_cast<const std::byte*>(t.data());
  const auto itemsize = static_cast<int64_t>(t.itemsize());
  for (int64_t done = 0; done < t.numel(); ++done) {
    int64_t offset = 0;
    for (int64_t d = 0; d < t.dim(); ++d) offset += index[d] * t.stride(d);
    visit(base + offset * itemsize);
    for (int64_t d = t.dim(); d-- > 0;) {
      if (++index[d] < t.size(d)) break;
      index[d] = 0;
    }
  }
}

}  // namespace

ScalarValue load_scalar(const void* element, DType dtype) {
  using Kind = ScalarValue::Kind;
  ScalarValue v;
  const auto real = [&](double value) {
    v.kind = Kind::kReal;
    v.real = value;
  };
  const auto complex = [&](double re, double im) {
    v.kind = Kind::kComplex;
    v.real = re;
    v.imag = im;
  };
  const auto integer = [&](int64_t value) { v.i = value; };
  const auto natural = [&](uint64_t value) {
    v.kind = Kind::kUnsigned;
    v.u = value;
  };
  switch (dtype) {
    case DType::kUInt8:
      natural(read<uint8_t>(element));
      break;
    case DType::kUInt16:
      natural(read<uint16_t>(element));
      break;
    case DType::kUInt32:
      natural(read<uint32_t>(element));
      break;
    case DType::kUInt64:
      natural(read<uint64_t>(element));
      break;
    case DType::kInt8:
      integer(read<int8_t>(element));
      break;
    case DType::kInt16:
      integer(read<int16_t>(element));
      break;
    case DType::kInt32:
      integer(read<int32_t>(element));
      break;
    case DType::kInt64:
      integer(read<int64_t>(element));
      break;
    case DType::kBool:
      v.kind = Kind::kBool;
      v.i = read<uint8_t>(element) != 0;
      break;
    case DType::kFloat32:
      real(read<float>(element));
      break;
    case DType::kFloat64:
      real(read<double>(element));
      break;
    case DType::kFloat16:
      real(static_cast<float>(read<Half>(element)));
      break;
    case DType::kBFloat16:
      real(static_cast<float>(read<BFloat16>(element)));
      break;
    case DType::kFloat8E5M2:
      real(static_cast<float>(read<Float8E5M2>(element)));
      break;
    case DType::kFloat8E4M3FN:
      real(static_cast<float>(read<Float8E4M3FN>(element)));
      break;
    case DType::kFloat8E5M2FNUZ:
      real(static_cast<float>(read<Float8E5M2FNUZ>(element)));
      break;
    case DType::kFloat8E4M3FNUZ:
      real(static_cast<float>(read<Float8E4M3FNUZ>(element)));
      break;
    case DType::kFloat8E8M0FNU:
      real(static_cast<float>(read<Float8E8M0FNU>(element)));
      break;
    case DType::kComplex32: {
      const auto* half = static_cast<const std::byte*>(element);
      complex(static_cast<float>(read<Half>(half)), static_cast<float>(read<Half>(half + 2)));
      break;
    }
    case DType::kComplex64: {
      const auto c = read<std::complex<float>>(element);
      complex(c.real(), c.imag());
      break;
    }
    case DType::kComplex128: {
      const auto c = read<std::complex<double>>(element);
      complex(c.real(), c.imag());
      break;
    }
    case DType::kFloat4E2M1FNx2:
      SCONCE_FAIL(kUnsupported, "a pair of float4 values has no single value");
  }
  return v;
}

// Inspected values are copied to the host first.
static Tensor on_host(const Tensor& tensor) {
  Tensor here = Tensor::empty(tensor.sizes(), tensor.dtype());
  device_backend(tensor.device()).copy(tensor, here);
  return here;
}

ScalarValue item(const Tensor& tensor) {
  SCONCE_CHECK(tensor.defined() && tensor.numel() == 1, kInvalidArgument, "a tensor with ", tensor.numel(),
               " elements cannot be converted to Scalar");
  if (!tensor.is_cpu()) return item(on_host(tensor));
  return load_scalar(tensor.data(), tensor.dtype());
}

NonFinite count_nonfinite(const Tensor& tensor) {
  NonFinite found;
  if (!tensor.defined() || is_integral(tensor.dtype(), true)) return found;
  if (!tensor.is_cpu()) return count_nonfinite(on_host(tensor));
  for_each_element(tensor, [&](const std::byte* element) {
    const ScalarValue v = load_scalar(element, tensor.dtype());
    if (std::isnan(v.real) || std::isnan(v.imag))
      ++found.nan;
    else if (std::isinf(v.real) || std::isinf(v.imag))
      ++found.inf;
  });
  return found;
}

std::string summarize(const Tensor& tensor) {
  std::ostringstream text;
  text << describe(tensor);
  if (!tensor.defined() || tensor.numel() == 0 || is_complex(tensor.dtype())) return text.str();
  if (!tensor.is_cpu()) return summarize(on_host(tensor));
  double low = std::numeric_limits<double>::infinity(), high = -low, sum = 0;
  for_each_element(tensor, [&](const std::byte* element) {
    const ScalarValue v = load_scalar(element, tensor.dtype());
    const double value = v.kind == ScalarValue::Kind::kReal       ? v.real
                         : v.kind == ScalarValue::Kind::kUnsigned ? static_cast<double>(v.u)
                                                                  : static_cast<double>(v.i);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  });
  text << " min " << low << " max " << high << " mean " << sum / static_cast<double>(tensor.numel());
  return text.str();
}

}  // namespace sconce
