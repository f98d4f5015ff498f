// Maxima with indices. In row-major planes a vector holds neighbouring outputs of a row, or neighbouring elements of a
// wide window; in channels-last images it holds neighbouring channels.
#include <limits>
#include <type_traits>

#include "src/cpu/pooling/padded_rows.h"
#include "src/tensor/rows/planes.h"

namespace sconce {
namespace {

template <class T>
constexpr T kLeast = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                 : std::numeric_limits<T>::lowest();

template <class T>
bool takes(T value, T best) {
  return value > best || value != value;
}

using Window = PoolAxis::Window;

// One output element; `step` elements lie between neighbours of the input.
template <class T>
void scan_window(const PoolPlan& plan, const T* input, int64_t step, Window d, Window h, Window w, T& best,
                 int64_t& at) {
  const auto& [depth, height, width] = plan.axes;
  best = kLeast<T>;
  at = (d.begin * height.input + h.begin) * width.input + w.begin;
  for (int64_t id = d.begin; id < d.end; id += depth.dilation)
    for (int64_t ih = h.begin; ih < h.end; ih += height.dilation) {
      const int64_t row = (id * height.input + ih) * width.input;
      for (int64_t iw = w.begin; iw < w.end; iw += width.dilation) {
        const T value = input[(row + iw) * step];
        if (takes(value, best)) {
          best = value;
          at = row + iw;
        }
      }
    }
}

// The same for windows whose runs in memory are at least as long as a vector.
template <class T>
void scan_wide_window(const PoolPlan& plan, const T* input, Window d, Window h, Window w, T& best, int64_t& at) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  auto lane_best = L::splat(kLeast<T>);
  auto lane_at = L::splat_index((d.begin * height.input + h.begin) * width.input + w.begin);
  const auto steps = L::steps(1);
  const auto run = [&](int64_t begin, int64_t end) {
    for (; begin + L::kLanes <= end; begin += L::kLanes)
      L::take_larger(lane_best, lane_at, L::load(input + begin), L::splat_index(begin) + steps);
    for (int lane = 0; begin < end; ++begin, ++lane)
      if (takes(input[begin], lane_best[lane])) {
        lane_best[lane] = input[begin];
        lane_at[lane] = static_cast<typename L::Index>(begin);
      }
  };
  for (int64_t id = d.begin; id < d.end; ++id) {
    const int64_t slice = id * height.input;
    if (w.begin == 0 && w.end == width.input)
      run((slice + h.begin) * width.input, (slice + h.end) * width.input);
    else
      for (int64_t ih = h.begin; ih < h.end; ++ih)
        run((slice + ih) * width.input + w.begin, (slice + ih) * width.input + w.end);
  }
  // Each lane holds the first maximum of its elements, or their last NaN.
  best = lane_best[0];
  at = lane_at[0];
  for (int i = 1; i < L::kLanes; ++i) {
    const T value = lane_best[i];
    const bool both_nan = value != value && best != best;
    const bool equal = value == best && lane_at[i] < at;
    if (both_nan ? lane_at[i] > at : (best == best && takes(value, best)) || equal) {
      best = value;
      at = lane_at[i];
    }
  }
}

// Vectors of outputs along a row. `rows` starts at the padding; first[ow] is where the window of ow starts.
template <class T, int Stride>
void scan_rows(const PoolPlan& plan, const T* rows, int64_t pitch, const typename PoolLanes<T>::Index* first, T* out,
               int64_t* indices) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  const auto steps = L::steps(width.stride);
  for (int64_t od = 0; od < depth.output; ++od)
    for (int64_t oh = 0; oh < height.output; ++oh, out += width.output, indices += width.output) {
      const Window d = plan.windows(0)[od], h = plan.windows(1)[oh];
      for (int64_t ow = 0; ow < width.output;) {
        // The last vector overlaps the one before.
        const int64_t from = width.output >= L::kLanes ? std::min(ow, width.output - L::kLanes) : 0;
        auto best = L::splat(kLeast<T>);
        typename L::Indices at;
        std::memcpy(&at, first + from, sizeof(at));
        at += L::splat_index((d.begin * height.input + h.begin) * width.input);
        for (int64_t id = d.begin; id < d.end; id += depth.dilation)
          for (int64_t ih = h.begin; ih < h.end; ih += height.dilation) {
            const int64_t row = id * height.input + ih;
            const T* tap = rows + row * pitch + from * width.stride;
            const int64_t index = row * width.input + from * width.stride - width.padding;
            for (int64_t k = 0; k < width.kernel; ++k, tap += width.dilation)
              L::take_larger(best, at, L::template load_spaced<Stride>(tap, width.stride),
                             L::splat_index(index + k * width.dilation) + steps);
          }
        if (width.output >= L::kLanes) {
          L::store(out + from, best);
          L::store_index(indices + from, at);
        } else {
          for (int64_t i = 0; i < width.output; ++i) {
            out[i] = best[i];
            indices[i] = at[i];
          }
        }
        ow = from + L::kLanes;
      }
    }
}

