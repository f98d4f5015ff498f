// Scans along a dimension. Match aten::cumsum, cumprod, cummax, cummin, logcumsumexp (torch 2.15, CPU).
//
// Any strides; results are row-major. Elements are combined in sequence, in ATen's accumulator types (float in double,
// half and bfloat16 in float, integers in int64), so that results equal ATen's to the bit; but for the long single
// slices of cumsum in float, where the sums of four elements are formed first.
#include <limits>

#include "src/cpu/reduction/scan_loop.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elements/multiply.h"

namespace sconce::cpu {
namespace {

template <class T>
struct AccumulatorOf {
  using Type = std::conditional_t<
      std::is_same_v<T, float>, double,
      std::conditional_t<kIsSmallFloat<T>, float, std::conditional_t<std::is_integral_v<T>, uint64_t, T>>>;
};
template <>
struct AccumulatorOf<ComplexFloat> {
  using Type = ComplexDouble;
};

// Integers are summed unsigned: they wrap.
template <class T>
T narrow_to(typename AccumulatorOf<T>::Type value) {
  return static_cast<T>(value);
}

template <class T>
struct Sum {
  using Out = T;
  using State = typename AccumulatorOf<T>::Type;
  static State start() { return State(0); }
  static State combine(State a, State b) { return a + b; }
  static void step(State& state, T value, int64_t, char* out) {
    state = combine(state, static_cast<State>(value));
    *reinterpret_cast<T*>(out) = narrow_to<T>(state);
  }
};
template <class T>
struct Product {
  using Out = T;
  using State = typename AccumulatorOf<T>::Type;
  static State start() { return State(1); }
  static State combine(State a, State b) { return multiply(a, b); }
  static void step(State& state, T value, int64_t, char* out) {
    state = combine(state, static_cast<State>(value));
    *reinterpret_cast<T*>(out) = narrow_to<T>(state);
  }
};

// One slice of packed floats: four elements are summed among themselves while the previous sums are on their way.
void cumsum_packed(const float* in, float* out, int64_t n) noexcept {
  double sum = 0;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const double a = in[i], ab = a + in[i + 1], c = in[i + 2], cd = c + in[i + 3];
    out[i] = static_cast<float>(sum + a);
    out[i + 1] = static_cast<float>(sum + ab);
    const double abc = ab + c, abcd = ab + cd;
    out[i + 2] = static_cast<float>(sum + abc);
    sum += abcd;
    out[i + 3] = static_cast<float>(sum);
  }
  for (; i < n; ++i) {
    sum += in[i];
    out[i] = static_cast<float>(sum);
  }
}

// Packed slices of half or bfloat16, one after the other: four at a time, widened and rounded by vectors.
template <class T, class Op>
void scan_small_floats(const T* in, T* out, int64_t slices, int64_t n) {
  constexpr int64_t kAtOnce = 4, kBlock = 256;
  const auto widen = [](const T* from, float* to, int64_t count) {
    if constexpr (std::is_same_v<T, Half>)
      half_to_float(from, to, count);
    else
      bfloat16_to_float(from, to, count);
  };
  const auto round = [](const float* from, T* to, int64_t count) {
    if constexpr (std::is_same_v<T, Half>)
      half_from_float(from, to, count);
    else
      bfloat16_from_float(from, to, count);
  };
  parallel_for(0, slices, std::max<int64_t>((16 << 10) / n, 1), [&](int64_t begin, int64_t end) noexcept {
    float block[kAtOnce][kBlock] = {};
    for (int64_t s = begin; s < end; s += kAtOnce) {
      const int64_t m = std::min(kAtOnce, end - s);
      float state[kAtOnce];
      std::fill_n(state, kAtOnce, Op::start());
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t count = std::min(kBlock, n - i);
        for (int64_t j = 0; j < m; ++j) widen(in + (s + j) * n + i, block[j], count);
        for (int64_t k = 0; k < count; ++k)
          for (int64_t j = 0; j < kAtOnce; ++j) block[j][k] = state[j] = Op::combine(state[j], block[j][k]);
        for (int64_t j = 0; j < m; ++j) round(block[j], out + (s + j) * n + i, count);
      }
    }
  });
}

template <template <class> class Op>
Tensor cumulate(const char* name, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim(name, dim, self.dim());
  const DType to = dtype ? *dtype : is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype();
  Tensor out = Tensor::empty(self.sizes(), to);
  if (self.dim() == 0) {
    copy(self, out);
    return out;
  }
  const Tensor source = to_dtype(self, to);
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kComplex64,
                        DType::kComplex128>(to, name, [&]<class T>() {
    if (out.numel() == 0) return;
    const ScanPlan plan(out, source, dim);
    if constexpr (std::is_same_v<Op<T>, Sum<float>>)
      if (plan.others.numel == 1 && plan.out_step == sizeof(T) && plan.self_step == sizeof(T))
        return cumsum_packed(source.data_as<float>(), out.data_as<float>(), plan.count);
    if constexpr (kIsSmallFloat<T>)
      if (plan.out_step == sizeof(T) && plan.self_step == sizeof(T) && source.is_contiguous())
        return scan_small_floats<T, Op<T>>(source.data_as<T>(), out.data_as<T>(), plan.others.numel, plan.count);
    scan_loop<T>(plan, out.data(), source.data(), Op<T>());
  });
  return out;
}

