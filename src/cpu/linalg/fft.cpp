#include "src/cpu/linalg/fft.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/linalg/fft_lines.h"
#include "src/cpu/linalg/fft_plan.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/rules/fft_dims.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

using Dims = std::vector<int64_t>;

// Beyond this, buffers of several transforms side by side leave the cache.
constexpr int64_t kWidestBytes = 1 << 21;

double scale_of(const char* name, int64_t normalization, int64_t elements) {
  SCONCE_CHECK(normalization >= 0 && normalization <= 2, kInvalidArgument, name, ": normalization mode ",
               normalization);
  const double scale = 1.0 / static_cast<double>(elements);
  return normalization == 0 ? 1.0 : normalization == 1 ? std::sqrt(scale) : scale;
}

int count_zero(IntSpan sizes) { return static_cast<int>(std::count(sizes.begin(), sizes.end(), 0)); }

// The strides that MKL's caller in ATen gives a result: transformed dimensions innermost in their order, the others
// outside in the order of the input's strides.
Tensor make_output(const Tensor& self, const Shape& sizes, const Dims& dims, DType dtype) {
  Dims order(static_cast<size_t>(self.dim())), strides(order.size());
  std::iota(order.begin(), order.end(), 0);
  // ATen's sort is not stable either, which shows for dimensions of size 1.
  const auto batch_end = std::partition(
      order.begin(), order.end(), [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) == dims.end(); });
  std::sort(order.begin(), batch_end, [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  std::copy(dims.begin(), dims.end(), batch_end);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = stride;
    stride *= std::max<int64_t>(sizes[static_cast<int>(order[i])], 1);
  }
  Tensor out = Tensor::empty(sizes, dtype);
  return count_zero(sizes) ? out : out.as_strided(sizes, strides, 0);
}

// The lines of two tensors along a dimension, in the order of the second one's memory.
struct Lines {
  Lines(const Tensor& in, const Tensor& out, int64_t dim) : in_step(in.stride(dim)), out_step(out.stride(dim)) {
    for (int64_t d = 0; d < in.dim(); ++d)
      if (d != dim && in.size(d) != 1) dims.push_back({in.size(d), in.stride(d), out.stride(d)});
    std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.out < b.out; });
    for (const Dim& d : dims) count *= d.size;
  }
  // Where the lines from `first` on begin. Places beyond the last one of `count` are those of `first`.
  template <int W>
  void locate(int64_t first, int64_t count, int64_t (&in)[W], int64_t (&out)[W]) const noexcept {
    for (int w = 0; w < W; ++w) locate(first + (w < count ? w : 0), in[w], out[w]);
  }
  void locate(int64_t line, int64_t& in, int64_t& out) const noexcept {
    in = out = 0;
    for (const Dim& d : dims) {
      const int64_t at = line % d.size;
      line /= d.size;
      in += at * d.in;
      out += at * d.out;
    }
  }
  struct Dim {
    int64_t size, in, out;
  };
  std::vector<Dim> dims;
  int64_t count = 1, in_step, out_step;
};

// Runs body(first line, lines, buffers) for groups of up to W lines, on several threads. `least`: elements that each
// buffer needs, whatever the plan.
template <class R, int W, class Body>
void for_groups(const FftPlan<R>& plan, int64_t lines, int64_t least, const Body& body) {
  constexpr int64_t kWidth = W;
  const int64_t groups = (lines + kWidth - 1) / kWidth, length = std::max(plan.buffer_length(), least);
  const int64_t parts = slice_parts(groups, plan.length() * 16 * W);
  const int64_t buffer[] = {parts, 2 * length * static_cast<int64_t>(sizeof(Lanes<R, W>))};
  const Tensor scratch = Tensor::empty(buffer, DType::kUInt8);
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t part = begin; part < end; ++part) {
      auto* const data = reinterpret_cast<Lanes<R, W>*>(scratch.data_as<uint8_t>() + part * buffer[1]);
      for (int64_t group = groups * part / parts; group < groups * (part + 1) / parts; ++group)
        body(group * kWidth, std::min(kWidth, lines - group * kWidth), data, data + length);
    }
  });
}

