// Averages, laid out over vectors as the maxima are. Windows are summed in ATen's order, except wide ones.
#include <type_traits>

#include "src/cpu/pooling/padded_rows.h"
#include "src/tensor/rows/planes.h"

namespace sconce {
namespace {

using Window = PoolAxis::Window;

// What a sum is divided by.
struct Divisor {
  const PoolPlan& plan;
  bool include_padding;
  int64_t fixed;  // 0: the window's size
  int64_t along(int axis, int64_t o) const {
    const PoolAxis& a = plan.axes[static_cast<size_t>(axis)];
    if (include_padding) return a.padded_size(o);
    const PoolAxis::Window window = plan.windows(axis)[o];
    return window.end - window.begin;
  }
  int64_t rows(int64_t od, int64_t oh) const { return fixed ? fixed : along(0, od) * along(1, oh); }
  int64_t width(int64_t ow) const { return fixed ? 1 : along(2, ow); }
};

// One output element of a row-major plane.
template <class T>
T window_sum(const PoolPlan& plan, const T* input, Window d, Window h, Window w) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  const bool whole_rows = w.begin == 0 && w.end == width.input;  // they lie together
  const int64_t run = whole_rows ? (h.end - h.begin) * width.input : w.end - w.begin;
  const int64_t runs = whole_rows ? 1 : h.end - h.begin;
  T sum = 0;
  if (run < L::kLanes) {
    for (int64_t id = d.begin; id < d.end; ++id) {
      const T* from = input + (id * height.input + h.begin) * width.input + w.begin;
      for (int64_t ih = 0; ih < runs; ++ih, from += width.input)
        for (int64_t i = 0; i < run; ++i) sum += from[i];
    }
    return sum;
  }
  typename L::Values lanes{};
  for (int64_t id = d.begin; id < d.end; ++id) {
    const T* from = input + (id * height.input + h.begin) * width.input + w.begin;
    for (int64_t ih = 0; ih < runs; ++ih, from += width.input) {
      int64_t i = 0;
      for (; i + L::kLanes <= run; i += L::kLanes) lanes += L::load(from + i);
      for (; i < run; ++i) sum += from[i];
    }
  }
  for (int i = 0; i < L::kLanes; ++i) sum += lanes[i];
  return sum;
}

// Vectors of outputs along a row; `rows` has the padding written out, `divisors` holds one number for each ow.
template <class T, int Stride>
void average_rows(const PoolPlan& plan, const T* rows, int64_t pitch, const Divisor& divisor, const T* divisors,
                  T* out) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  for (int64_t od = 0; od < depth.output; ++od)
    for (int64_t oh = 0; oh < height.output; ++oh, out += width.output) {
      const Window d = plan.windows(0)[od], h = plan.windows(1)[oh];
      const auto rows_divisor = L::splat(static_cast<T>(divisor.rows(od, oh)));
      for (int64_t ow = 0; ow < width.output;) {
        // The last vector overlaps the one before.
        const int64_t from = width.output >= L::kLanes ? std::min(ow, width.output - L::kLanes) : 0;
        typename L::Values sum{};
        for (int64_t id = d.begin; id < d.end; ++id)
          for (int64_t ih = h.begin; ih < h.end; ++ih) {
            const T* tap = rows + (id * height.input + ih) * pitch + from * width.stride;
            for (int64_t k = 0; k < width.kernel; ++k, ++tap) sum += L::template load_spaced<Stride>(tap, width.stride);
          }
        sum /= rows_divisor * L::load(divisors + from);
        if (width.output >= L::kLanes)
          L::store(out + from, sum);
        else
          for (int64_t i = 0; i < width.output; ++i) out[i] = sum[i];
        ow = from + L::kLanes;
      }
    }
}

template <class T>
void average_planes(const PoolPlan& plan, const T* input, const Divisor& divisor, T* out) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  const int64_t in_plane = plan.input_plane(), out_plane = plan.output_plane();
  const bool lanes = std::is_floating_point_v<T> && width.uniform() &&
                     !(width.output < L::kLanes && width.kernel >= L::kLanes) &&
                     !(width.output == 1 && width.kernel == width.input);
  if (!lanes) {
    const int64_t rows = depth.output * height.output;
    const Window *const d = plan.windows(0), *const h = plan.windows(1), *const w = plan.windows(2);
    return for_planes(plan.planes() * rows, in_plane / rows + 1, [&](int64_t r) noexcept {
      const int64_t od = r % rows / height.output, oh = r % height.output, rows_divisor = divisor.rows(od, oh);
      for (int64_t ow = 0; ow < width.output; ++ow)
        out[r * width.output + ow] = window_sum(plan, input + r / rows * in_plane, d[od], h[oh], w[ow]) /
                                     static_cast<T>(rows_divisor * divisor.width(ow));
    });
  }

  const int64_t table = width.output + L::kLanes;
  const Tensor divisors = Tensor::empty(IntSpan(&table, 1), kDType<T>);
  for (int64_t ow = 0; ow < table; ++ow)
    divisors.data_as<T>()[ow] = static_cast<T>(ow < width.output ? divisor.width(ow) : 1);

  const auto average = width.stride == 1   ? average_rows<T, 1>
                       : width.stride == 2 ? average_rows<T, 2>
                                           : average_rows<T, 0>;
  for_padded_planes(plan, T(0), [&](const T* rows, int64_t pitch, int64_t p) noexcept {
    average(plan, rows, pitch, divisor, divisors.data_as<T>(), out + p * out_plane);
  });
}

