#include <type_traits>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/pooling/resample_kernels.h"

namespace sconce::cuda {
namespace {

// The kTaps taps of a position. What the loop over channels needs of them stays in registers.
template <class C, int kTaps>
struct Taps {
  template <class T>
  __device__ Taps(const GridGeometry& g, const T* grid) {
    GridGeometry known = g;  // kTaps implies these, so the compiler knows them
    if (kTaps == 4 || kTaps == 16) known.dims = 2;
    if (kTaps == 8) known.dims = 3;
    known.interpolation = kTaps == 1    ? GridInterpolation::kNearest
                          : kTaps == 16 ? GridInterpolation::kCubic
                                        : GridInterpolation::kLinear;
    C place[3];
    for (int d = 0; d < known.dims; ++d) place[d] = widened(grid[d]);
    grid_taps(known, place, tap);
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      offset[k] = tap[k].offset;
      weight[k] = tap[k].weight;
    }
  }
  GridTap<C> tap[kTaps];
  int64_t offset[kTaps];
  C weight[kTaps];
};
// Calls f with the number of taps per position as a std::integral_constant.
template <class F>
void by_taps(const GridGeometry& g, F&& f) {
  switch (grid_tap_count(g)) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 4:
      return f(std::integral_constant<int, 4>());
    case 8:
      return f(std::integral_constant<int, 8>());
    case 16:
      return f(std::integral_constant<int, 16>());
    default:
      return f(std::integral_constant<int, 64>());
  }
}

// The 64 taps of a cubic in three dimensions, kept as three axes: 64 offsets and weights per thread would be too many.
template <class C>
struct CubicAxes {
  template <class T>
  __device__ CubicAxes(const GridGeometry& g, const T* grid)
      : x(g, 0, static_cast<C>(widened(grid[0]))),
        y(g, 1, static_cast<C>(widened(grid[1]))),
        z(g, 2, static_cast<C>(widened(grid[2]))) {
    for (int i = 0; i < 4; ++i) {
      row[i] = y.at[i] * g.step[1];
      layer[i] = z.at[i] * g.step[2];
    }
  }
  // Calls f(offset, i, j, k) for each tap; the offset is -1 outside the input.
  template <class F>
  __device__ void each(F&& f) const {
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool has_row = z.at[k] >= 0 && y.at[j] >= 0;
        const int64_t begin = layer[k] + row[j];
#pragma unroll
        for (int i = 0; i < 4; ++i) f(has_row && x.at[i] >= 0 ? begin + x.at[i] : int64_t{-1}, i, j, k);
      }
  }
  GridCubic<C> x, y, z;
  int64_t row[4], layer[4];
};

// Beyond the input a cubic reads zeros, so that a NaN weight shows; other modes skip these taps.
template <class T, int kTaps>
void sample_by(const GridGeometry& g, const T* from, const T* places, T* to, cudaStream_t stream) {
  const GridGeometry geometry = g;
  const Divider out_plane(g.out_plane);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const GridGeometry& g = geometry;
    const Taps<C, kTaps> taps(g, places + i * g.dims);
    int64_t n = i;
    const int64_t place = out_plane.take(n);
    const T* plane = from + n * g.channels * g.in_plane;
    T* result = to + n * g.channels * g.out_plane + place;
    for (int64_t c = 0; c < g.channels; ++c, plane += g.in_plane, result += g.out_plane) {
      C sum = 0;
#pragma unroll
      for (int k = 0; k < kTaps; ++k)
        if (taps.offset[k] >= 0)
          sum += widened(plane[taps.offset[k]]) * taps.weight[k];
        else if (kTaps == 16)
          sum += 0 * taps.weight[k];
      *result = narrowed<T>(sum);
    }
  });
}
template <class T>
void sample_cubic_3d(const GridGeometry& g, const T* from, const T* places, T* to, cudaStream_t stream) {
  const GridGeometry geometry = g;
  const Divider out_plane(g.out_plane);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const GridGeometry& g = geometry;
    const CubicAxes<C> axes(g, places + i * 3);
    int64_t n = i;
    const int64_t place = out_plane.take(n);
    const T* plane = from + n * g.channels * g.in_plane;
    T* result = to + n * g.channels * g.out_plane + place;
    for (int64_t c = 0; c < g.channels; ++c, plane += g.in_plane, result += g.out_plane) {
      C sum = 0;
      axes.each([&](int64_t offset, int i, int j, int k) {
        const C value = offset >= 0 ? widened(plane[offset]) : C(0);
        sum += value * (axes.z.weight[k] * axes.y.weight[j]) * axes.x.weight[i];
      });
      *result = narrowed<T>(sum);
    }
  });
}
template <class T>
cudaError_t sample(const GridGeometry& g, const void* in, const void* grid, void* out, cudaStream_t stream) {
  const T *from = static_cast<const T*>(in), *places = static_cast<const T*>(grid);
  T* to = static_cast<T*>(out);
  by_taps(g, [&](auto taps) {
    constexpr int kTaps = decltype(taps)::value;
    if constexpr (kTaps == 64)
      sample_cubic_3d(g, from, places, to, stream);
    else
      sample_by<T, kTaps>(g, from, places, to, stream);
  });
  return cudaGetLastError();
}

