// FftPlan: one-dimensional discrete Fourier transforms of one length, several at a time.
//
// Forward transforms only, unscaled; an inverse transform is a forward one with real and imaginary parts exchanged
// before and after. Elements are Lanes<R, W>: W transforms in parallel, so that every operation uses whole vectors.
// Lengths with only small prime factors use Stockham passes, other lengths Bluestein's convolution. Immutable,
// thread-safe.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace sconce {

template <class R, int W>
struct LaneTypeOf {
  typedef R Type __attribute__((vector_size(W * sizeof(R))));
};
template <class R>
struct LaneTypeOf<R, 1> {
  using Type = R;
};
// W complex numbers.
template <class R, int W>
struct Lanes {
  using V = typename LaneTypeOf<R, W>::Type;
  V re, im;
};
template <class R>
inline constexpr int kFftLanes = 32 / static_cast<int>(sizeof(R));

template <class R>
class FftPlan {
 public:
  // Cached between calls. length >= 1.
  static std::shared_ptr<const FftPlan> of(int64_t length);
  explicit FftPlan(int64_t length);

  int64_t length() const noexcept { return length_; }
  // The number of elements that each of the two buffers of transform() needs.
  int64_t buffer_length() const noexcept { return convolution_ ? convolution_->length() : length_; }

  // exp(-pi i k / length()) for k up to length(). For real lines of twice the length, which are transformed as complex
  // lines.
  const std::vector<std::complex<R>>& half_turns() const;

  // Transforms the first length() elements of `data`; `other` is scratch. The result is in the buffer returned.
  template <int W>
  Lanes<R, W>* transform(Lanes<R, W>* data, Lanes<R, W>* other) const noexcept;

 private:
  struct Pass {
    int radix;
    int64_t count;                          // sub-transforms: the pass's length / radix
    std::vector<std::complex<R>> twiddles;  // [count, radix - 1]
    std::vector<std::complex<R>> roots;     // of unity, [radix]; for radices without special code
  };
  template <int W>
  Lanes<R, W>* convolve(Lanes<R, W>* data, Lanes<R, W>* other) const noexcept;

  // A long line transformed alone, as a matrix [rows, columns]: transforms of its columns, several at a time, a
  // multiplication by roots of unity, then transforms of its rows, which leave the result transposed.
  struct Split {
    std::shared_ptr<const FftPlan> of_columns, of_rows;
    std::vector<R> re, im;  // exp(-2 pi i k column / length): [rows, columns]
  };
  void split(int64_t length);
  void transform_split(Lanes<R, 1>* data, Lanes<R, 1>* other) const noexcept;

  int64_t length_;
  mutable std::once_flag turned_;
  mutable std::vector<std::complex<R>> half_turns_;
  std::vector<Pass> passes_;
  std::shared_ptr<const Split> split_;
  // Bluestein: x[k] c[k] convolved with conj(c), c[k] = exp(-i pi k^2 / n).
  std::shared_ptr<const FftPlan> convolution_;
  std::vector<std::complex<R>> chirp_, kernel_;  // kernel: transformed, scaled
};

}  // namespace sconce
