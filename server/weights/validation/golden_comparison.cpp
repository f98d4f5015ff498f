#include "server/weights/validation/golden_comparison.h"

#include <fmt/core.h>

#include <cmath>
#include <complex>
#include <type_traits>

#include "server/support/cpp_type.h"
#include "server/weights/validation/element_order.h"
#include "src/support/element_walk.h"

namespace sconce::server::weights {
namespace {

template <class T>
constexpr bool kIsPacked = std::is_same_v<T, Float4E2M1FNx2>;

template <class T>
std::complex<double> wide(T value) {
  if constexpr (kIsComplex<T>) {
    const ComputeType<T> z = value;
    return {z.real(), z.imag()};
  } else {
    return static_cast<double>(static_cast<ComputeType<T>>(value));
  }
}

bool is_nan(const std::complex<double>& z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
bool is_finite(const std::complex<double>& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

template <class T>
bool close(Stored<T> expected, Stored<T> got, const GoldenTolerance& tolerance) {
  if constexpr (kIsPacked<T>) {
    return expected.bits == got.bits;
  } else if constexpr (std::is_same_v<T, bool>) {
    return (expected != 0) == (got != 0);
  } else if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(expected), b = static_cast<uint64_t>(got);
    return static_cast<double>(expected < got ? b - a : a - b) <= tolerance.atol;
  } else {
    const std::complex<double> e = wide<T>(expected), g = wide<T>(got);
    if (is_nan(e) || is_nan(g)) return is_nan(e) && is_nan(g);
    if (e == g) return true;
    return is_finite(e) && is_finite(g) && std::abs(g - e) <= tolerance.atol + tolerance.rtol * std::abs(e);
  }
}

template <class T>
std::string text_of(Stored<T> value) {
  if constexpr (kIsPacked<T>) {
    return fmt::format("{:#04x}", value.bits);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0 ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else if constexpr (kIsComplex<T>) {
    const ComputeType<T> z = value;
    return fmt::format("{}{:+}j", z.real(), z.imag());
  } else {
    return fmt::format("{}", static_cast<ComputeType<T>>(value));
  }
}

// The position "[0, 3]" of an element, from its row-major index.
std::string place_of(IntSpan sizes, uint64_t number) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(number % static_cast<uint64_t>(sizes[d]));
    number /= static_cast<uint64_t>(sizes[d]);
  }
  return to_string(IntSpan(index));
}

template <class T>
const Stored<T>* elements(const Tensor& tensor) {
  return static_cast<const Stored<T>*>(tensor.data());
}

template <class T>
std::optional<GoldenMismatch> by_tolerance(const Tensor& expected, const Tensor& got,
                                           const GoldenTolerance& tolerance) {
  GoldenMismatch mismatch;
  const auto *e = elements<T>(expected), *g = elements<T>(got);
  walk_elements(expected.sizes(), expected.strides(), got.strides(), [&](int64_t a, int64_t b) {
    const uint64_t number = mismatch.compared++;
    if (close<T>(e[a], g[b], tolerance) || mismatch.wrong++ > 0) return;
    mismatch.at = place_of(expected.sizes(), number);
    mismatch.expected = text_of<T>(e[a]);
    mismatch.got = text_of<T>(g[b]);
  });
  if (mismatch.wrong == 0) return std::nullopt;
  mismatch.problem = fmt::format("element {} is {}, expected {} ({} of {} differ)", mismatch.at, mismatch.got,
                                 mismatch.expected, mismatch.wrong, mismatch.compared);
  return mismatch;
}

template <class T>
std::optional<GoldenMismatch> by_argmax(const Tensor& expected, const Tensor& got) {
  GoldenMismatch mismatch;
  const auto *e = elements<T>(expected), *g = elements<T>(got);
  const auto last = static_cast<size_t>(expected.dim() - 1);
  const int64_t size = expected.sizes()[last], step_e = expected.strides()[last], step_g = got.strides()[last];
  const IntSpan rows = expected.sizes().first(last);
  walk_elements(rows, expected.strides().first(last), got.strides().first(last), [&](int64_t a, int64_t b) {
    const uint64_t number = mismatch.compared++;
    const int64_t wanted = argmax<T>(e + a, size, step_e), found = argmax<T>(g + b, size, step_g);
    // If several elements are the largest, each of them is accepted.
    if (!is_less<T>(e[a + found * step_e], e[a + wanted * step_e]) || mismatch.wrong++ > 0) return;
    mismatch.at = place_of(rows, number);
    mismatch.expected = std::to_string(wanted);
    mismatch.got = std::to_string(found);
  });
  if (mismatch.wrong == 0) return std::nullopt;
  mismatch.problem = fmt::format("the largest element of row {} is at {}, expected at {} ({} of {} rows differ)",
                                 mismatch.at, mismatch.got, mismatch.expected, mismatch.wrong, mismatch.compared);
  return mismatch;
}

}  // namespace

std::optional<GoldenMismatch> compare_golden(const Tensor& expected, const Tensor& got,
                                             const GoldenTolerance& tolerance) {
  const auto other = [](std::string what, std::string came, std::string wanted) {
    return GoldenMismatch{fmt::format("its {} is {}, expected {}", what, came, wanted), "", came, wanted, 0, 0};
  };
  if (!got.defined()) return GoldenMismatch{"the model returned None", "", "", "", 0, 0};
  if (got.dtype() != expected.dtype())
    return other("dtype", std::string(dtype_name(got.dtype())), std::string(dtype_name(expected.dtype())));
  const IntSpan sizes = got.sizes(), wanted = expected.sizes();
  if (!std::equal(sizes.begin(), sizes.end(), wanted.begin(), wanted.end()))
    return other("shape", to_string(sizes), to_string(wanted));
  if (got.layout() != Layout::kStrided || !got.is_cpu()) return other("layout", describe(got), describe(expected));
  return with_cpp_type(expected.dtype(), [&]<class T>() {
    if constexpr (kHasOrder<T>) {
      if (tolerance.argmax && expected.dim() > 0 && expected.sizes().back() > 1) return by_argmax<T>(expected, got);
    }
    return by_tolerance<T>(expected, got, tolerance);
  });
}

}  // namespace sconce::server::weights
