// A thread computes one bin of one region and channel.
#include <cfloat>

#include "src/cuda/vision/region_bins.cuh"

namespace sconce::cuda {
namespace {

template <class T>
__device__ void window_of(const RegionGeometry& g, const Bin<T>& bin, bool closed, int64_t cut, RegionWindow& rows,
                          RegionWindow& columns) {
  rows = region_window(g.scale, bin.roi[2], bin.roi[4], g.pooled_height, closed, g.height - cut, bin.ph);
  columns = region_window(g.scale, bin.roi[1], bin.roi[3], g.pooled_width, closed, g.width - cut, bin.pw);
}

template <class T>
cudaError_t pool(const RegionCall& call, int64_t count, cudaStream_t stream) {
  grid_loop(count, stream, [call] __device__(int64_t i) {
    using F = PlainNumber<T>;
    const RegionGeometry& g = call.geometry;
    const Bin<T> bin(call, i);
    RegionWindow rows{0, 0}, columns{0, 0};
    if (bin.image >= 0) window_of(g, bin, true, 0, rows, columns);
    const bool none = rows.end <= rows.begin || columns.end <= columns.begin;
    F most = none ? F(0) : static_cast<F>(T(F(-FLT_MAX)));
    int32_t at = -1;
    const T* const plane = bin.plane(call, bin.channel);
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x)
        if (const F element = static_cast<F>(plane[y * g.width + x]); element > most) {
          most = element;
          at = static_cast<int32_t>(y * g.width + x);
        }
    static_cast<T*>(call.out)[i] = T(most);
    call.also[i] = at;
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t pool_by_position(const RegionCall& call, int64_t count, cudaStream_t stream) {
  grid_loop(count, stream, [call] __device__(int64_t i) {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const RegionGeometry& g = call.geometry;
    const Bin<T> bin(call, i);
    const int64_t channel = (bin.channel * g.pooled_height + bin.ph) * g.pooled_width + bin.pw;
    N result(F(0));
    RegionWindow rows{0, 0}, columns{0, 0};
    if (bin.image >= 0) window_of(g, bin, false, 1, rows, columns);
    if (rows.begin < rows.end && columns.begin < columns.end) {
      const T* const plane = bin.plane(call, channel);
      N sum(F(0));
      for (int64_t y = rows.begin; y < rows.end; ++y)
        for (int64_t x = columns.begin; x < columns.end; ++x) sum = sum + N(plane[y * g.width + x]);
      result = sum / N(static_cast<F>((rows.end - rows.begin) * (columns.end - columns.begin)));
    }
    static_cast<T*>(call.out)[i] = static_cast<T>(result);
    call.also[i] = static_cast<int32_t>(channel);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_roi_pool(const RegionCall& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_DTYPE_CASE(5, __half, pool, call, bins_of(call.geometry), stream)
                                         SCONCE_SINGLE_DOUBLE_CASES(pool, call, bins_of(call.geometry), stream));
}
cudaError_t launch_ps_roi_pool(const RegionCall& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype,
                         SCONCE_DTYPE_CASE(5, __half, pool_by_position, call, bins_of(call.geometry), stream)
                             SCONCE_SINGLE_DOUBLE_CASES(pool_by_position, call, bins_of(call.geometry), stream));
}

}  // namespace sconce::cuda