template <class T, int kTaps>
void slopes_by(const GridGeometry& g, const T* grad, const T* from, const T* places, Compute<T>* sums, T* to,
               cudaStream_t stream) {
  const GridGeometry geometry = g;
  const Divider out_plane(g.out_plane);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const GridGeometry& g = geometry;
    const Taps<C, kTaps> taps(g, places + i * g.dims);
    C products[kTaps] = {};
    int64_t n = i;
    const int64_t place = out_plane.take(n);
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = (n * g.channels + c) * g.in_plane;
      const C own = widened(grad[(n * g.channels + c) * g.out_plane + place]);
#pragma unroll
      for (int k = 0; k < kTaps; ++k) {
        if (taps.offset[k] < 0) continue;  // the product stays 0
        products[k] += widened(from[plane + taps.offset[k]]) * own;
        if (sums) atomicAdd(sums + plane + taps.offset[k], taps.weight[k] * own);
      }
    }
    for (int d = 0; d < g.dims; ++d) {
      C slope = 0;
#pragma unroll
      for (int k = 0; k < kTaps; ++k)
        if (kTaps == 16 || taps.offset[k] >= 0) slope += products[k] * taps.tap[k].slope[d];
      to[i * g.dims + d] = narrowed<T>(slope);
    }
  });
}
template <class T>
void slopes_cubic_3d(const GridGeometry& g, const T* grad, const T* from, const T* places, Compute<T>* sums, T* to,
                     cudaStream_t stream) {
  const GridGeometry geometry = g;
  const Divider out_plane(g.out_plane);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const GridGeometry& g = geometry;
    const CubicAxes<C> axes(g, places + i * 3);
    int64_t n = i;
    const int64_t place = out_plane.take(n);
    C slope[3] = {};
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = (n * g.channels + c) * g.in_plane;
      const C own = widened(grad[(n * g.channels + c) * g.out_plane + place]);
      axes.each([&](int64_t offset, int i, int j, int k) {
        const C x = axes.x.weight[i], y = axes.y.weight[j], z = axes.z.weight[k];
        const C product = offset >= 0 ? widened(from[plane + offset]) * own : C(0);
        slope[0] += product * axes.x.slope[i] * y * z;
        slope[1] += product * x * axes.y.slope[j] * z;
        slope[2] += product * x * y * axes.z.slope[k];
        if (sums && offset >= 0) atomicAdd(sums + plane + offset, x * y * z * own);
      });
    }
    for (int d = 0; d < 3; ++d) to[i * 3 + d] = narrowed<T>(slope[d]);
  });
}
template <class T>
cudaError_t slopes(const GridGeometry& g, const void* grads, const void* in, const void* grid, void* by_input,
                   void* by_grid, cudaStream_t stream) {
  const T *grad = static_cast<const T*>(grads), *from = static_cast<const T*>(in),
          *places = static_cast<const T*>(grid);
  auto* sums = static_cast<Compute<T>*>(by_input);
  T* to = static_cast<T*>(by_grid);
  by_taps(g, [&](auto taps) {
    constexpr int kTaps = decltype(taps)::value;
    if constexpr (kTaps == 64)
      slopes_cubic_3d(g, grad, from, places, sums, to, stream);
    else
      slopes_by<T, kTaps>(g, grad, from, places, sums, to, stream);
  });
  return cudaGetLastError();
}

struct Lines {
  GatheredLine line[3];
};

// Weights are real even for complex numbers.
template <class C>
struct WeightOf {
  using Type = C;
};
template <class R>
struct WeightOf<thrust::complex<R>> {
  using Type = R;
};

// A coordinate's entries of the innermost line, in registers if there are at most kTaps of them; 0: any number.
template <class C, int kTaps>
struct RowTaps {
  using Weight = typename WeightOf<C>::Type;
  __device__ RowTaps(const GatheredLine& line, int64_t i) : count(static_cast<int>(line.begin[i + 1] - line.begin[i])) {
    const int64_t first = line.begin[i];
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      if (k >= count) break;
      at[k] = static_cast<int>(line.at[first + k]);
      weight[k] = static_cast<Weight>(line.weight[first + k]);
    }
  }
  template <class T>
  __device__ C sum(const T* row) const {
    C sum = 0;
#pragma unroll
    for (int k = 0; k < kTaps; ++k)
      if (k < count) sum += widened(row[at[k]]) * weight[k];
    return sum;
  }
  int count, at[kTaps];
  Weight weight[kTaps];
};
template <class C>
struct RowTaps<C, 0> {
  using Weight = typename WeightOf<C>::Type;
  __device__ RowTaps(const GatheredLine& given, int64_t i)
      : line(given), begin(line.begin[i]), end(line.begin[i + 1]) {}
  template <class T>
  __device__ C sum(const T* row) const {
    C sum = 0;
    for (int64_t x = begin; x < end; ++x) sum += widened(row[line.at[x]]) * static_cast<Weight>(line.weight[x]);
    return sum;
  }
  const GatheredLine& line;
  int64_t begin, end;
};

