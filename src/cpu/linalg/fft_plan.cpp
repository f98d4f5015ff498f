#include "src/cpu/linalg/fft_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "sconce/mutex.h"
#include "src/cpu/linalg/fft_lines.h"

namespace sconce {
namespace {

constexpr int64_t kLargestRadix = 31;
constexpr int64_t kSplitSide = 2048;  // the longest side of a line taken apart: its buffers are on the stack

// exp(-2 pi i k / n): the angle is brought into the first octant in integers, where sine and cosine are exact to the
// last bit or so.
template <class R>
std::complex<R> root(int64_t k, int64_t n) {
  k %= n;
  const bool below = 2 * k > n;
  if (below) k = n - k;  // conjugate
  bool left = false, steep = false;
  if (4 * k > n) {
    left = true;  // negative cosine
    k = n - 2 * k;
    n *= 2;
  }
  if (8 * k > n) {
    steep = true;  // sine and cosine exchanged
    k = n - 4 * k;
    n *= 4;
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  double cosine = std::cos(angle), sine = std::sin(angle);
  if (steep) std::swap(cosine, sine);
  if (left) cosine = -cosine;
  return {static_cast<R>(cosine), static_cast<R>(below ? sine : -sine)};
}

template <class R, int W>
using V = typename Lanes<R, W>::V;

template <class R, int W>
Lanes<R, W> operator+(const Lanes<R, W>& a, const Lanes<R, W>& b) noexcept {
  return {a.re + b.re, a.im + b.im};
}
template <class R, int W>
Lanes<R, W> operator-(const Lanes<R, W>& a, const Lanes<R, W>& b) noexcept {
  return {a.re - b.re, a.im - b.im};
}
template <class R, int W>
Lanes<R, W> times(const Lanes<R, W>& a, R re, R im) noexcept {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}
template <class R, int W>
Lanes<R, W> scaled(const Lanes<R, W>& a, R factor) noexcept {
  return {a.re * factor, a.im * factor};
}
// -i a
template <class R, int W>
Lanes<R, W> turned(const Lanes<R, W>& a) noexcept {
  return {a.im, -a.re};
}

template <class R, int W>
void butterfly(std::array<Lanes<R, W>, 2>& a) noexcept {
  const auto sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class R, int W>
void butterfly(std::array<Lanes<R, W>, 3>& a) noexcept {
  constexpr R kHalfRoot3 = static_cast<R>(0.86602540378443864676);
  const auto sum = a[1] + a[2];
  const auto across = turned(scaled(a[1] - a[2], kHalfRoot3));
  const auto middle = a[0] - scaled(sum, R(0.5));
  a[0] = a[0] + sum;
  a[1] = middle + across;
  a[2] = middle - across;
}

template <class R, int W>
void butterfly(std::array<Lanes<R, W>, 4>& a) noexcept {
  const auto even = a[0] + a[2], even_difference = a[0] - a[2];
  const auto odd = a[1] + a[3], odd_difference = turned(a[1] - a[3]);
  a[0] = even + odd;
  a[1] = even_difference + odd_difference;
  a[2] = even - odd;
  a[3] = even_difference - odd_difference;
}

template <class R, int W>
void butterfly(std::array<Lanes<R, W>, 5>& a) noexcept {
  constexpr R kCos1 = static_cast<R>(0.30901699437494742410), kCos2 = static_cast<R>(-0.80901699437494742410);
  constexpr R kSin1 = static_cast<R>(0.95105651629515357212), kSin2 = static_cast<R>(0.58778525229247312917);
  const auto sum1 = a[1] + a[4], sum2 = a[2] + a[3], difference1 = a[1] - a[4], difference2 = a[2] - a[3];
  const auto first = a[0] + scaled(sum1, kCos1) + scaled(sum2, kCos2);
  const auto second = a[0] + scaled(sum1, kCos2) + scaled(sum2, kCos1);
  const auto turn1 = turned(scaled(difference1, kSin1) + scaled(difference2, kSin2));
  const auto turn2 = turned(scaled(difference1, kSin2) - scaled(difference2, kSin1));
  a[0] = a[0] + sum1 + sum2;
  a[1] = first + turn1;
  a[4] = first - turn1;
  a[2] = second + turn2;
  a[3] = second - turn2;
}

// One pass: in[q + s (p + m k)] to out[q + s (r p + j)].
template <int kRadix, class R, int W>
void run_pass(const Lanes<R, W>* in, Lanes<R, W>* out, int64_t count, int64_t stride,
              const std::complex<R>* twiddles) noexcept {
  for (int64_t p = 0; p < count; ++p, twiddles += kRadix - 1) {
    const Lanes<R, W>* const from = in + stride * p;
    Lanes<R, W>* const to = out + stride * kRadix * p;
    for (int64_t q = 0; q < stride; ++q) {
      std::array<Lanes<R, W>, kRadix> a;
      for (int k = 0; k < kRadix; ++k) a[static_cast<size_t>(k)] = from[q + stride * count * k];
      butterfly<R, W>(a);
      to[q] = a[0];
      for (int j = 1; j < kRadix; ++j)
        to[q + stride * j] = times(a[static_cast<size_t>(j)], twiddles[j - 1].real(), twiddles[j - 1].imag());
    }
  }
}

template <class R, int W>
void run_any_pass(const Lanes<R, W>* in, Lanes<R, W>* out, int radix, int64_t count, int64_t stride,
                  const std::complex<R>* twiddles, const std::complex<R>* roots) noexcept {
  for (int64_t p = 0; p < count; ++p, twiddles += radix - 1) {
    const Lanes<R, W>* const from = in + stride * p;
    Lanes<R, W>* const to = out + stride * radix * p;
    for (int64_t q = 0; q < stride; ++q) {
      for (int j = 0; j < radix; ++j) {
        Lanes<R, W> sum = from[q];
        for (int k = 1; k < radix; ++k) {
          const std::complex<R> w = roots[j * k % radix];
          sum = sum + times(from[q + stride * count * k], w.real(), w.imag());
        }
        to[q + stride * j] = j == 0 ? sum : times(sum, twiddles[j - 1].real(), twiddles[j - 1].imag());
      }
    }
  }
}

// The least length not below n whose only factors are 2, 3 and 5.
int64_t smooth_length(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t fives = 1; fives < best; fives *= 5)
    for (int64_t threes = fives; threes < best; threes *= 3) {
      int64_t length = threes;
      while (length < n) length *= 2;
      best = std::min(best, length);
    }
  return best;
}

// Plans of up to this many elements in all are kept.
constexpr int64_t kMaxPlanElements = int64_t{1} << 22;

template <class R>
struct PlanCache {
  Mutex mutex;
  std::map<int64_t, std::shared_ptr<const FftPlan<R>>> plans SCONCE_GUARDED_BY(mutex);
  int64_t elements SCONCE_GUARDED_BY(mutex) = 0;
};

}  // namespace

template <class R>
std::shared_ptr<const FftPlan<R>> FftPlan<R>::of(int64_t length) {
  thread_local std::array<std::shared_ptr<const FftPlan>, 4> recent;
  for (const auto& plan : recent)
    if (plan && plan->length() == length) return plan;
  static PlanCache<R> cache;
  std::shared_ptr<const FftPlan> plan;
  {
    const MutexLock lock(cache.mutex);
    if (const auto found = cache.plans.find(length); found != cache.plans.end()) plan = found->second;
  }
  if (!plan) {
    plan = std::make_shared<const FftPlan>(length);
    const MutexLock lock(cache.mutex);
    if (cache.elements + length > kMaxPlanElements) {
      cache.plans.clear();
      cache.elements = 0;
    }
    if (length <= kMaxPlanElements && cache.plans.emplace(length, plan).second) cache.elements += length;
  }
  std::rotate(recent.begin(), recent.end() - 1, recent.end());
  recent[0] = plan;
  return plan;
}

template <class R>
FftPlan<R>::FftPlan(int64_t length) : length_(length) {
  std::vector<int> radices;
  int64_t rest = length;
  for (const int radix : {4, 2, 3, 5})
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  for (int radix = 7; radix <= kLargestRadix; radix += 2)
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  if (rest == 1) {
    int64_t current = length;
    for (const int radix : radices) {
      Pass pass{radix, current / radix, {}, {}};
      for (int64_t p = 0; p < pass.count; ++p)
        for (int j = 1; j < radix; ++j) pass.twiddles.push_back(root<R>(p * j, current));
      if (radix > 5)
        for (int j = 0; j < radix; ++j) pass.roots.push_back(root<R>(j, radix));
      passes_.push_back(std::move(pass));
      current /= radix;
    }
    split(length);
    return;
  }
  const int64_t convolved = smooth_length(2 * length - 1);
  convolution_ = of(convolved);
  std::vector<Lanes<R, 1>> kernel(static_cast<size_t>(convolved), Lanes<R, 1>{0, 0}), scratch(kernel.size());
  for (int64_t k = 0; k < length; ++k) {
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
                                             static_cast<unsigned __int128>(2 * length));
    const std::complex<R> c = root<R>(square, 2 * length);
    chirp_.push_back(c);
    const Lanes<R, 1> conjugate{c.real(), -c.imag()};
    kernel[static_cast<size_t>(k)] = conjugate;
    if (k > 0) kernel[static_cast<size_t>(convolved - k)] = conjugate;
  }
  const Lanes<R, 1>* const transformed = convolution_->template transform<1>(kernel.data(), scratch.data());
  for (int64_t k = 0; k < convolved; ++k)
    kernel_.emplace_back(transformed[k].re / static_cast<R>(convolved), transformed[k].im / static_cast<R>(convolved));
}

template <class R>
const std::vector<std::complex<R>>& FftPlan<R>::half_turns() const {
  std::call_once(turned_, [this] {
    std::vector<std::complex<R>> turns;
    for (int64_t k = 0; k <= length_; ++k) turns.push_back(root<R>(k, 2 * length_));
    half_turns_ = std::move(turns);
  });
  return half_turns_;
}

template <class R>
void FftPlan<R>::split(int64_t length) {
  constexpr int64_t kLeast = 1024;
  if (length < kLeast) return;
  int64_t rows = 0;
  for (int64_t r = kFftLanes<R>; r * r <= length; r += kFftLanes<R>)
    if (length % r == 0 && length / r % kFftLanes<R> == 0) rows = r;
  if (rows * rows * 16 < length || length / rows > kSplitSide) return;
  const int64_t columns = length / rows;
  auto made = std::make_shared<Split>();
  made->of_columns = of(rows);
  made->of_rows = of(columns);
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t column = 0; column < columns; ++column) {
      const std::complex<R> w = root<R>(k * column, length);
      made->re.push_back(w.real());
      made->im.push_back(w.imag());
    }
  split_ = std::move(made);
}