template <class T>
bool is_nan([[maybe_unused]] T value) {
  if constexpr (std::is_floating_point_v<T>) return value != value;
  return false;
}

// Values go to `out`, positions to a tensor of the same layout.
template <class T, bool Max>
struct Extreme {
  using Out = T;
  using Compute = ComputeType<T>;
  struct State {
    Compute value;
    T element;
    int64_t at;
  };
  char* values;
  int64_t* positions;
  // The first element is never beyond this.
  static State start() {
    using L = std::numeric_limits<Compute>;
    constexpr Compute kHighest = L::has_infinity ? L::infinity() : L::max();
    constexpr Compute kLowest = L::has_infinity ? -L::infinity() : L::lowest();
    return {Max ? kLowest : kHighest, T(), 0};
  }
  static bool replaces(const State& state, T element) {
    const auto value = static_cast<Compute>(element);
    const bool beyond = Max ? value >= state.value : value <= state.value;
    return is_nan(value) | (!is_nan(state.value) & beyond);
  }
  void step(State& state, T element, int64_t i, char* out) const {
    if (replaces(state, element)) state = {static_cast<Compute>(element), element, i};
    *reinterpret_cast<T*>(out) = state.element;
    positions[(out - values) / static_cast<int64_t>(sizeof(T))] = state.at;
  }
};

// Packed slices, one after the other. Most runs of elements change nothing: they are found out by vectors.
template <class T, bool Max>
void extreme_rows(const T* in, T* values, int64_t* positions, int64_t slices, int64_t n) {
  using Op = Extreme<T, Max>;
  constexpr int64_t kBlock = 32;
  parallel_for(0, slices, std::max<int64_t>((16 << 10) / n, 1), [&](int64_t begin, int64_t end) noexcept {
    for (int64_t s = begin; s < end; ++s) {
      const T* from = in + s * n;
      T* to = values + s * n;
      int64_t* at = positions + s * n;
      auto state = Op::start();
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t count = std::min(kBlock, n - i);
        int changes = count < kBlock;
        if (!changes)
          for (int64_t k = 0; k < kBlock; ++k) changes |= Op::replaces(state, from[i + k]);
        if (!changes) {
          fill_run(to + i, state.element, kBlock);
          fill_run(at + i, state.at, kBlock);
          continue;
        }
        for (int64_t k = i; k < i + count; ++k) {
          if (Op::replaces(state, from[k])) state = {static_cast<typename Op::Compute>(from[k]), from[k], k};
          to[k] = state.element;
          at[k] = state.at;
        }
      }
    }
  });
}

template <bool Max>
std::array<Tensor, 2> cumulative_extreme(const char* name, const Tensor& self, int64_t dim) {
  dim = wrap_dim(name, dim, self.dim());
  std::array<Tensor, 2> out{Tensor::empty(self.sizes(), self.dtype()), Tensor::empty(self.sizes(), DType::kInt64)};
  dispatch_real_bool(self.dtype(), name, [&]<class T>() {
    if (self.numel() == 0) return;
    if (self.dim() == 0) {
      copy(self, out[0]);
      *out[1].data_as<int64_t>() = 0;
      return;
    }
    const ScanPlan plan(out[0], self, dim);
    if (plan.out_step == sizeof(T) && self.is_contiguous())
      return extreme_rows<T, Max>(self.data_as<T>(), out[0].data_as<T>(), out[1].data_as<int64_t>(), plan.others.numel,
                                  plan.count);
    scan_loop<T>(plan, out[0].data(), self.data(),
                 Extreme<T, Max>{static_cast<char*>(out[0].data()), out[1].data_as<int64_t>()});
  });
  return out;
}

}  // namespace

// dtype: of the result; by default self's, int64 for integers and bool.
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate<Sum>("cumsum", self, dim, dtype);
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate<Product>("cumprod", self, dim, dtype);
}
// Values and int64 positions, of equal values the last one. A NaN stays.
std::array<Tensor, 2> cummax(const Tensor& self, int64_t dim) { return cumulative_extreme<true>("cummax", self, dim); }
std::array<Tensor, 2> cummin(const Tensor& self, int64_t dim) { return cumulative_extreme<false>("cummin", self, dim); }

}  // namespace sconce::cpu