// Chooses between the two forms of `run`.
template <class R, class F>
void by_width(const FftPlan<R>& plan, int64_t lines, const F& run) {
  constexpr int kWide = kFftLanes<R>;
  if (lines > 1 && plan.buffer_length() * static_cast<int64_t>(2 * sizeof(Lanes<R, kWide>)) <= kWidestBytes)
    run.template operator()<kWide>();
  else
    run.template operator()<1>();
}

template <class R>
void complex_lines(const Tensor& in, Tensor& out, int64_t dim, bool forward, double scale) {
  const auto plan = FftPlan<R>::of(in.size(dim));
  const Lines lines(in, out, dim);
  const int64_t n = plan->length();
  const auto* const from = in.data_as<std::complex<R>>();
  auto* const to = out.data_as<std::complex<R>>();
  const R factor = static_cast<R>(scale);
  by_width(*plan, lines.count, [&]<int W>() {
    for_groups<R, W>(*plan, lines.count, 0,
                     [&](int64_t first, int64_t count, Lanes<R, W>* data, Lanes<R, W>* other) noexcept {
                       int64_t from_at[W], to_at[W];
                       lines.locate<W>(first, count, from_at, to_at);
                       fft::read_complex(from, from_at, lines.in_step, n, count, !forward, data);
                       const Lanes<R, W>* const result = plan->template transform<W>(data, other);
                       fft::write_complex<R, W>(to, to_at, lines.out_step, n, count, [&](int64_t k) {
                         const auto re = result[k].re * factor, im = result[k].im * factor;
                         return forward ? Lanes<R, W>{re, im} : Lanes<R, W>{im, re};
                       });
                     });
  });
}

// Maps element k of a real line into the complex line by which it is transformed. If the length is even, that line is
// half as long and has even elements as real parts, odd ones as imaginary parts. Two real lines never share a complex
// one, because NaN and rounding errors of one would spread to the other.
template <class R, int W>
auto parts_of(Lanes<R, W>* data, bool even) noexcept {
  return [data, even](int64_t k) -> typename Lanes<R, W>::V& {
    return !even ? data[k].re : k % 2 ? data[k / 2].im : data[k / 2].re;
  };
}

template <class R>
void real_lines(const Tensor& in, Tensor& out, int64_t dim, double scale) {
  const int64_t n = in.size(dim);
  const bool even = n % 2 == 0;
  const auto plan = FftPlan<R>::of(even ? n / 2 : n);
  const Lines lines(in, out, dim);
  const int64_t m = plan->length();
  const R* const from = in.data_as<R>();
  auto* const to = out.data_as<std::complex<R>>();
  const R half = static_cast<R>(scale / 2);
  const std::complex<R>* const turns = even ? plan->half_turns().data() : nullptr;
  by_width(*plan, lines.count, [&]<int W>() {
    for_groups<R, W>(
        *plan, lines.count, 0, [&](int64_t first, int64_t count, Lanes<R, W>* data, Lanes<R, W>* other) noexcept {
          using Part = typename Lanes<R, W>::V;
          int64_t from_at[W], to_at[W];
          lines.locate<W>(first, count, from_at, to_at);
          if (!even)
            for (int64_t k = 0; k < n; ++k) data[k].im = Part{};
          fft::read_real<R, W>(from, from_at, lines.in_step, n, count, parts_of(data, even));
          const Lanes<R, W>* const result = plan->template transform<W>(data, other);
          fft::write_complex<R, W>(to, to_at, lines.out_step, n / 2 + 1, count, [&](int64_t k) {
            const Lanes<R, W>&a = result[k == m ? 0 : k], &b = result[k == 0 ? 0 : m - k];
            if (!even) return Lanes<R, W>{(a.re + b.re) * half, (a.im - b.im) * half};
            if (k == 0) return Lanes<R, W>{(a.re + a.im) * (half + half), Part{}};
            if (k == m) return Lanes<R, W>{(a.re - a.im) * (half + half), Part{}};
            // The transforms of the even elements and of the odd ones, by symmetry.
            const Part re = (a.im + b.im) * half, im = (b.re - a.re) * half;
            const R x = turns[k].real(), y = turns[k].imag();
            return Lanes<R, W>{(a.re + b.re) * half + (re * x - im * y), (a.im - b.im) * half + (re * y + im * x)};
          });
        });
  });
}