template <class R>
void FftPlan<R>::transform_split(Lanes<R, 1>* data, Lanes<R, 1>* other) const noexcept {
  constexpr int kWide = kFftLanes<R>;
  const int64_t rows = split_->of_columns->length(), columns = split_->of_rows->length();
  static_assert(sizeof(Lanes<R, 1>) == sizeof(std::complex<R>));
  auto* const line = reinterpret_cast<std::complex<R>*>(data);
  auto* const turned = reinterpret_cast<std::complex<R>*>(other);
  Lanes<R, kWide> buffer[kSplitSide], scratch[kSplitSide];
  int64_t at[kWide];
  for (int64_t column = 0; column < columns; column += kWide) {
    for (int w = 0; w < kWide; ++w) at[w] = column + w;
    fft::read_complex(line, at, columns, rows, int64_t{kWide}, false, buffer);
    const Lanes<R, kWide>* const result = split_->of_columns->template transform<kWide>(buffer, scratch);
    fft::write_complex<R, kWide>(turned, at, columns, rows, kWide, [&](int64_t k) {
      const auto re = fft::load<R, kWide>(split_->re.data() + k * columns + column),
                 im = fft::load<R, kWide>(split_->im.data() + k * columns + column);
      return Lanes<R, kWide>{result[k].re * re - result[k].im * im, result[k].re * im + result[k].im * re};
    });
  }
  for (int64_t row = 0; row < rows; row += kWide) {
    for (int w = 0; w < kWide; ++w) at[w] = (row + w) * columns;
    fft::read_complex(turned, at, int64_t{1}, columns, int64_t{kWide}, false, buffer);
    const Lanes<R, kWide>* const result = split_->of_rows->template transform<kWide>(buffer, scratch);
    for (int w = 0; w < kWide; ++w) at[w] = row + w;
    fft::write_complex<R, kWide>(line, at, rows, columns, kWide, [&](int64_t k) { return result[k]; });
  }
}

