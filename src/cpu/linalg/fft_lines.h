// Moves lines of memory to and from the lanes of FftPlan: W lines in parallel, a tile of each at a time.
#pragma once

#include <complex>
#include <cstdint>

#include "src/cpu/linalg/fft_plan.h"

namespace sconce::fft {

template <class R, int W>
R& lane(typename Lanes<R, W>::V& vector, int64_t i) noexcept {
  return reinterpret_cast<R*>(&vector)[i];
}

// Vectors at any address.
template <class R, int W>
typename Lanes<R, W>::V load(const R* from) noexcept {
  typename Lanes<R, W>::V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
template <class R, int W>
void store(R* to, typename Lanes<R, W>::V value) noexcept {
  __builtin_memcpy(to, &value, sizeof value);
}

// Interleaves the elements of two vectors: of their lower halves, of their upper halves.
template <class V>
V merge_low(V a, V b) noexcept {
  if constexpr (sizeof(a) / sizeof(a[0]) == 8)
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  else
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
template <class V>
V merge_high(V a, V b) noexcept {
  if constexpr (sizeof(a) / sizeof(a[0]) == 8)
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  else
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
// Every second element of two vectors, from the first or the second on.
template <class V>
V evens(V a, V b) noexcept {
  if constexpr (sizeof(a) / sizeof(a[0]) == 8)
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
  else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
template <class V>
V odds(V a, V b) noexcept {
  if constexpr (sizeof(a) / sizeof(a[0]) == 8)
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
  else
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

// A square of vectors: element j of vector i becomes element i of vector j.
template <class V, int W>
void transpose(V (&t)[W]) noexcept {
  for (int step = 1; step < W; step *= 2) {
    V merged[W];
    for (int i = 0; i < W / 2; ++i) {
      merged[2 * i] = merge_low(t[i], t[i + W / 2]);
      merged[2 * i + 1] = merge_high(t[i], t[i + W / 2]);
    }
    for (int i = 0; i < W; ++i) t[i] = merged[i];
  }
}

// Whether the lines are adjacent, element by element.
inline bool neighbours(const int64_t* at, int count) noexcept {
  for (int w = 1; w < count; ++w)
    if (at[w] != at[0] + w) return false;
  return true;
}

// Element k of line w, at from[at[w] + k * step], to lane w of data[k]. Lanes from `count` on get any line's elements
// or 0; all W entries name lines that may be read. Exchanged: real and imaginary parts swapped.
template <class R, int W>
void read_complex(const std::complex<R>* from, const int64_t* at, int64_t step, int64_t n, int64_t count,
                  bool exchanged, Lanes<R, W>* data) noexcept {
  int64_t done = 0;
  if constexpr (W > 1) {
    using V = typename Lanes<R, W>::V;
    const auto put = [&](int64_t k, V re, V im) { data[k] = exchanged ? Lanes<R, W>{im, re} : Lanes<R, W>{re, im}; };
    if (step == 1) {
      for (; done + W / 2 <= n; done += W / 2) {
        V tile[W];
        for (int w = 0; w < W; ++w) tile[w] = load<R, W>(reinterpret_cast<const R*>(from + at[w] + done));
        transpose(tile);
        for (int k = 0; k < W / 2; ++k) put(done + k, tile[2 * k], tile[2 * k + 1]);
      }
    } else if (count == W && neighbours(at, W)) {
      for (; done < n; ++done) {
        const R* const side_by_side = reinterpret_cast<const R*>(from + at[0] + done * step);
        const V low = load<R, W>(side_by_side), high = load<R, W>(side_by_side + W);
        put(done, evens(low, high), odds(low, high));
      }
    }
    if (count < W)
      for (int64_t k = done; k < n; ++k) data[k] = Lanes<R, W>{};
  }
  for (int64_t w = 0; w < count; ++w)
    for (int64_t k = done; k < n; ++k) {
      const std::complex<R> value = from[at[w] + k * step];
      lane<R, W>(exchanged ? data[k].im : data[k].re, w) = value.real();
      lane<R, W>(exchanged ? data[k].re : data[k].im, w) = value.imag();
    }
}

// The reverse, for value(k) = {re, im} with k below n.
template <class R, int W, class Value>
void write_complex(std::complex<R>* to, const int64_t* at, int64_t step, int64_t n, int64_t count,
                   const Value& value) noexcept {
  int64_t done = 0;
  if constexpr (W > 1) {
    using V = typename Lanes<R, W>::V;
    if (step == 1) {
      for (; done + W / 2 <= n; done += W / 2) {
        V tile[W];
        for (int k = 0; k < W / 2; ++k) {
          const Lanes<R, W> both = value(done + k);
          tile[2 * k] = both.re;
          tile[2 * k + 1] = both.im;
        }
        transpose(tile);
        for (int w = 0; w < W; ++w)
          if (w < count) store<R, W>(reinterpret_cast<R*>(to + at[w] + done), tile[w]);
      }
    } else if (count == W && neighbours(at, W)) {
      for (; done < n; ++done) {
        const Lanes<R, W> both = value(done);
        R* const side_by_side = reinterpret_cast<R*>(to + at[0] + done * step);
        store<R, W>(side_by_side, merge_low(both.re, both.im));
        store<R, W>(side_by_side + W, merge_high(both.re, both.im));
      }
    }
  }
  for (int64_t k = done; k < n; ++k) {
    Lanes<R, W> both = value(k);
    for (int64_t w = 0; w < count; ++w) to[at[w] + k * step] = {lane<R, W>(both.re, w), lane<R, W>(both.im, w)};
  }
}

// Real element k of line w to lane w of slot(k), as read_complex.
template <class R, int W, class Slot>
void read_real(const R* from, const int64_t* at, int64_t step, int64_t n, int64_t count, const Slot& slot) noexcept {
  int64_t done = 0;
  if constexpr (W > 1) {
    using V = typename Lanes<R, W>::V;
    if (step == 1) {
      for (; done + W <= n; done += W) {
        V tile[W];
        for (int w = 0; w < W; ++w) tile[w] = load<R, W>(from + at[w] + done);
        transpose(tile);
        for (int k = 0; k < W; ++k) slot(done + k) = tile[k];
      }
    } else if (count == W && neighbours(at, W)) {
      for (; done < n; ++done) slot(done) = load<R, W>(from + at[0] + done * step);
    }
    if (count < W)
      for (int64_t k = done; k < n; ++k) slot(k) = V{};
  }
  for (int64_t w = 0; w < count; ++w)
    for (int64_t k = done; k < n; ++k) lane<R, W>(slot(k), w) = from[at[w] + k * step];
}

// The reverse.
template <class R, int W, class Slot>
void write_real(R* to, const int64_t* at, int64_t step, int64_t n, int64_t count, R factor, const Slot& slot) noexcept {
  int64_t done = 0;
  if constexpr (W > 1) {
    using V = typename Lanes<R, W>::V;
    if (step == 1) {
      for (; done + W <= n; done += W) {
        V tile[W];
        for (int k = 0; k < W; ++k) tile[k] = slot(done + k) * factor;
        transpose(tile);
        for (int w = 0; w < W; ++w)
          if (w < count) store<R, W>(to + at[w] + done, tile[w]);
      }
    } else if (count == W && neighbours(at, W)) {
      for (; done < n; ++done) store<R, W>(to + at[0] + done * step, slot(done) * factor);
    }
  }
  for (int64_t w = 0; w < count; ++w)
    for (int64_t k = done; k < n; ++k) to[at[w] + k * step] = lane<R, W>(slot(k), w) * factor;
}

}  // namespace sconce::fft