template <class T, int kTaps>
void gather_as(const Lines& given, int64_t planes, const T* grad, T* to, cudaStream_t stream) {
  const Lines lines = given;
  const GatheredLine(&line)[3] = given.line;
  const int64_t plane = line[0].input * line[1].input * line[2].input,
                out_plane = line[0].output * line[1].output * line[2].output;
  const Divider by_width(line[2].input), by_height(line[1].input), by_depth(line[0].input);
  grid_loop(planes * plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    using Weight = typename WeightOf<C>::Type;
    const GatheredLine &depth = lines.line[0], &height = lines.line[1], &width = lines.line[2];
    int64_t number = i;
    const int64_t w = by_width.take(number), h = by_height.take(number), d = by_depth.take(number);
    const T* from = grad + number * out_plane;
    const RowTaps<C, kTaps> taps(width, w);
    C sum = 0;
    for (int64_t z = depth.begin[d]; z < depth.begin[d + 1]; ++z)
      for (int64_t y = height.begin[h]; y < height.begin[h + 1]; ++y)
        sum += taps.sum(from + (depth.at[z] * height.output + height.at[y]) * width.output) *
               static_cast<Weight>(depth.weight[z] * height.weight[y]);
    to[i] = narrowed<T>(sum);
  });
}
template <class T>
cudaError_t gather(const GatheredLine (&given)[3], int64_t planes, const void* grads, void* out, cudaStream_t stream) {
  const Lines lines{{given[0], given[1], given[2]}};
  const T* grad = static_cast<const T*>(grads);
  T* to = static_cast<T*>(out);
  if (given[2].most <= 4 && given[2].output <= INT32_MAX)
    gather_as<T, 4>(lines, planes, grad, to, stream);
  else
    gather_as<T, 0>(lines, planes, grad, to, stream);
  return cudaGetLastError();
}

// The padded coordinates that repeat coordinate i of an input's side: [begin, end).
struct Repeats {
  __device__ Repeats(const PaddedLines& lines, int axis, int64_t i) {
    const int64_t out = lines.out[axis], at = i + lines.before[axis];
    begin = i == 0 ? 0 : at < 0 ? 0 : at > out ? out : at;
    end = i == lines.in[axis] - 1 ? out : at < 0 ? 0 : at >= out ? out : at + 1;
  }
  int64_t begin, end;
};

template <class T>
cudaError_t border_slopes(const PaddedLines& given, int64_t planes, const void* grads, void* sums,
                          cudaStream_t stream) {
  const PaddedLines lines = given;
  const T* grad = static_cast<const T*>(grads);
  T* to = static_cast<T*>(sums);
  constexpr int kAtOnce = 4;  // neighbours of a row
  const int64_t out_plane = lines.out[0] * lines.out[1] * lines.out[2], columns = (lines.in[2] + kAtOnce - 1) / kAtOnce;
  const Divider by_columns(columns), by_height(lines.in[1]), by_depth(lines.in[0]);
  grid_loop(planes * lines.in[0] * lines.in[1] * columns, stream, [=] __device__(int64_t i) {
    int64_t number = i;
    const int64_t first = by_columns.take(number) * kAtOnce, row = number;
    const Repeats h(lines, 1, by_height.take(number)), d(lines, 0, by_depth.take(number));
    const T* from = grad + number * out_plane;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k >= lines.in[2]) break;
      const Repeats w(lines, 2, first + k);
      Compute<T> sum = 0;
      for (int64_t z = d.begin; z < d.end; ++z)
        for (int64_t y = h.begin; y < h.end; ++y) {
          const T* at = from + (z * lines.out[1] + y) * lines.out[2];
          for (int64_t x = w.begin; x < w.end; ++x) sum += widened(at[x]);
        }
      to[row * lines.in[2] + first + k] = narrowed<T>(sum);
    }
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_grid_sample(const GridGeometry& geometry, int dtype, const void* in, const void* grid, void* out,
                               cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(sample, geometry, in, grid, out, stream));
}

cudaError_t launch_grid_slopes(const GridGeometry& geometry, int dtype, const void* grads, const void* in,
                               const void* grid, void* by_input, void* by_grid, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(slopes, geometry, grads, in, grid, by_input, by_grid, stream));
}

cudaError_t launch_gather_lines(const GatheredLine (&lines)[3], int64_t planes, int dtype, const void* grads, void* out,
                                cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(gather, lines, planes, grads, out, stream)
                                    SCONCE_COMPLEX_CASES(gather, lines, planes, grads, out, stream));
}

cudaError_t launch_border_slopes(const PaddedLines& lines, int64_t planes, int dtype, const void* grads, void* sums,
                                 cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype, SCONCE_FLOATING_CASES(border_slopes, lines, planes, grads, sums, stream)
                                    SCONCE_COMPLEX_CASES(border_slopes, lines, planes, grads, sums, stream));
}

}  // namespace sconce::cuda