template <class T>
void max_planes(const PoolPlan& plan, const T* input, T* out, int64_t* indices) {
  const auto& [depth, height, width] = plan.axes;
  const int64_t in_plane = plan.input_plane(), out_plane = plan.output_plane();
  const Window *const d = plan.windows(0), *const h = plan.windows(1), *const w = plan.windows(2);
  // One output after the other.
  const auto each = [&](const auto& scan) {
    const int64_t rows = depth.output * height.output;
    for_planes(plan.planes() * rows, in_plane / rows + 1, [&](int64_t r) noexcept {
      const T* from = input + r / rows * in_plane;
      const Window dr = d[r % rows / height.output], hr = h[r % height.output];
      for (int64_t ow = 0; ow < width.output; ++ow)
        scan(from, dr, hr, w[ow], out[r * width.output + ow], indices[r * width.output + ow]);
    });
  };
  using L = PoolLanes<T>;
  using Index = typename L::Index;
  const bool one_by_one = depth.dilation == 1 && height.dilation == 1 && width.dilation == 1;
  const int64_t run = width.kernel == width.input ? width.kernel * height.kernel : width.kernel;
  const bool wide = one_by_one && run >= L::kLanes && (!width.uniform() || width.output < L::kLanes);
  if (in_plane > std::numeric_limits<Index>::max() / 2 || (!wide && !width.uniform()))
    return each([&](const T* from, Window dr, Window hr, Window wr, T& best, int64_t& at) {
      scan_window(plan, from, 1, dr, hr, wr, best, at);
    });
  if (wide)
    return each([&](const T* from, Window dr, Window hr, Window wr, T& best, int64_t& at) {
      scan_wide_window(plan, from, dr, hr, wr, best, at);
    });

  const int64_t table = width.output + L::kLanes;
  const Tensor first_table = Tensor::empty(IntSpan(&table, 1), kDType<Index>);
  Index* const first = first_table.data_as<Index>();
  for (int64_t ow = 0; ow < table; ++ow) first[ow] = static_cast<Index>(ow < width.output ? w[ow].begin : 0);

  const auto scan = width.stride == 1 ? scan_rows<T, 1> : width.stride == 2 ? scan_rows<T, 2> : scan_rows<T, 0>;
  for_padded_planes(plan, kLeast<T>, [&](const T* rows, int64_t pitch, int64_t p) noexcept {
    scan(plan, rows, pitch, first, out + p * out_plane, indices + p * out_plane);
  });
}

// All channels of one output element.
template <class T, int Vectors>
void scan_channels(const PoolPlan& plan, const T* input, Window d, Window h, Window w, int64_t c, T* out,
                   int64_t* indices) {
  using L = PoolLanes<T>;
  const auto& [depth, height, width] = plan.axes;
  typename L::Values best[Vectors];
  typename L::Indices at[Vectors];
  for (int v = 0; v < Vectors; ++v) {
    best[v] = L::splat(kLeast<T>);
    at[v] = L::splat_index((d.begin * height.input + h.begin) * width.input + w.begin);
  }
  for (int64_t id = d.begin; id < d.end; id += depth.dilation)
    for (int64_t ih = h.begin; ih < h.end; ih += height.dilation)
      for (int64_t iw = w.begin; iw < w.end; iw += width.dilation) {
        const int64_t i = (id * height.input + ih) * width.input + iw;
        const auto index = L::splat_index(i);
        const T* from = input + i * plan.channels + c;
        for (int v = 0; v < Vectors; ++v) L::take_larger(best[v], at[v], L::load(from + v * L::kLanes), index);
      }
  for (int v = 0; v < Vectors; ++v) {
    L::store(out + c + v * L::kLanes, best[v]);
    L::store_index(indices + c + v * L::kLanes, at[v]);
  }
}

template <class T>
void max_pixels(const PoolPlan& plan, const T* input, T* out, int64_t* indices) {
  constexpr int kLanes = PoolLanes<T>::kLanes;
  const auto& [depth, height, width] = plan.axes;
  const int64_t channels = plan.channels, in_plane = plan.input_plane(), rows = depth.output * height.output;
  const Window *const d = plan.windows(0), *const h = plan.windows(1), *const w = plan.windows(2);
  const bool lanes = in_plane <= std::numeric_limits<typename PoolLanes<T>::Index>::max();
  for_planes(plan.batch * rows, channels * (in_plane / rows + 1), [&](int64_t r) noexcept {
    const T* from = input + r / rows * in_plane * channels;
    const Window dr = d[r % rows / height.output], hr = h[r % height.output];
    for (int64_t ow = 0; ow < width.output; ++ow) {
      T* const to = out + (r * width.output + ow) * channels;
      int64_t* const at = indices + (r * width.output + ow) * channels;
      int64_t c = 0;
      for (; lanes && c + 4 * kLanes <= channels; c += 4 * kLanes)
        scan_channels<T, 4>(plan, from, dr, hr, w[ow], c, to, at);
      for (; lanes && c + kLanes <= channels; c += kLanes) scan_channels<T, 1>(plan, from, dr, hr, w[ow], c, to, at);
      for (; c < channels; ++c) scan_window(plan, from + c, channels, dr, hr, w[ow], to[c], at[c]);
    }
  });
}

}  // namespace

template <class T>
void max_pool(const PoolPlan& plan, T* out, int64_t* indices) {
  const T* input = plan.input.data_as<T>();
  if (plan.channels_last)
    max_pixels(plan, input, out, indices);
  else
    max_planes(plan, input, out, indices);
}

template void max_pool(const PoolPlan&, float*, int64_t*);
template void max_pool(const PoolPlan&, double*, int64_t*);
template void max_pool(const PoolPlan&, int64_t*, int64_t*);
template void max_pool(const PoolPlan&, int32_t*, int64_t*);

}  // namespace sconce
