#include <algorithm>
#include <cmath>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/random/random.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rules/random.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

constexpr int64_t kChunk = 512;

Generator& chosen(Generator* generator) { return generator ? *generator : default_generator(); }

// Calls make(T* values, count) for all elements in stream order.
template <class T, class Make>
void walk_in_order(Tensor& out, const Make& make) {
  if (out.is_dense()) return make(out.data_as<T>(), out.numel());
  const StridedLoop<1> loop(out.sizes(), {out.strides()}, {sizeof(T)});
  loop.run({static_cast<char*>(out.data())}, [&](char* const* pointers, const int64_t* strides, int64_t count) {
    if (strides[0] == sizeof(T)) return make(reinterpret_cast<T*>(pointers[0]), count);
    T values[kChunk];
    char* to = pointers[0];
    while (count) {
      const int64_t n = std::min(count, kChunk);
      make(values, n);
      for (int64_t i = 0; i < n; ++i, to += strides[0]) *reinterpret_cast<T*>(to) = values[i];
      count -= n;
    }
  });
}

// values[i] = convert(random()). Out of line, as from_pairs is: the ways through fill_in_order share one.
template <class T, class Convert>
[[gnu::noinline]] void from_words(Generator& generator, T* values, int64_t count, Convert convert) {
  alignas(64) uint32_t words[kChunk];
  while (count) {
    const int64_t n = std::min(count, kChunk);
    generator.draw(words, static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[i] = convert(words[i]);
    values += n;
    count -= n;
  }
}
// values[i] = convert(random64()).
template <class T, class Convert>
[[gnu::noinline]] void from_pairs(Generator& generator, T* values, int64_t count, Convert convert) {
  alignas(64) uint32_t words[2 * kChunk];
  while (count) {
    const int64_t n = std::min(count, kChunk);
    generator.draw(words, 2 * static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) values[i] = convert(uint64_t{words[2 * i]} << 32 | words[2 * i + 1]);
    values += n;
    count -= n;
  }
}

// The mantissa's worth of a sample, in [0, 1).
float unit_float(uint32_t word) { return static_cast<float>(static_cast<int32_t>(word & 0xffffff)) * 0x1p-24f; }
constexpr uint64_t kDoubleMask = (uint64_t{1} << 53) - 1;
double unit_double(uint64_t pair) { return static_cast<double>(static_cast<int64_t>(pair & kDoubleMask)) * 0x1p-53; }

template <class T>
void unit_samples(Generator& generator, T* values, int64_t count) {
  if constexpr (std::is_same_v<T, double>)
    from_pairs(generator, values, count, unit_double);
  else
    from_words(generator, values, count, unit_float);
}

// Calls make(source, T* values, count) for all elements in stream order; nobody else draws meanwhile.
template <class T, class Make>
void fill_in_order(Tensor& out, Generator* generator, const Make& make) {
  Generator& source = chosen(generator);
  const MutexLock lock(source.mutex());
  walk_in_order<T>(out, [&](T* values, int64_t count) { make(source, values, count); });
}

template <class T>
void integers(Generator& generator, T* values, int64_t count, uint64_t range, int64_t base) {
  const auto place = [base](uint64_t remainder) {
    const auto integer = static_cast<int64_t>(remainder + static_cast<uint64_t>(base));
    if constexpr (kIsSmallFloat<T>)
      return T(static_cast<float>(integer));
    else
      return static_cast<T>(integer);
  };
  if (range >= uint64_t{1} << 28)
    return from_pairs(generator, values, count, [=](uint64_t pair) { return place(pair % range); });
  // word % range without a division: exact for 32-bit words.
  const uint64_t inverse = std::numeric_limits<uint64_t>::max() / range + 1;  // 0 where range is 1
  from_words(generator, values, count, [=](uint32_t word) {
    return place(static_cast<uint64_t>(static_cast<unsigned __int128>(inverse * word) * range >> 64));
  });
}

template <class T>
void normals_16(Generator& generator, T* values, int64_t count, double mean, double std) {
  using Compute = ComputeType<T>;
  const auto m = static_cast<Compute>(mean), s = static_cast<Compute>(std);
  const auto block = [&](T* to) {
    if constexpr (std::is_same_v<T, Compute>) {
      random_detail::box_muller_16(to, m, s);
    } else {
      Compute u[16];
      unit_samples(generator, u, 16);
      random_detail::box_muller_16(u, m, s);
      for (int i = 0; i < 16; ++i) to[i] = T(u[i]);
    }
  };
  // All full blocks are drawn before the first is transformed. A rest is covered by drawing the last 16 values anew.
  if constexpr (std::is_same_v<T, Compute>) unit_samples(generator, values, count);
  for (int64_t i = 0; i + 16 <= count; i += 16) block(values + i);
  if (count % 16) {
    if constexpr (std::is_same_v<T, Compute>) unit_samples(generator, values + count - 16, 16);
    block(values + count - 16);
  }
}

}  // namespace

