#include <array>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/indexing/scatter_check.h"
#include "src/cpu/indexing/scatter_loop.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elements/multiply.h"
#include "src/tensor/fill.h"

namespace sconce::cpu {
namespace {

enum class Reduction { kSum, kProduct, kMean, kMax, kMin };

Reduction reduction_of(std::string_view name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "prod") return Reduction::kProduct;
  if (name == "mean") return Reduction::kMean;
  if (name == "amax") return Reduction::kMax;
  if (name == "amin") return Reduction::kMin;
  SCONCE_FAIL(kInvalidArgument, "reduce argument must be either sum, prod, mean, amax or amin, got ", name);
}

template <class T>
bool is_nan([[maybe_unused]] T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Signed overflow wraps. To is the accumulator: float for half and bfloat16, else the element type.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, std::make_unsigned<T>,
                                             std::type_identity<T>>::type;

// kUnsigned: integers are computed as unsigned ones anyway, so those of one size share their loops.
struct Sum {
  static constexpr bool kUnsigned = true;
  template <class To, class From>
  static void apply(To& to, const From& from) noexcept {
    if constexpr (std::is_same_v<To, bool>)
      to = to || from;
    else
      to = static_cast<To>(Wrapping<To>(to) + Wrapping<To>(To(from)));
  }
};
struct Product {
  static constexpr bool kUnsigned = true;
  template <class To, class From>
  static void apply(To& to, const From& from) noexcept {
    if constexpr (std::is_same_v<To, bool>)
      to = to && from;
    else if constexpr (sizeof(To) == 2 && std::is_integral_v<To>)  // uint16 * uint16 is an int, which could overflow
      to = static_cast<To>(uint32_t{Wrapping<To>(to)} * Wrapping<To>(from));
    else
      to = static_cast<To>(multiply(Wrapping<To>(to), Wrapping<To>(To(from))));
  }
};
// A NaN on either side stays.
struct Max {
  static constexpr bool kUnsigned = false;
  template <class To, class From>
  static void apply(To& to, const From& from) noexcept {
    const To value(from);
    to = is_nan(value) || to < value ? value : to;
  }
};
struct Min {
  static constexpr bool kUnsigned = false;
  template <class To, class From>
  static void apply(To& to, const From& from) noexcept {
    const To value(from);
    to = is_nan(value) || value < to ? value : to;
  }
};
struct Count {
  static constexpr bool kUnsigned = true;
  template <class To, class From>
  static void apply(To& to, const From&) noexcept {
    Sum::apply(to, To(1));
  }
};

template <class T>
struct Limits {
  using L = std::numeric_limits<T>;
  static constexpr T kLowest = L::has_infinity ? -L::infinity() : L::lowest();
  static constexpr T kHighest = L::has_infinity ? L::infinity() : L::max();
};

template <class T, class Op>
using Element =
    typename std::conditional_t<Op::kUnsigned, std::type_identity<Wrapping<T>>, std::type_identity<T>>::type;

// Source elements of type From scattered into accumulators of type To.
template <class To, class From, class Op>
void reduce_elements(const Tensor& to, int64_t dim, const Tensor& index, const Tensor& src) {
  static constexpr int64_t kOne = 1;
  const ScatterPlan plan(to, index, src.dim() == 0 ? IntSpan{&kOne, 1} : src.strides(), sizeof(From), dim);
  check_scatter_bounds(scatter_loop<To, From, Op>(plan, to.data(), index.data_as<int64_t>(), src.data()), dim,
                       plan.size);
}

template <class To, class From, class Op>
void reduce(const Tensor& to, int64_t dim, const Tensor& index, const Tensor& src) {
  reduce_elements<Element<To, Op>, Element<From, Op>, Op>(to, dim, index, src);
}

struct Store {
  template <class To>
  static void apply(To& to, const To& from) noexcept {
    to = from;
  }
};
template <class To>
void reset(const Tensor& to, int64_t dim, const Tensor& index, To start) {
  const std::array<int64_t, Tensor::kMaxRank> zeros{};
  const ScatterPlan plan(to, index, {zeros.data(), static_cast<size_t>(std::max<int64_t>(index.dim(), 1))}, sizeof(To),
                         dim);
  check_scatter_bounds(scatter_loop<To, To, Store>(plan, to.data(), index.data_as<int64_t>(), &start), dim, plan.size);
}

// The accumulator's dtype: half types are summed in float and rounded once.
template <class T>
using Accumulator = ComputeType<T>;

template <class T, class Op, class Start>
void reduce_into(Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, bool include_self, Start start) {
  using To = Accumulator<T>;
  Tensor buffer = kDType<To> == out.dtype() ? out : to_dtype(out, kDType<To>);
  if (!include_self) reset<Wrapping<To>>(buffer, dim, index, Wrapping<To>(To(start)));
  reduce<To, T, Op>(buffer, dim, index, src);
  if (kDType<To> != out.dtype()) copy(buffer, out);
}

template <class T>
T divide(T sum, T count) {
  if constexpr (std::is_integral_v<T>) {
    const int64_t a = sum, b = count;
    const int64_t quotient = a / b;
    return static_cast<T>(quotient - (a % b != 0 && (a < 0) != (b < 0)));
  } else if constexpr (kIsSmallFloat<T>) {
    return T(static_cast<float>(sum) / static_cast<float>(count));
  } else if constexpr (kIsComplex<T>) {
    // c10::complex's division by a real number: an infinite part spoils the other one.
    const auto ratio = count.imag() / count.real(), scale = 1 / (count.real() + count.imag() * ratio);
    return T((sum.real() + sum.imag() * ratio) * scale, (sum.imag() - sum.real() * ratio) * scale);
  } else {
    return sum / count;
  }
}

// A row of sums and one of their counts, which may be a single one.
template <class T>
void divide_row(char* const* p, const int64_t* stride, int64_t n) noexcept {
  auto* sums = reinterpret_cast<T*>(p[0]);
  const T* by = reinterpret_cast<const T*>(p[1]);
  if (stride[0] == sizeof(T) && stride[1] == 0) {
    const T one = *by == T(0) ? T(1) : *by;
    for (int64_t i = 0; i < n; ++i) sums[i] = divide(sums[i], one);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T& sum = *reinterpret_cast<T*>(p[0] + i * stride[0]);
    const T own = *reinterpret_cast<const T*>(p[1] + i * stride[1]);
    sum = divide(sum, own == T(0) ? T(1) : own);
  }
}

using CountElements = void (*)(const Tensor& to, int64_t dim, const Tensor& index, const Tensor& src);
using DivideRow = void (*)(char* const* p, const int64_t* stride, int64_t n) noexcept;

void divide_by_count(const Tensor& out, int64_t dim, const Tensor& index, const Tensor& src, bool include_self,
                     DType accumulator, CountElements count_elements, DivideRow divide_row) {
  // Along dimensions over which the index is expanded, all counts are equal.
  Shape counts(out.sizes()), indices(index.sizes());
  for (int64_t d = 0; d < out.dim(); ++d)
    if (d != dim && index.stride(d) == 0 && index.size(d) == out.size(d))
      counts[static_cast<int>(d)] = indices[static_cast<int>(d)] = 1;
  // Counted in out's dtype, as ATen counts: small types wrap or saturate.
  Tensor count = Tensor::empty(counts, accumulator);
  fill(count, int64_t{include_self});
  count_elements(count, dim, index.as_strided(indices, index.strides(), index.storage_offset()), src);
  count = to_dtype(count, out.dtype());
  const Shape strides = broadcast_strides("scatter_reduce", count, out.sizes());
  const StridedLoop<2> loop(out.sizes(), {out.strides(), strides}, {out.itemsize(), out.itemsize()});
  parallel_for(0, loop.numel, 32768, [&](int64_t begin, int64_t end) noexcept {
    loop.run({static_cast<char*>(out.data()), static_cast<char*>(count.data())}, begin, end, divide_row);
  });
}

}  // namespace

// reduce: sum, prod, mean, amax, amin. include_self: whether self's own value takes part where something is scattered.
// half and bfloat16 are accumulated in float.
void scatter_reduce_two_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                            std::string_view reduce_name, bool include_self) {
  const Reduction reduction = reduction_of(reduce_name);
  dim = check_scatter("scatter_reduce", out, self, dim, index, &src);
  if (&self != &out) copy(self, out);
  if (index.numel() == 0) return;
  const Tensor index64 = to_dtype(index, DType::kInt64);
  switch (reduction) {
    case Reduction::kSum:
      return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool,
                                   DType::kComplex64, DType::kComplex128, DType::kUInt16, DType::kUInt32,
                                   DType::kUInt64>(out.dtype(), "scatter_reduce sum", [&]<class T>() {
        reduce_into<T, Sum>(out, dim, index64, src, include_self, 0);
      });
    case Reduction::kProduct:
      return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool,
                                   DType::kComplex64, DType::kComplex128, DType::kUInt16, DType::kUInt32,
                                   DType::kUInt64>(out.dtype(), "scatter_reduce prod", [&]<class T>() {
        reduce_into<T, Product>(out, dim, index64, src, include_self, 1);
      });
    case Reduction::kMax:
      return dispatch_real_bool(out.dtype(), "scatter_reduce amax", [&]<class T>() {
        reduce_into<T, Max>(out, dim, index64, src, include_self, Limits<Accumulator<T>>::kLowest);
      });
    case Reduction::kMin:
      return dispatch_real_bool(out.dtype(), "scatter_reduce amin", [&]<class T>() {
        reduce_into<T, Min>(out, dim, index64, src, include_self, Limits<Accumulator<T>>::kHighest);
      });
    case Reduction::kMean:
      return detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                                   DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kComplex64,
                                   DType::kComplex128>(out.dtype(), "scatter_reduce mean", [&]<class T>() {
        reduce_into<T, Sum>(out, dim, index64, src, include_self, 0);
        divide_by_count(out, dim, index64, src, include_self, kDType<Accumulator<T>>, reduce<Accumulator<T>, T, Count>,
                        divide_row<T>);
      });
  }
}

}  // namespace sconce::cpu