// The reverse, of half spectra.
template <class R>
void half_lines(const Tensor& in, Tensor& out, int64_t dim, double scale) {
  const int64_t n = out.size(dim), bins = n / 2 + 1;
  const bool even = n % 2 == 0;
  const auto plan = FftPlan<R>::of(even ? n / 2 : n);
  const Lines lines(in, out, dim);
  const int64_t m = plan->length();
  const auto* const from = in.data_as<std::complex<R>>();
  R* const to = out.data_as<R>();
  const R factor = static_cast<R>(scale);
  const std::complex<R>* const turns = even ? plan->half_turns().data() : nullptr;
  by_width(*plan, lines.count, [&]<int W>() {
    for_groups<R, W>(*plan, lines.count, bins,
                     [&](int64_t first, int64_t count, Lanes<R, W>* data, Lanes<R, W>* other) noexcept {
                       using Part = typename Lanes<R, W>::V;
                       int64_t from_at[W], to_at[W];
                       lines.locate<W>(first, count, from_at, to_at);
                       fft::read_complex(from, from_at, lines.in_step, bins, count, false, other);
                       other[0].im = Part{};
                       if (even) other[m].im = Part{};
                       // Real and imaginary parts are exchanged, which makes the transform an inverse one.
                       if (even) {
                         for (int64_t k = 0; k < m; ++k) {
                           const Lanes<R, W>&a = other[k], &b = other[m - k];
                           const Part re = a.re - b.re, im = a.im + b.im;
                           const R x = turns[k].real(), y = -turns[k].imag();
                           const Part odd_re = re * x - im * y, odd_im = re * y + im * x;
                           data[k] = {(a.im - b.im) + odd_re, (a.re + b.re) - odd_im};
                         }
                       } else {
                         for (int64_t k = 0; k < bins; ++k) {
                           data[k] = {other[k].im, other[k].re};
                           if (k > 0) data[n - k] = {-other[k].im, other[k].re};
                         }
                       }
                       Lanes<R, W>* const result = plan->template transform<W>(data, other);
                       if (even)
                         for (int64_t k = 0; k < m; ++k) std::swap(result[k].re, result[k].im);
                       else
                         for (int64_t k = 0; k < n; ++k) result[k].re = result[k].im;
                       fft::write_real<R, W>(to, to_at, lines.out_step, n, count, factor, parts_of(result, even));
                     });
  });
}

template <class F>
void by_precision(const char* name, DType dtype, const F& run) {
  switch (value_dtype(dtype)) {
    case DType::kFloat32:
      return run.template operator()<float>();
    case DType::kFloat64:
      return run.template operator()<double>();
    default:
      SCONCE_FAIL(kUnsupported, name, ": doesn't support tensors of type ", dtype_name(dtype));
  }
}

DType complex_of(const char* name, DType dtype) {
  SCONCE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64, kUnsupported, name,
               ": doesn't support tensors of type ", dtype_name(dtype));
  return dtype == DType::kFloat32 ? DType::kComplex64 : DType::kComplex128;
}

void sort_by_stride(Dims& dims, const Tensor& self, size_t count) {
  std::sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count),
            [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
}

int64_t transformed(const Shape& sizes, const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t d : dims) elements *= sizes[static_cast<int>(d)];
  return elements;
}

// out[k] for the upper half of `mirrored`, the last of dims: the conjugate of the element mirrored in all of dims.
template <class R>
void mirror(Tensor& out, const Dims& dims) {
  const int64_t last = dims.back(), n = out.size(last), rank = out.dim();
  auto* const data = out.data_as<std::complex<R>>();
  std::vector<int64_t> at(static_cast<size_t>(rank), 0);
  at[static_cast<size_t>(last)] = n / 2 + 1;
  if (n / 2 + 1 >= n || out.numel() == 0) return;
  for (;;) {
    int64_t to = 0, from = 0;
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t i = at[static_cast<size_t>(d)];
      const bool flipped = std::find(dims.begin(), dims.end(), d) != dims.end();
      to += i * out.stride(d);
      from += (flipped && i > 0 ? out.size(d) - i : i) * out.stride(d);
    }
    data[to] = std::conj(data[from]);
    int64_t d = rank - 1;
    for (; d >= 0; --d) {
      if (++at[static_cast<size_t>(d)] < out.size(d)) break;
      at[static_cast<size_t>(d)] = d == last ? n / 2 + 1 : 0;
    }
    if (d < 0) return;
  }
}

}  // namespace