void fill_uniform(Tensor& out, double from, double to, Generator* generator) {
  if (is_complex(out.dtype())) {
    if (out.numel() == 0) return;
    Tensor parts = cpu::view_as_real(out);
    return fill_uniform(parts, from, to, generator);
  }
  dispatch_floating(out.dtype(), "uniform", [&]<class T>() -> void {
    constexpr double kMax = kMaxOf<T>;
    SCONCE_CHECK(from >= -kMax && from <= kMax, kInvalidArgument, "uniform: from ", from, " is out of bounds for ",
                 dtype_name(out.dtype()));
    SCONCE_CHECK(to >= -kMax && to <= kMax, kInvalidArgument, "uniform: to ", to, " is out of bounds for ",
                 dtype_name(out.dtype()));
    SCONCE_CHECK(from <= to, kInvalidArgument, "uniform: from ", from, " is greater than to ", to);
    SCONCE_CHECK(to - from <= kMax, kInvalidArgument, "uniform: to - from exceeds the range of ",
                 dtype_name(out.dtype()));
    if (out.numel() == 0) return;
    check_no_internal_overlap("uniform", out);
    using Compute = ComputeType<T>;
    const auto low = static_cast<Compute>(from);
    const Compute width = static_cast<Compute>(to) - low;
    const T first = T(low), last = T(static_cast<Compute>(to));
    // Rounding may reach the upper bound.
    const auto place = [=](Compute unit) {
      const T value = T(std::fma(unit, width, low));
      return value == last ? first : value;
    };
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      if constexpr (std::is_same_v<T, double>)
        from_pairs(source, values, count, [=](uint64_t pair) { return place(unit_double(pair)); });
      else
        from_words(source, values, count, [=](uint32_t word) { return place(unit_float(word)); });
    });
  });
}

void fill_normal(Tensor& out, double mean, double std, Generator* generator) {
  SCONCE_CHECK(std >= 0.0, kInvalidArgument, "normal: std ", std, " is negative");
  if (out.numel() == 0) return;
  if (is_complex(out.dtype())) {
    // The variance is shared by the two parts.
    Tensor parts = cpu::view_as_real(out);
    return fill_normal(parts, mean, std / std::sqrt(2.0), generator);
  }
  dispatch_floating(out.dtype(), "normal", [&]<class T>() -> void {
    check_no_internal_overlap("normal", out);
    const bool whole = out.numel() >= 16 && out.is_contiguous();
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      if (whole) return normals_16(source, values, count, mean, std);
      for (int64_t i = 0; i < count; ++i)
        values[i] = T(static_cast<ComputeType<T>>(std::fma(source.normal(), std, mean)));
    });
  });
}

void fill_exponential(Tensor& out, double lambda, Generator* generator) {
  SCONCE_CHECK(lambda > 0.0, kInvalidArgument, "exponential: lambda ", lambda, " is not positive");
  if (out.numel() == 0) return;
  SCONCE_CHECK(is_floating(out.dtype()), kInvalidArgument, "exponential: dtype ", dtype_name(out.dtype()),
               " is not a floating point type");
  dispatch_floating(out.dtype(), "exponential", [&]<class T>() -> void {
    check_no_internal_overlap("exponential", out);
    const double scale = -1.0 / lambda;
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      from_pairs(source, values, count,
                 [=](uint64_t pair) { return T(static_cast<ComputeType<T>>(scale * std::log1p(-unit_double(pair)))); });
    });
  });
}

namespace {

// make(random numbers) -> double, element by element.
template <class Make>
void fill_drawn(const char* name, Tensor& out, Generator* generator, const Make& make) {
  if (out.numel() == 0) return;
  check_no_internal_overlap(name, out);
  const auto fill = [&]<class T>() -> void {
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      for (int64_t i = 0; i < count; ++i) values[i] = T(static_cast<ComputeType<T>>(make(source)));
    });
  };
  if (is_floating(out.dtype()))
    dispatch_floating(out.dtype(), name, fill);
  else
    dispatch_integral(out.dtype(), name, fill);
}
void check_floating(const char* name, const Tensor& out) {
  SCONCE_CHECK(is_floating(out.dtype()), kInvalidArgument, name,
               " distribution is a continuous probability distribution. dtype must be a floating point but you "
               "specified ",
               dtype_name(out.dtype()));
}

}  // namespace

void fill_cauchy(Tensor& out, double median, double sigma, Generator* generator) {
  SCONCE_CHECK(sigma > 0.0, kInvalidArgument, "cauchy_ expects sigma > 0.0, but found sigma=", sigma);
  check_floating("Cauchy", out);
  fill_drawn("cauchy", out, generator, [=](Generator& source) {
    return median + sigma * std::tan(M_PI * (unit_double(source.random64()) - 0.5));
  });
}
void fill_log_normal(Tensor& out, double mean, double std, Generator* generator) {
  SCONCE_CHECK(std > 0.0, kInvalidArgument, "log_normal_ expects std > 0.0, but found std=", std);
  check_floating("log_normal", out);
  fill_drawn("log_normal", out, generator, [=](Generator& source) { return std::exp(source.normal() * std + mean); });
}
void fill_geometric(Tensor& out, double p, Generator* generator) {
  SCONCE_CHECK(0 < p && p < 1, kInvalidArgument, "geometric_ expects p to be in (0, 1), but got p=", p);
  fill_drawn("geometric", out, generator,
             [=](Generator& source) { return std::ceil(std::log(unit_double(source.random64())) / std::log(1 - p)); });
}

