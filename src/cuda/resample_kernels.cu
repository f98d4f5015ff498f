#include "src/cuda/device_types.cuh"
#include "src/cuda/grid_loop.cuh"
#include "src/cuda/resample_kernels.h"

namespace sconce::cuda {
namespace {

constexpr int kMostTaps = 16;

template <class T>
__device__ int taps_at(const GridGeometry& g, const T* grid, GridTap<Compute<T>>* taps) {
  Compute<T> place[3];
  for (int d = 0; d < g.dims; ++d) place[d] = widened(grid[d]);
  return grid_taps(g, place, taps);
}

template <class T>
cudaError_t sample(const GridGeometry& geometry, const void* in, const void* grid, void* out, cudaStream_t stream) {
  const GridGeometry g = geometry;
  const T* from = static_cast<const T*>(in);
  const T* places = static_cast<const T*>(grid);
  T* to = static_cast<T*>(out);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    GridTap<C> taps[kMostTaps];
    const int count = taps_at(g, places + i * g.dims, taps);
    const int64_t n = i / g.out_plane, place = i % g.out_plane;
    for (int64_t c = 0; c < g.channels; ++c) {
      const T* plane = from + (n * g.channels + c) * g.in_plane;
      C sum = 0;
      for (int k = 0; k < count; ++k)
        if (taps[k].offset >= 0) sum += widened(plane[taps[k].offset]) * taps[k].weight;
      to[(n * g.channels + c) * g.out_plane + place] = narrowed<T>(sum);
    }
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t slopes(const GridGeometry& geometry, const void* grads, const void* in, const void* grid, void* by_input,
                   void* by_grid, cudaStream_t stream) {
  using C = Compute<T>;
  const GridGeometry g = geometry;
  const T* grad = static_cast<const T*>(grads);
  const T* from = static_cast<const T*>(in);
  const T* places = static_cast<const T*>(grid);
  C* sums = static_cast<C*>(by_input);
  T* to = static_cast<T*>(by_grid);
  grid_loop(g.batch * g.out_plane, stream, [=] __device__(int64_t i) {
    GridTap<C> taps[kMostTaps];
    C products[kMostTaps];
    const int count = taps_at(g, places + i * g.dims, taps);
    for (int k = 0; k < count; ++k) products[k] = 0;
    const int64_t n = i / g.out_plane, place = i % g.out_plane;
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t plane = (n * g.channels + c) * g.in_plane;
      const C own = widened(grad[(n * g.channels + c) * g.out_plane + place]);
      for (int k = 0; k < count; ++k) {
        if (taps[k].offset < 0) continue;
        products[k] += widened(from[plane + taps[k].offset]) * own;
        if (sums) atomicAdd(sums + plane + taps[k].offset, taps[k].weight * own);
      }
    }
    for (int d = 0; d < g.dims; ++d) {
      C slope = 0;
      for (int k = 0; k < count; ++k)
        if (taps[k].offset >= 0) slope += products[k] * taps[k].slope[d];
      to[i * g.dims + d] = narrowed<T>(slope);
    }
  });
  return cudaGetLastError();
}

struct Lines {
  GatheredLine line[3];
};

template <class T>
cudaError_t gather(const GatheredLine (&given)[3], int64_t planes, const void* grads, void* out, cudaStream_t stream) {
  const Lines lines{{given[0], given[1], given[2]}};
  const T* grad = static_cast<const T*>(grads);
  T* to = static_cast<T*>(out);
  const int64_t plane = given[0].input * given[1].input * given[2].input,
                out_plane = given[0].output * given[1].output * given[2].output;
  grid_loop(planes * plane, stream, [=] __device__(int64_t i) {
    using C = Compute<T>;
    const GatheredLine &depth = lines.line[0], &height = lines.line[1], &width = lines.line[2];
    const int64_t w = i % width.input, h = i / width.input % height.input,
                  d = i / (width.input * height.input) % depth.input;
    const T* from = grad + i / plane * out_plane;
    C sum = 0;
    for (int64_t z = depth.begin[d]; z < depth.begin[d + 1]; ++z)
      for (int64_t y = height.begin[h]; y < height.begin[h + 1]; ++y) {
        const T* row = from + (depth.at[z] * height.output + height.at[y]) * width.output;
        const double outer = depth.weight[z] * height.weight[y];
        for (int64_t x = width.begin[w]; x < width.begin[w + 1]; ++x)
          sum += widened(row[width.at[x]]) * static_cast<C>(outer * width.weight[x]);
      }
    to[i] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_grid_sample(const GridGeometry& geometry, int dtype, const void* in, const void* grid, void* out,
                               cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(sample, geometry, in, grid, out, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_grid_slopes(const GridGeometry& geometry, int dtype, const void* grads, const void* in,
                               const void* grid, void* by_input, void* by_grid, cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(slopes, geometry, grads, in, grid, by_input, by_grid, stream)
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t launch_gather_lines(const GatheredLine (&lines)[3], int64_t planes, int dtype, const void* grads, void* out,
                                cudaStream_t stream) {
  switch (dtype) {
    SCONCE_FLOATING_CASES(gather, lines, planes, grads, out, stream)
    SCONCE_COMPLEX_CASES(gather, lines, planes, grads, out, stream)
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace sconce::cuda