template <class T, int Vectors>
void average_channels(const PoolPlan& plan, const T* input, Window d, Window h, Window w, T divisor, T* out) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  typename L::Values sum[Vectors]{};
  for (int64_t id = d.begin; id < d.end; ++id)
    for (int64_t ih = h.begin; ih < h.end; ++ih) {
      const T* from = input + ((id * height.input + ih) * width.input + w.begin) * plan.channels;
      for (int64_t iw = w.begin; iw < w.end; ++iw, from += plan.channels)
        for (int v = 0; v < Vectors; ++v) sum[v] += L::load(from + v * L::kLanes);
    }
  for (int v = 0; v < Vectors; ++v) L::store(out + v * L::kLanes, sum[v] / L::splat(divisor));
}

template <class T>
void average_pixels(const PoolPlan& plan, const T* input, const Divisor& divisor, T* out) {
  constexpr int kLanes = PoolLanes<T>::kLanes;
  const auto& [depth, height, width] = plan.axes;
  const int64_t channels = plan.channels, in_plane = plan.input_plane(), rows = depth.output * height.output;
  const Window *const d = plan.windows(0), *const h = plan.windows(1), *const w = plan.windows(2);
  for_planes(plan.batch * rows, channels * (in_plane / rows + 1), [&](int64_t r) noexcept {
    const T* from = input + r / rows * in_plane * channels;
    const int64_t od = r % rows / height.output, oh = r % height.output, rows_divisor = divisor.rows(od, oh);
    for (int64_t ow = 0; ow < width.output; ++ow) {
      const T number = static_cast<T>(rows_divisor * divisor.width(ow));
      T* const to = out + (r * width.output + ow) * channels;
      int64_t c = 0;
      for (; c + 4 * kLanes <= channels; c += 4 * kLanes)
        average_channels<T, 4>(plan, from + c, d[od], h[oh], w[ow], number, to + c);
      for (; c + kLanes <= channels; c += kLanes)
        average_channels<T, 1>(plan, from + c, d[od], h[oh], w[ow], number, to + c);
      for (; c < channels; ++c) {
        T sum = 0;
        for (int64_t id = d[od].begin; id < d[od].end; ++id)
          for (int64_t ih = h[oh].begin; ih < h[oh].end; ++ih)
            for (int64_t iw = w[ow].begin; iw < w[ow].end; ++iw)
              sum += from[((id * height.input + ih) * width.input + iw) * channels + c];
        to[c] = sum / number;
      }
    }
  });
}

}  // namespace

template <class T>
void average_pool(const PoolPlan& plan, T* out, bool include_padding, int64_t divisor) {
  const Divisor by{plan, include_padding, divisor};
  const T* input = plan.input.data_as<T>();
  if (plan.channels_last)
    average_pixels(plan, input, by, out);
  else
    average_planes(plan, input, by, out);
}

template <class T>
void average_pool_rounded(const PoolPlan& plan, T* out) {
  const auto& [depth, height, width] = plan.axes;
  const int64_t in_plane = plan.input_plane(), out_plane = plan.output_plane();
  const T* const input = plan.input.data_as<T>();
  for_planes(plan.planes() * out_plane, in_plane / out_plane + 1, [&](int64_t i) noexcept {
    const T* from = input + i / out_plane * in_plane;
    const int64_t o = i % out_plane;
    const Window d = plan.windows(0)[o / (width.output * height.output)];
    const Window h = plan.windows(1)[o / width.output % height.output];
    const Window w = plan.windows(2)[o % width.output];
    T sum(0.0f);
    for (int64_t id = d.begin; id < d.end; ++id)
      for (int64_t ih = h.begin; ih < h.end; ++ih)
        for (int64_t iw = w.begin; iw < w.end; ++iw) sum = T(sum + from[(id * height.input + ih) * width.input + iw]);
    for (const Window side : {d, h, w}) sum = T(sum / T(static_cast<float>(side.end - side.begin)));
    out[i] = sum;
  });
}

template void average_pool_rounded(const PoolPlan&, Half*);
template void average_pool_rounded(const PoolPlan&, BFloat16*);
template void average_pool(const PoolPlan&, float*, bool, int64_t);
template void average_pool(const PoolPlan&, double*, bool, int64_t);
template void average_pool(const PoolPlan&, int64_t*, bool, int64_t);

}  // namespace sconce