void fill_bernoulli(Tensor& out, double p, Generator* generator) {
  SCONCE_CHECK(0.0 <= p && p <= 1.0, kInvalidArgument, "bernoulli: p ", p, " is not in [0, 1]");
  if (out.numel() == 0) return;
  check_no_internal_overlap("bernoulli", out);
  dispatch_real_bool(out.dtype(), "bernoulli", [&]<class T>() -> void {
    // sample * 2^-53 < p, in integers.
    const auto bound = static_cast<uint64_t>(std::ceil(p * 0x1p53));
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      from_pairs(source, values, count,
                 [=](uint64_t pair) { return T(static_cast<ComputeType<T>>((pair & kDoubleMask) < bound)); });
    });
  });
}

void fill_bernoulli(Tensor& out, const Tensor& p, Generator* generator) {
  if (out.numel() == 0) return;
  check_no_internal_overlap("bernoulli", out);
  const Shape p_strides = broadcast_strides("bernoulli", p, out.sizes());
  const StridedLoop<2> loop(out.sizes(), {out.strides(), IntSpan(p_strides)}, {out.itemsize(), p.itemsize()});
  dispatch_real_bool(out.dtype(), "bernoulli", [&]<class T>() -> void {
    dispatch_floating(p.dtype(), "bernoulli", [&]<class P>() -> void {
      Generator& source = chosen(generator);
      const MutexLock lock(source.mutex());
      loop.run({static_cast<char*>(out.data()), static_cast<char*>(p.data())},
               [&](char* const* pointers, const int64_t* strides, int64_t count) {
                 char *to = pointers[0], *from = pointers[1];
                 for (; count; --count, to += strides[0], from += strides[1]) {
                   const ComputeType<P> probability = *reinterpret_cast<const P*>(from);
                   SCONCE_CHECK(probability >= 0 && probability <= 1, kInvalidArgument, "bernoulli: p ", probability,
                                " is not in [0, 1]");
                   bool one;
                   if constexpr (std::is_same_v<P, double>)
                     one = unit_double(source.random64()) < probability;
                   else
                     one = unit_float(source.random()) < probability;
                   *reinterpret_cast<T*>(to) = T(static_cast<ComputeType<T>>(one));
                 }
               });
    });
  });
}

namespace {

// A range of 0 stands for all 64 bits.
void fill_from_range(Tensor& out, IntegerRange drawn, Generator* generator) {
  if (out.numel() == 0) return;
  check_no_internal_overlap("random", out);
  const auto fill = [&]<class T>() -> void {
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      if (drawn.range)
        integers(source, values, count, drawn.range, drawn.base);
      else
        from_pairs(source, values, count,
                   [](uint64_t pair) { return T(static_cast<ComputeType<T>>(static_cast<int64_t>(pair))); });
    });
  };
  if (is_floating(out.dtype()))
    dispatch_floating(out.dtype(), "random", fill);
  else if (out.dtype() == DType::kBool)
    fill.template operator()<bool>();
  else
    dispatch_integral_wide(out.dtype(), "random", fill);
}

}  // namespace

void fill_random_integers(Tensor& out, int64_t from, int64_t to, Generator* generator) {
  fill_from_range(out, integer_range(out.dtype(), from, to), generator);
}

void fill_random_integers_from(Tensor& out, int64_t from, Generator* generator) {
  if (from == std::numeric_limits<int64_t>::min()) {
    SCONCE_CHECK(out.dtype() == DType::kInt64 || out.dtype() == DType::kFloat64 || out.dtype() == DType::kFloat32 ||
                     out.dtype() == DType::kBFloat16,
                 kUnsupported, "random: all 64 bits cannot be drawn as ", dtype_name(out.dtype()));
    return fill_from_range(out, {0, 0}, generator);
  }
  fill_from_range(out, integer_range_from(out.dtype(), from), generator);
}

void fill_random_integers(Tensor& out, Generator* generator) {
  if (out.dtype() == DType::kBool) return fill_from_range(out, {2, 0}, generator);
  if (out.numel() == 0) return;
  check_no_internal_overlap("random", out);
  const uint64_t range = static_cast<uint64_t>(last_integer(out.dtype())) + 1;
  const auto fill = [&]<class T>() -> void {
    const auto place = [range](uint64_t bits) { return T(static_cast<ComputeType<T>>(bits % range)); };
    fill_in_order<T>(out, generator, [&](Generator& source, T* values, int64_t count) {
      if constexpr (sizeof(T) == 8)
        from_pairs(source, values, count, place);
      else
        from_words(source, values, count, place);
    });
  };
  if (is_floating(out.dtype()))
    dispatch_floating(out.dtype(), "random", fill);
  else
    dispatch_integral(out.dtype(), "random", fill);
}

}  // namespace sconce