Tensor _fft_c2c(const Tensor& self, IntSpan dim, int64_t normalization, bool forward) {
  SCONCE_CHECK(is_complex(self.dtype()), kInvalidArgument, "_fft_c2c: expects a complex tensor, got ", describe(self));
  if (dim.empty()) return clone(self);
  Dims dims = fft_dims("_fft_c2c", self, dim);
  sort_by_stride(dims, self, dims.size());
  const Shape sizes(self.sizes());
  if (count_zero(self.sizes())) return Tensor::empty(self.sizes(), self.dtype());
  const double scale = scale_of("_fft_c2c", normalization, transformed(sizes, dims));
  Tensor out = make_output(self, sizes, dims, self.dtype());
  by_precision("_fft_c2c", self.dtype(), [&]<class R>() {
    for (size_t i = 0; i < dims.size(); ++i)
      complex_lines<R>(i == 0 ? self : out, out, dims[dims.size() - 1 - i], forward, i + 1 == dims.size() ? scale : 1);
  });
  return out;
}

// Onesided: the last dimension of `dim` gets size / 2 + 1 elements. Otherwise it gets all, the second half mirrored.
Tensor _fft_r2c(const Tensor& self, IntSpan dim, int64_t normalization, bool onesided) {
  const DType dtype = complex_of("_fft_r2c", self.dtype());
  SCONCE_CHECK(!dim.empty(), kInvalidArgument, "_fft_r2c: no dimension to transform");
  Dims dims = fft_dims("_fft_r2c", self, dim);
  sort_by_stride(dims, self, dims.size() - 1);
  const int64_t last = dims.back(), half = self.size(last) / 2 + 1;
  Shape sizes(self.sizes());
  const double scale = count_zero(self.sizes()) ? 1 : scale_of("_fft_r2c", normalization, transformed(sizes, dims));
  if (onesided) sizes[static_cast<int>(last)] = half;
  if (count_zero(self.sizes())) return Tensor::empty(sizes, dtype);
  Tensor out = make_output(self, sizes, dims, dtype);
  sizes[static_cast<int>(last)] = half;
  Tensor lower = out.as_strided(sizes, out.strides(), out.storage_offset());
  by_precision("_fft_r2c", self.dtype(), [&]<class R>() {
    real_lines<R>(self, lower, last, dims.size() == 1 ? scale : 1);
    for (size_t i = 0; i + 1 < dims.size(); ++i)
      complex_lines<R>(lower, lower, dims[i], true, i + 2 == dims.size() ? scale : 1);
    if (!onesided) mirror<R>(out, dims);
  });
  return out;
}

Tensor _fft_c2r(const Tensor& self, IntSpan dim, int64_t normalization, int64_t last_dim_size) {
  SCONCE_CHECK(is_complex(self.dtype()), kInvalidArgument, "_fft_c2r: expects a complex tensor, got ", describe(self));
  SCONCE_CHECK(!dim.empty(), kInvalidArgument, "_fft_c2r: no dimension to transform");
  const Dims dims = fft_dims("_fft_c2r", self, dim);
  const int64_t last = dims.back();
  SCONCE_CHECK(last_dim_size >= 1 && self.size(last) >= last_dim_size / 2 + 1, kInvalidArgument,
               "_fft_c2r: a signal of ", last_dim_size, " elements needs ", last_dim_size / 2 + 1, ", got ",
               describe(self));
  const Tensor in = dims.size() > 1 ? _fft_c2c(self, IntSpan(dims).first(dims.size() - 1), normalization, false) : self;
  Shape sizes(self.sizes());
  sizes[static_cast<int>(last)] = last_dim_size;
  const DType dtype = value_dtype(self.dtype());
  if (count_zero(sizes)) return Tensor::empty(sizes, dtype);
  Tensor out = make_output(in, sizes, {last}, dtype);
  const double scale = scale_of("_fft_c2r", normalization, last_dim_size);
  by_precision("_fft_c2r", self.dtype(), [&]<class R>() { half_lines<R>(in, out, last, scale); });
  return out;
}

}  // namespace sconce::cpu
