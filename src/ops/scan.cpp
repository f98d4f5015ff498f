#include "src/ops/scan.h"

#include "sconce/check.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/multiply.h"
#include "src/ops/scan_loop.h"

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
  static void step(State& state, T value, int64_t, char* out) {
    state += static_cast<State>(value);
    *reinterpret_cast<T*>(out) = narrow_to<T>(state);
  }
};
template <class T>
struct Product {
  using Out = T;
  using State = typename AccumulatorOf<T>::Type;
  static State start() { return State(1); }
  static void step(State& state, T value, int64_t, char* out) {
    state = multiply(state, static_cast<State>(value));
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
    scan_loop<T>(plan, out.data(), source.data(), Op<T>());
  });
  return out;
}

template <class T>
bool is_nan(T value) {
  if constexpr (kIsSmallFloat<T> || std::is_floating_point_v<T>) return value != value;
  return false;
}

// Values go to `out`, positions to a tensor of the same layout.
template <class T, bool Max>
struct Extreme {
  using Out = T;
  struct State {
    T value;
    int64_t at;
  };
  char* values;
  int64_t* positions;
  static State start() { return {T(), -1}; }
  void step(State& state, T value, int64_t i, char* out) const {
    const bool better = Max ? value >= state.value : value <= state.value;
    if (state.at < 0 || is_nan(value) || (!is_nan(state.value) && better)) state = {value, i};
    *reinterpret_cast<T*>(out) = state.value;
    positions[(out - values) / static_cast<int64_t>(sizeof(T))] = state.at;
  }
};

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
    scan_loop<T>(plan, out[0].data(), self.data(),
                 Extreme<T, Max>{static_cast<char*>(out[0].data()), out[1].data_as<int64_t>()});
  });
  return out;
}

}  // namespace

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate<Sum>("cumsum", self, dim, dtype);
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate<Product>("cumprod", self, dim, dtype);
}
std::array<Tensor, 2> cummax(const Tensor& self, int64_t dim) { return cumulative_extreme<true>("cummax", self, dim); }
std::array<Tensor, 2> cummin(const Tensor& self, int64_t dim) { return cumulative_extreme<false>("cummin", self, dim); }

}  // namespace sconce::cpu
