#include "tests/conformance/compare.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <sstream>
#include <vector>

#include "sconce/float_types.h"
#include "src/support/element_walk.h"

namespace sconce::conformance {
namespace {

template <class T>
T load(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

bool is_exact(DType dtype) { return is_integral(dtype, true) || dtype == DType::kFloat4E2M1FNx2; }

template <class T>
std::complex<double> decode_as(const std::byte* p) {
  if constexpr (std::is_same_v<T, ComplexHalf>)
    return std::complex<float>(load<T>(p));
  else if constexpr (std::is_constructible_v<double, T> || kIsComplex<T>)
    return std::complex<double>(load<T>(p));
  else
    return std::nan("");
}

std::complex<double> decode(DType dtype, const std::byte* p) {
  switch (dtype) {
#define SCONCE_X(enumerator, type) \
  case DType::enumerator:          \
    return decode_as<type>(p);
    SCONCE_CPP_TYPES(SCONCE_X)
#undef SCONCE_X
  }
  return std::nan("");
}

std::string show(DType dtype, const std::byte* p) {
  std::ostringstream text;
  text.precision(17);
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kFloat4E2M1FNx2:
      text << +load<uint8_t>(p);
      break;
    case DType::kInt8:
      text << +load<int8_t>(p);
      break;
    case DType::kInt16:
      text << load<int16_t>(p);
      break;
    case DType::kUInt16:
      text << load<uint16_t>(p);
      break;
    case DType::kInt32:
      text << load<int32_t>(p);
      break;
    case DType::kUInt32:
      text << load<uint32_t>(p);
      break;
    case DType::kInt64:
      text << load<int64_t>(p);
      break;
    case DType::kUInt64:
      text << load<uint64_t>(p);
      break;
    default: {
      if (dtype != DType::kFloat64 && dtype != DType::kComplex128) text.precision(9);
      const std::complex<double> value = decode(dtype, p);
      text << value.real();
      if (is_complex(dtype)) text << (std::signbit(value.imag()) ? "" : "+") << value.imag() << "j";
    }
  }
  return text.str();
}

bool is_nan(std::complex<double> v) { return std::isnan(v.real()) || std::isnan(v.imag()); }

// How far beyond the tolerance; 0 where within.
double excess(DType dtype, const std::byte* got, const std::byte* want, double rtol, double atol) {
  if (is_exact(dtype)) return std::memcmp(got, want, dtype_bytes(dtype)) == 0 ? 0 : INFINITY;
  const std::complex<double> g = decode(dtype, got), w = decode(dtype, want);
  if (g == w || (is_nan(g) && is_nan(w))) return 0;
  const double difference = std::abs(g - w), allowed = atol + rtol * std::abs(w);
  if (std::isfinite(difference) && difference <= allowed) return 0;
  return std::isfinite(difference) && std::isfinite(allowed) ? difference - allowed : INFINITY;
}

using Excess = std::function<double(const std::byte* got, const std::byte* want)>;

std::string compare_elements(const Tensor& got, const TensorCase& want, std::span<const std::byte> storage,
                             const Excess& excess_of) {
  const auto item = static_cast<int64_t>(dtype_bytes(want.dtype));
  int64_t position = 0, worst_position = 0, differing = 0;
  double worst = 0;
  const std::byte *worst_got = nullptr, *worst_want = nullptr;
  walk_elements(want.shape, got.strides(), want.stride, [&](int64_t got_at, int64_t want_at) {
    const std::byte* g = got.data_as<const std::byte>() + got_at * item;
    const std::byte* w = storage.data() + (want.offset + want_at) * item;
    if (const double beyond = excess_of(g, w); beyond > 0) {
      ++differing;
      if (beyond > worst) {
        worst = beyond;
        worst_position = position;
        worst_got = g;
        worst_want = w;
      }
    }
    ++position;
  });
  if (differing == 0) return "";
  std::vector<int64_t> worst_index(want.shape.size());
  for (size_t d = worst_index.size(); d-- > 0; worst_position /= want.shape[d])
    worst_index[d] = worst_position % want.shape[d];
  std::ostringstream text;
  text << differing << " of " << got.numel() << " elements of " << dtype_name(want.dtype) << " "
       << to_string(IntSpan(want.shape)) << " differ, worst at " << to_string(IntSpan(worst_index)) << ": got "
       << show(want.dtype, worst_got) << ", expected " << show(want.dtype, worst_want);
  return text.str();
}

}  // namespace

std::string compare_meta(const Tensor& got, const TensorCase& want) {
  const auto differs = [](IntSpan a, const std::vector<int64_t>& b) {
    return !std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  std::ostringstream text;
  if (!got.defined())
    text << "got None, expected a tensor";
  else if (got.dtype() != want.dtype)
    text << "got " << dtype_name(got.dtype()) << ", expected " << dtype_name(want.dtype);
  else if (differs(got.sizes(), want.shape))
    text << "got shape " << to_string(got.sizes()) << ", expected " << to_string(IntSpan(want.shape));
  else if (differs(got.strides(), want.stride))
    text << "got strides " << to_string(got.strides()) << ", expected " << to_string(IntSpan(want.stride))
         << " for shape " << to_string(got.sizes());
  return text.str();
}

std::string compare_values(const Tensor& got, const TensorCase& want, std::span<const std::byte> storage, double rtol,
                           double atol) {
  const double r = want.rtol.value_or(rtol), a = want.atol.value_or(atol);
  std::string text = compare_elements(
      got, want, storage, [&](const std::byte* g, const std::byte* w) { return excess(want.dtype, g, w, r, a); });
  if (!text.empty() && !is_exact(want.dtype)) {
    std::ostringstream allowed;
    allowed << " (rtol " << r << ", atol " << a << ")";
    text += allowed.str();
  }
  return text;
}

std::string compare_bits(const Tensor& got, const TensorCase& want, std::span<const std::byte> storage) {
  const size_t item = dtype_bytes(want.dtype);
  return compare_elements(got, want, storage, [&](const std::byte* g, const std::byte* w) {
    return std::memcmp(g, w, item) == 0 ? 0.0 : 1.0;
  });
}

}  // namespace sconce::conformance