template <class R>
template <int W>
Lanes<R, W>* FftPlan<R>::transform(Lanes<R, W>* data, Lanes<R, W>* other) const noexcept {
  if (convolution_) return convolve<W>(data, other);
  if constexpr (W == 1)
    if (split_) {
      transform_split(data, other);
      return data;
    }
  int64_t stride = 1;
  for (const Pass& pass : passes_) {
    const std::complex<R>* const twiddles = pass.twiddles.data();
    switch (pass.radix) {
      case 2:
        run_pass<2>(data, other, pass.count, stride, twiddles);
        break;
      case 3:
        run_pass<3>(data, other, pass.count, stride, twiddles);
        break;
      case 4:
        run_pass<4>(data, other, pass.count, stride, twiddles);
        break;
      case 5:
        run_pass<5>(data, other, pass.count, stride, twiddles);
        break;
      default:
        run_any_pass(data, other, pass.radix, pass.count, stride, twiddles, pass.roots.data());
    }
    stride *= pass.radix;
    std::swap(data, other);
  }
  return data;
}

template <class R>
template <int W>
Lanes<R, W>* FftPlan<R>::convolve(Lanes<R, W>* data, Lanes<R, W>* other) const noexcept {
  const int64_t convolved = convolution_->length();
  for (int64_t k = 0; k < length_; ++k) {
    const std::complex<R> c = chirp_[static_cast<size_t>(k)];
    data[k] = times(data[k], c.real(), c.imag());
  }
  for (int64_t k = length_; k < convolved; ++k) data[k] = Lanes<R, W>{};
  Lanes<R, W>* result = convolution_->template transform<W>(data, other);
  for (int64_t k = 0; k < convolved; ++k) {
    const std::complex<R> c = kernel_[static_cast<size_t>(k)];
    const Lanes<R, W> product = times(result[k], c.real(), c.imag());
    result[k] = {product.im, product.re};  // exchanged: the way back is the inverse
  }
  result = convolution_->template transform<W>(result, result == data ? other : data);
  for (int64_t k = 0; k < length_; ++k) {
    const std::complex<R> c = chirp_[static_cast<size_t>(k)];
    result[k] = times(Lanes<R, W>{result[k].im, result[k].re}, c.real(), c.imag());
  }
  return result;
}

template class FftPlan<float>;
template class FftPlan<double>;
template Lanes<float, 1>* FftPlan<float>::transform<1>(Lanes<float, 1>*, Lanes<float, 1>*) const noexcept;
template Lanes<float, 8>* FftPlan<float>::transform<8>(Lanes<float, 8>*, Lanes<float, 8>*) const noexcept;
template Lanes<double, 1>* FftPlan<double>::transform<1>(Lanes<double, 1>*, Lanes<double, 1>*) const noexcept;
template Lanes<double, 4>* FftPlan<double>::transform<4>(Lanes<double, 4>*, Lanes<double, 4>*) const noexcept;

}  // namespace sconce
