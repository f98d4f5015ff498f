#include "src/cpu/random/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/elementwise/arithmetic.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/elementwise.h"
#include "src/tensor/rules/random.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

// [0, 1) with the 53 bits that at::uniform_real_distribution<double> takes.
double uniform(Generator& generator) {
  return static_cast<double>(generator.random64() & ((1ull << 53) - 1)) * 0x1p-53;
}

Generator& or_default(Generator* generator) { return generator ? *generator : default_generator(); }

// Weighted draws with replacement: binary search in the normalised running sum of each row.
template <class T, class Sum>
void draw_with_replacement(const Tensor& weights, int64_t samples, Tensor& out, Generator& generator) {
  const int64_t n = weights.size(weights.dim() - 1), rows = weights.dim() == 1 ? 1 : weights.size(0);
  std::vector<Sum> running(static_cast<size_t>(n));
  const T* const in = weights.data_as<T>();
  int64_t* const to = out.data_as<int64_t>();
  const MutexLock lock(generator.mutex());
  for (int64_t row = 0; row < rows; ++row) {
    Sum sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Sum weight = static_cast<Sum>(in[row * n + i]);
      SCONCE_CHECK(weight >= 0, kInvalidArgument,
                   "multinomial: invalid multinomial distribution (encountering probability entry < 0)");
      SCONCE_CHECK(std::isfinite(weight), kInvalidArgument,
                   "multinomial: invalid multinomial distribution (encountering probability entry = infinity or NaN)");
      sum += weight;
      running[static_cast<size_t>(i)] = sum;
    }
    SCONCE_CHECK(sum > 0, kInvalidArgument,
                 "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
    for (Sum& value : running) value /= sum;
    running.back() = 1;
    for (int64_t j = 0; j < samples; ++j) {
      const double sample = uniform(generator);
      int64_t left = 0, right = n;
      while (right > left) {
        const int64_t middle = left + (right - left) / 2;
        if (static_cast<double>(running[static_cast<size_t>(middle)]) < sample)
          left = middle + 1;
        else
          right = middle;
      }
      to[row * samples + j] = left;
    }
  }
}

void check_std(double std) {
  SCONCE_CHECK(std >= 0, kInvalidArgument, "normal: expects std >= 0.0, but found std ", std);
}
void check_std(const Tensor& std) {
  SCONCE_CHECK(!is_complex(std.dtype()), kInvalidArgument, "normal: expects standard deviation to be non-complex");
  const Tensor wide = contiguous(to_dtype(std, DType::kFloat64));
  for (int64_t i = 0; i < wide.numel(); ++i)
    SCONCE_CHECK(!(wide.data_as<double>()[i] < 0), kInvalidArgument, "normal: expects all elements of std >= 0.0");
}

// The same dtype and sizes, as in-place operators give.
Tensor in_place(const Tensor& result, const Tensor& to) {
  SCONCE_CHECK(can_cast(result.dtype(), to.dtype()), kInvalidArgument, "normal: result type ",
               dtype_name(result.dtype()), " can't be cast to ", dtype_name(to.dtype()));
  return to_dtype(result, to.dtype());
}

// Hoermann's transformed rejection for means from 10 on, products of uniforms below.
double draw_poisson(double mean, Generator& generator) {
  SCONCE_CHECK(mean >= 0, kInvalidArgument, "poisson: invalid Poisson rate, expected rate to be non-negative");
  if (mean == 0) return 0;
  if (mean < 10) {
    const double bound = std::exp(-mean);
    double product = uniform(generator), count = 0;
    for (; product > bound; product *= uniform(generator)) ++count;
    return count;
  }
  const double root = std::sqrt(mean), log_mean = std::log(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform(generator) - 0.5, v = uniform(generator), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double bound = -mean + k * log_mean - std::lgamma(k + 1);
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= bound) return k;
  }
}

