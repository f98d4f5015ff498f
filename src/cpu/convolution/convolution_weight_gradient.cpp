#include "src/cpu/convolution/convolution_weight_gradient.h"

#include <algorithm>
#include <cmath>

#include "src/cpu/matmul/gemm/matrix_view.h"
#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/slices.h"

namespace sconce {
namespace {

constexpr int64_t kColumnBytes = int64_t{256} << 10;  // of inputs side by side: they stay in the second-level cache

// The outputs [first, last) of an axis whose input under a tap lies within the input.
struct Range {
  int64_t first, last;
};
Range inside(const ConvolutionShape& s, size_t d, int64_t tap) {
  const int64_t at = tap * s.dilation[d] - s.padding[d], stride = s.stride[d];
  const int64_t first = at >= 0 ? 0 : (-at + stride - 1) / stride;
  const int64_t last = s.input[d] - 1 - at < 0 ? 0 : (s.input[d] - 1 - at) / stride + 1;
  return {std::min(first, s.output[d]), std::clamp(last, std::min(first, s.output[d]), s.output[d])};
}

// The inputs of one channel under one tap, packed, for the output rows [begin, end) (depth and height as one).
template <class T>
void gather(const ConvolutionShape& s, const T* channel, const Dims3& tap, int64_t begin, int64_t end, T* to) {
  const Range x = inside(s, 2, tap[2]);
  const int64_t width = s.output[2], start = x.first * s.stride[2] + tap[2] * s.dilation[2] - s.padding[2];
  for (int64_t row = begin; row < end; ++row, to += width) {
    const int64_t z = row / s.output[1] * s.stride[0] + tap[0] * s.dilation[0] - s.padding[0];
    const int64_t y = row % s.output[1] * s.stride[1] + tap[1] * s.dilation[1] - s.padding[1];
    if (z < 0 || z >= s.input[0] || y < 0 || y >= s.input[1]) {
      std::fill_n(to, width, T(0));
      continue;
    }
    const T* const from = channel + (z * s.input[1] + y) * s.input[2] + start;
    std::fill_n(to, x.first, T(0));
    if (s.stride[2] == 1)
      std::copy_n(from, x.last - x.first, to + x.first);
    else
      for (int64_t i = x.first; i < x.last; ++i) to[i] = from[(i - x.first) * s.stride[2]];
    std::fill(to + x.last, to + width, T(0));
  }
}

// Products with the inputs under each tap, side by side, some rows of the output at a time.
template <class T>
void by_products(const ConvolutionShape& s, const T* input, const T* grad, T* gradient) {
  const int64_t in_each = s.in_group(), out_each = s.out_group(), taps = s.taps(), places = in_each * taps;
  const int64_t width = s.output[2], rows = s.output[0] * s.output[1], pixels = rows * width;
  const int64_t in_pixels = s.input[0] * s.input[1] * s.input[2];
  const int64_t step = std::clamp<int64_t>(kColumnBytes / (places * width * static_cast<int64_t>(sizeof(T))),
                                           std::min((255 + width) / width, rows), rows);
  const int64_t sizes[] = {places * step * width};
  const Tensor columns = Tensor::empty(sizes, kDType<T>);
  T* const packed = columns.data_as<T>();
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t begin = 0; begin < rows; begin += step) {
        const int64_t end = std::min(begin + step, rows), count = (end - begin) * width;
        const T* const channels = input + (n * s.in_channels + g * in_each) * in_pixels;
        parallel_for(0, places, std::max<int64_t>(1, 32768 / count), [&](int64_t from, int64_t to) noexcept {
          for (int64_t place = from; place < to; ++place) {
            const int64_t tap = place % taps, area = s.kernel[1] * s.kernel[2];
            gather(s, channels + place / taps * in_pixels, {tap / area, tap % area / s.kernel[2], tap % s.kernel[2]},
                   begin, end, packed + place * count);
          }
        });
        using factorise::View;
        const T* const grads = grad + (n * s.out_channels + g * out_each) * pixels + begin * width;
        factorise::product(View<T>{gradient + g * out_each * places, places, 1}, View<const T>{grads, pixels, 1},
                           View<const T>{packed, 1, count}, out_each, places, count, 1, n == 0 && begin == 0 ? 0 : 1);
      }
}

// One channel in, one out, in a plane: with padding written out, each tap is one product of two runs of numbers. Inputs
// are split by their residue modulo the stride.
template <class T>
void depthwise(const ConvolutionShape& s, const T* input, const T* grad, T* gradient) {
  const int64_t sy = s.stride[1], sx = s.stride[2];
  const int64_t high = (s.kernel[1] - 1) * s.dilation[1] / sy + s.output[1],
                wide = (s.kernel[2] - 1) * s.dilation[2] / sx + s.output[2];
  const int64_t plane = high * wide + wide, taps = s.taps(), in_plane = s.input[1] * s.input[2],
                out_plane = s.output[1] * s.output[2];
  const int64_t parts = slice_parts(s.in_channels, s.batch * out_plane * taps);
  const int64_t sizes[] = {parts, (sy * sx + 1) * plane};
  const Tensor scratch = Tensor::empty(sizes, kDType<T>);
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part) {
      T* const grads = scratch.data_as<T>() + part * sizes[1];
      T* const planes = grads + plane;
      std::fill_n(grads, sizes[1], T(0));
      for (int64_t c = s.in_channels * part / parts; c < s.in_channels * (part + 1) / parts; ++c) {
        T* const to = gradient + c * taps;
        for (int64_t n = 0; n < s.batch; ++n) {
          const T* const x = input + (n * s.in_channels + c) * in_plane;
          const T* const g = grad + (n * s.in_channels + c) * out_plane;
          for (int64_t y = 0; y < s.output[1]; ++y) std::copy_n(g + y * s.output[2], s.output[2], grads + y * wide);
          for (int64_t phase = 0; phase < sy * sx; ++phase)
            for (int64_t y = 0; y < high; ++y) {
              const int64_t row = y * sy + phase / sx - s.padding[1], start = phase % sx - s.padding[2];
              if (row < 0 || row >= s.input[1]) continue;  // zero from the start
              const int64_t begin = start >= 0 ? 0 : (-start + sx - 1) / sx,
                            end = std::min(wide, s.input[2] - 1 - start < 0 ? 0 : (s.input[2] - 1 - start) / sx + 1);
              const T* const from = x + row * s.input[2] + start;
              T* const line = planes + phase * plane + y * wide;
              for (int64_t i = begin; i < end; ++i) line[i] = from[i * sx];
            }
          for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
            for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
              const int64_t y = ky * s.dilation[1], at = kx * s.dilation[2];
              const T* const under = planes + (y % sy * sx + at % sx) * plane + y / sy * wide + at / sx;
              T sum = factorise::dot(grads, under, s.output[1] * wide);
              // The zeros between the rows may have met infinities or NaNs. The gradient is computed again without
              // those zeros.
              if (!std::isfinite(sum)) {
                sum = 0;
                for (int64_t row = 0; row < s.output[1]; ++row)
                  sum += factorise::dot(grads + row * wide, under + row * wide, s.output[2]);
              }
              T& total = to[ky * s.kernel[2] + kx];
              total = n == 0 ? sum : total + sum;
            }
        }
      }
    }
  });
}

}  // namespace

Tensor convolution_weight_gradient(const ConvolutionShape& s, const Tensor& input, const Tensor& grad,
                                   IntSpan weight_sizes) {
  const DType dtype = input.dtype(), computed = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const Tensor x = contiguous(to_dtype(input, computed)), g = contiguous(to_dtype(grad, computed));
  Tensor gradient = Tensor::empty(weight_sizes, computed);
  if (gradient.numel() == 0 || g.numel() == 0) {
    zero(gradient);
    return to_dtype(gradient, dtype);
  }
  const bool flat = s.kernel[0] == 1 && s.input[0] == 1 && s.padding[0] == 0;
  dispatch_float_double(computed, "convolution_backward", [&]<class T>() {
    if (flat && s.in_group() == 1 && s.out_group() == 1 && s.groups > 1)
      depthwise(s, x.data_as<T>(), g.data_as<T>(), gradient.data_as<T>());
    else
      by_products(s, x.data_as<T>(), g.data_as<T>(), gradient.data_as<T>());
  });
  return to_dtype(gradient, dtype);
}

}  // namespace sconce
