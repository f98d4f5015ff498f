#include "src/cpu/random/ranges.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/cpu/movement/movement.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {
namespace {

Tensor stepped(const char* name, Scalar start, Scalar end, Scalar step, OptType dtype, bool with_end) {
  const bool whole = start.is_integral() && end.is_integral() && step.is_integral();
  // Steps of an integer dtype are whole numbers, whatever the caller passed.
  const bool as_integers = whole || (dtype && is_integral(*dtype, true));
  const double first = start.to_double(), last = end.to_double();
  const double by = as_integers && !whole ? std::trunc(step.to_double()) : step.to_double();
  SCONCE_CHECK(by != 0, kInvalidArgument, name, ": step must be nonzero");
  SCONCE_CHECK(std::isfinite(first) && std::isfinite(last), kInvalidArgument, name, ": unsupported range: ", first,
               " -> ", last);
  SCONCE_CHECK(by > 0 ? last >= first : last <= first, kInvalidArgument, name,
               ": upper bound and lower bound inconsistent with step sign");
  double count = (last - first) / step.to_double();
  if (!with_end) {
    count = std::ceil(count);
  } else if (dtype && (*dtype == DType::kFloat16 || *dtype == DType::kBFloat16)) {
    // at::range counts in the dtype that half types are summed in.
    count =
        std::floor((static_cast<float>(last) - static_cast<float>(first)) / static_cast<float>(step.to_double()) + 1);
  } else {
    count = std::floor(count + 1);
  }
  if (whole && !with_end) {  // exactly
    const __int128 distance = static_cast<__int128>(end.to_int()) - start.to_int(), width = step.to_int();
    count = static_cast<double>((distance + width + (width > 0 ? -1 : 1)) / width);
  }
  SCONCE_CHECK(count >= 0 && count <= 0x1p62, kInvalidArgument, name, ": invalid size, possible overflow?");
  const auto size = static_cast<int64_t>(count);
  Tensor out = Tensor::empty(IntSpan(&size, 1), dtype.value_or(whole ? DType::kInt64 : kDefaultDType));
  dispatch_real(out.dtype(), name, [&]<class T>() -> void {
    T* const to = out.data_as<T>();
    if constexpr (std::is_integral_v<T>) {
      const auto integer = [](const Scalar& x) {
        return static_cast<uint64_t>(x.is_integral() ? x.to_int() : static_cast<int64_t>(x.to_double()));
      };
      const uint64_t from = integer(start), width = integer(step);
      for (int64_t i = 0; i < size; ++i) to[i] = static_cast<T>(from + static_cast<uint64_t>(i) * width);
    } else {
      for (int64_t i = 0; i < size; ++i) to[i] = convert_value<T>(first + static_cast<double>(i) * step.to_double());
    }
  });
  return out;
}

// f(position) of `steps` evenly spaced positions, from both ends towards the middle.
template <class Place>
Tensor spaced(const char* name, Scalar start, Scalar end, int64_t steps, OptType dtype, const Place& place) {
  SCONCE_CHECK(steps >= 0, kInvalidArgument, name, ": number of steps must be non-negative");
  const bool complex = start.is_complex() || end.is_complex();
  SCONCE_CHECK(!complex || !dtype || is_complex(*dtype), kInvalidArgument, name,
               ": inferred dtype complex64 can't be safely cast to passed dtype ", dtype ? dtype_name(*dtype) : "");
  Tensor out = Tensor::empty(IntSpan(&steps, 1), dtype.value_or(complex ? DType::kComplex64 : kDefaultDType));
  detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                        DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8, DType::kComplex64,
                        DType::kComplex128>(out.dtype(), name, [&]<class T>() -> void {
    T* const to = out.data_as<T>();
    const auto fill_in = [&](auto first, auto last) {
      using Wide = decltype(first);
      // The dtype's own step, of integers a float one.
      Wide step = steps > 1 ? (last - first) / static_cast<Wide>(static_cast<double>(steps - 1)) : Wide(0);
      if constexpr (!std::is_integral_v<T>) step = static_cast<Wide>(convert_value<T>(step));
      for (int64_t i = 0; i < steps; ++i) {
        const auto at = [&](int64_t k) { return step * static_cast<Wide>(static_cast<double>(k)); };
        to[i] = convert_value<T>(place(i < steps / 2 || steps == 1 ? first + at(i) : last - at(steps - 1 - i)));
      }
    };
    if constexpr (kIsComplex<T>)
      fill_in(ComplexDouble(start.to_complex()), ComplexDouble(end.to_complex()));
    else
      // Both ends are converted to the dtype before the step is computed.
      fill_in(std::is_integral_v<T> ? std::trunc(start.to_double()) : start.to_double(),
              std::is_integral_v<T> ? std::trunc(end.to_double()) : end.to_double());
  });
  return out;
}

// Rows and columns of the elements of each row from first(row) to last(row), excluded.
template <class First, class Last>
Tensor positions(const char* name, int64_t row, int64_t col, OptType dtype, const First& first, const Last& last) {
  SCONCE_CHECK(row >= 0 && col >= 0, kInvalidArgument, name, ": row and col must be non-negative, got ", row, " and ",
               col);
  const auto begin = [&](int64_t r) { return std::clamp<int64_t>(first(r), 0, col); };
  const auto stop = [&](int64_t r) { return std::clamp<int64_t>(last(r), 0, col); };
  int64_t count = 0;
  for (int64_t r = 0; r < row; ++r) count += std::max<int64_t>(stop(r) - begin(r), 0);
  const int64_t sizes[] = {2, count};
  Tensor out = Tensor::empty(sizes, dtype.value_or(DType::kInt64));
  dispatch_integral(out.dtype(), name, [&]<class T>() -> void {
    T *rows = out.data_as<T>(), *columns = rows + count;
    for (int64_t r = 0; r < row; ++r)
      for (int64_t c = begin(r), end = stop(r); c < end; ++c) {
        *rows++ = static_cast<T>(r);
        *columns++ = static_cast<T>(c);
      }
  });
  return out;
}

}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, OptType dtype, OptEnum layout, OptDevice device,
              OptEnum pin_memory) {
  check_factory("arange", layout, device, pin_memory);
  return stepped("arange", start, end, step, dtype, false);
}
Tensor range(Scalar start, Scalar end, Scalar step, OptType dtype, OptEnum layout, OptDevice device,
             OptEnum pin_memory) {
  check_factory("range", layout, device, pin_memory);
  return stepped("range", start, end, step, dtype.value_or(kDefaultDType), true);
}
Tensor linspace(Scalar start, Scalar end, int64_t steps, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  check_factory("linspace", layout, device, pin_memory);
  return spaced("linspace", start, end, steps, dtype, [](auto x) { return x; });
}
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory) {
  check_factory("logspace", layout, device, pin_memory);
  return spaced("logspace", start, end, steps, dtype, [base](auto x) { return std::pow(decltype(x)(base), x); });
}

Tensor eye(int64_t n, int64_t m, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  check_factory("eye", layout, device, pin_memory);
  SCONCE_CHECK(n >= 0 && m >= 0, kInvalidArgument, "eye: n and m must be greater or equal to 0, got ", n, " and ", m);
  const int64_t sizes[] = {n, m};
  Tensor out = Tensor::empty(sizes, dtype.value_or(kDefaultDType));
  zero(out);
  Tensor ones = diagonal(out, 0, 0, 1);
  fill(ones, int64_t{1});
  return out;
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory) {
  check_factory("tril_indices", layout, device, pin_memory);
  return positions(
      "tril_indices", row, col, dtype, [](int64_t) { return int64_t{0}; }, [=](int64_t r) { return r + offset + 1; });
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory) {
  check_factory("triu_indices", layout, device, pin_memory);
  return positions(
      "triu_indices", row, col, dtype, [=](int64_t r) { return r + offset; }, [=](int64_t) { return col; });
}

}  // namespace sconce::cpu