// Marsaglia and Tsang; shapes below 1 are drawn one higher and scaled.
double draw_gamma(double shape, Generator& generator) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale = std::pow(1 - uniform(generator), 1 / shape);
    shape += 1;
  }
  // ATen's constants are of single precision.
  constexpr double kThird = 1.0f / 3.0f, kSure = 0.0331f;
  const double d = shape - kThird, c = 1 / std::sqrt(9 * d);
  for (;;) {
    double x, y;
    do {
      x = generator.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - uniform(generator), square = x * x;
    if (u < 1 - kSure * square * square || std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

// The error of Stirling's formula for log(k!).
double stirling_rest(double k) {
  constexpr double kFirst[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                               0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                               0.00925546218271273, 0.00833056343336287};
  if (k < 10) return kFirst[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// For p up to a half: sums of geometric draws where few are expected, else Hoermann's transformed rejection.
double draw_binomial_half(double count, double p, Generator& generator) {
  if (count * p < 10) {
    const double log_rest = std::log1p(-p);
    double sum = 0, drawn = 0;
    for (;; ++drawn) {
      sum += std::ceil(std::log(uniform(generator)) / log_rest);
      if (sum > count) return drawn;
    }
  }
  const double deviation = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5, v_r = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((count + 1) * p);
  for (;;) {
    const double u = uniform(generator) - 0.5, v = uniform(generator), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return k;
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirling_rest(m) +
                         stirling_rest(count - m) - stirling_rest(k) - stirling_rest(count - k);
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
}
double draw_binomial(double count, double p, Generator& generator) {
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (p <= 0.5) return draw_binomial_half(count, p, generator);
  if (p > 0.5) return count - draw_binomial_half(count, 1 - p, generator);
  return std::numeric_limits<double>::quiet_NaN();
}

// Row-major, each element drawn for that of self.
template <class Draw>
Tensor drawn(const Tensor& self, Generator* generator, const Draw& draw) {
  const Tensor given = contiguous(to_dtype(self, DType::kFloat64));
  Tensor out = Tensor::empty(self.sizes(), DType::kFloat64);
  Generator& source = or_default(generator);
  const MutexLock lock(source.mutex());
  for (int64_t i = 0; i < out.numel(); ++i) out.data_as<double>()[i] = draw(given.data_as<double>()[i], source);
  return out;
}

// The least positive normal number of the dtype, and the greatest below 1.
std::pair<double, double> open_interval(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {std::numeric_limits<double>::min(), std::nextafter(1.0, 0.0)};
    case DType::kFloat16:
      return {0x1p-14, 1 - 0x1p-11};
    case DType::kBFloat16:
      return {0x1p-126, 1 - 0x1p-8};
    default:
      return {std::numeric_limits<float>::min(), std::nextafter(1.0f, 0.0f)};
  }
}

}  // namespace

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, Generator* generator) {
  Tensor out = Tensor::empty(multinomial_sizes(self, num_samples, replacement), DType::kInt64);
  if (out.numel() == 0) return out;
  const int64_t n = self.size(self.dim() - 1);
  const Tensor weights = contiguous(self);
  if (replacement && num_samples > 1) {
    Generator& source = or_default(generator);
    dispatch_floating(self.dtype(), "multinomial", [&]<class T>() -> void {
      draw_with_replacement<T, ComputeType<T>>(weights, num_samples, out, source);
    });
    return out;
  }
  const Tensor wide = to_dtype(weights, DType::kFloat64);
  for (int64_t row = 0; row * n < wide.numel(); ++row) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double weight = wide.data_as<double>()[row * n + i];
      SCONCE_CHECK(weight >= 0 && weight < HUGE_VAL, kInvalidArgument,
                   "multinomial: probability tensor contains either `inf`, `nan` or element < 0");
      sum += weight;
    }
    SCONCE_CHECK(sum > 0, kInvalidArgument,
                 "multinomial: invalid multinomial distribution (sum of probabilities <= 0)");
  }
  // Picks the largest weight / exponential sample (an exponential race).
  Tensor ratio = empty_like(self);
  fill_exponential(ratio, 1, generator);
  dispatch_floating(self.dtype(), "multinomial", [&]<class T>() -> void {
    using C = ComputeType<T>;
    map_elements<C, C, C>("multinomial", ratio, [](C weight, C sample) { return weight / sample; }, {&self, &ratio});
  });
  if (num_samples > 1) return topk(ratio, num_samples, -1, true, true)[1];
  const Tensor score = contiguous(ratio);
  dispatch_floating(self.dtype(), "multinomial", [&]<class T>() -> void {
    const T* const in = score.data_as<T>();
    for (int64_t row = 0; row < out.numel(); ++row) {
      int64_t best = 0;
      for (int64_t i = 1; i < n; ++i)
        if (static_cast<ComputeType<T>>(in[row * n + i]) > static_cast<ComputeType<T>>(in[row * n + best])) best = i;
      out.data_as<int64_t>()[row] = best;
    }
  });
  return out;
}

Tensor normal_tensor_number(const Tensor& mean, double std, Generator* generator) {
  check_std(std);
  Tensor out = Tensor::empty(mean.sizes(), mean.dtype());
  fill_normal(out, 0, std, generator);
  return in_place(add(out, mean, int64_t{1}), out);
}

Tensor normal_number_tensor(double mean, const Tensor& std, Generator* generator) {
  check_std(std);
  Tensor out = Tensor::empty(std.sizes(), std.dtype());
  fill_normal(out, 0, 1, generator);
  const Tensor scaled = in_place(multiply(out, std), out);
  Tensor mean_tensor = number_tensor(mean);
  return in_place(add(scaled, to_dtype(mean_tensor, out.dtype()), int64_t{1}), out);
}

Tensor normal_tensors(const Tensor& mean, const Tensor& std, Generator* generator) {
  check_std(std);
  Tensor out = Tensor::empty(broadcast_shapes("normal", mean.sizes(), std.sizes()), mean.dtype());
  fill_normal(out, 0, 1, generator);
  return in_place(add(in_place(multiply(out, std), out), mean, int64_t{1}), out);
}

Tensor bernoulli(const Tensor& self, Generator* generator) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  fill_bernoulli(out, self, generator);
  return out;
}
Tensor bernoulli_number(const Tensor& self, double p, Generator* generator) {
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  fill_bernoulli(out, p, generator);
  return out;
}
Tensor bernoulli_tensor(const Tensor& self, const Tensor& p, Generator* generator) {
  Tensor out = empty_like(self);  // every element is overwritten
  fill_bernoulli(out, p, generator);
  return out;
}

std::array<Tensor, 2> rrelu_with_noise_functional(const Tensor& self, const Tensor& noise, Scalar lower, Scalar upper,
                                                  bool training, Generator* generator) {
  SCONCE_CHECK(IntSpan(self.sizes()).size() == noise.sizes().size() &&
                   std::equal(self.sizes().begin(), self.sizes().end(), noise.sizes().begin()),
               kInvalidArgument, "rrelu_with_noise: noise tensor shape must match self tensor shape, got ",
               describe(noise), " and ", describe(self));
  const double low = lower.to_double(), high = upper.to_double();
  Tensor noise_out = clone(noise);
  if (!training) {
    Tensor out = make_result("rrelu_with_noise", {&self}, self.dtype(), self.dtype());
    dispatch_floating(self.dtype(), "rrelu_with_noise", [&]<class T>() -> void {
      using C = ComputeType<T>;
      const auto slope = static_cast<C>((low + high) / 2);
      map_elements<C, C>("rrelu_with_noise", out, [slope](C x) { return x > 0 ? x : x * slope; }, {&self});
    });
    return {out, noise_out};
  }
  SCONCE_CHECK(std::isfinite(low) && std::isfinite(high) && low <= high, kInvalidArgument,
               "rrelu_with_noise: the range of slopes is [", low, ", ", high, "]");
  const Tensor in = contiguous(self);
  Tensor out = Tensor::empty(self.sizes(), self.dtype());
  Tensor slopes = noise_out.is_contiguous() ? noise_out : Tensor::empty(self.sizes(), noise.dtype());
  Generator& source = or_default(generator);
  dispatch_floating(self.dtype(), "rrelu_with_noise", [&]<class T>() -> void {
    using C = ComputeType<T>;
    SCONCE_CHECK(noise.dtype() == self.dtype(), kInvalidArgument, "rrelu_with_noise: noise is of dtype ",
                 dtype_name(noise.dtype()));
    const MutexLock lock(source.mutex());
    for (int64_t i = 0; i < in.numel(); ++i) {
      const auto x = static_cast<C>(in.data_as<T>()[i]);
      const C slope = x <= 0 ? static_cast<C>(uniform(source) * (high - low) + low) : C(1);
      slopes.data_as<T>()[i] = T(slope);
      out.data_as<T>()[i] = x <= 0 ? T(x * slope) : in.data_as<T>()[i];
    }
  });
  if (slopes.storage() != noise_out.storage()) copy(slopes, noise_out);
  if (in.storage() != self.storage()) {
    Tensor laid_out = empty_like(self);
    copy(out, laid_out);
    out = laid_out;
  }
  return {out, noise_out};
}

Tensor poisson(const Tensor& self, Generator* generator) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "poisson");
  return to_dtype(drawn(self, generator, draw_poisson), self.dtype());
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  if (!is_floating(count.dtype())) fail_dispatch(count.dtype(), "binomial");
  SCONCE_CHECK(count.dtype() == prob.dtype(), kInvalidArgument, "binomial: Found dtype ", dtype_name(prob.dtype()),
               " but expected ", dtype_name(count.dtype()));
  const Shape shape = broadcast_shapes("binomial", count.sizes(), prob.sizes());
  const Tensor p = contiguous(to_dtype(expand("binomial", prob, shape), DType::kFloat64));
  const auto* next = p.data_as<double>();
  return to_dtype(drawn(expand("binomial", count, shape), generator,
                        [&next](double n, Generator& source) { return draw_binomial(n, *next++, source); }),
                  count.dtype());
}

Tensor _standard_gamma(const Tensor& self, Generator* generator) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "_standard_gamma");
  const double least = open_interval(self.dtype()).first;
  return to_dtype(
      drawn(self, generator,
            [least](double shape, Generator& source) { return std::max(draw_gamma(shape, source), least); }),
      self.dtype());
}

Tensor _sample_dirichlet(const Tensor& self, Generator* generator) {
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), "_sample_dirichlet");
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, "_sample_dirichlet: expected at least one dimension");
  Tensor gammas = drawn(self, generator, draw_gamma);
  const auto [least, most] = open_interval(self.dtype());
  const int64_t n = self.size(self.dim() - 1);
  auto* row = gammas.data_as<double>();
  for (auto* const end = row + gammas.numel(); row != end; row += n) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) total += row[i];
    for (int64_t i = 0; i < n; ++i) row[i] = std::min(std::max(row[i] / total, least), most);
  }
  return to_dtype(gammas, self.dtype());
}

}  // namespace sconce::cpu
