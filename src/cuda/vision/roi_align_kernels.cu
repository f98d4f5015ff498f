// A thread computes one bin of one region and channel.
#include "src/cuda/vision/region_bins.cuh"

namespace sconce::cuda {
namespace {

// The sum of a bin's points, and how many there are, those outside of the image among them.
template <class T>
__device__ RoundedNumber<T> sum_points(const RegionGeometry& g, const Bin<T>& bin, const T* plane, int64_t& count) {
  using N = RoundedNumber<T>;
  const RegionAxis<T> rows(g, bin.roi[2], bin.roi[4], g.pooled_height, g.height);
  const RegionAxis<T> columns(g, bin.roi[1], bin.roi[3], g.pooled_width, g.width);
  count = rows.count * columns.count;
  N sum(PlainNumber<T>(0));
  if (columns.count <= 0) return sum;
  rows.visit_points(bin.ph, [&](const RegionPoint<T>& row, int64_t row_times) {
    const T *const low = plane + row.low * g.width, *const high = plane + row.high * g.width;
    columns.visit_points(bin.pw, [&](const RegionPoint<T>& column, int64_t column_times) {
      const N value = row.low_weight * column.low_weight * N(low[column.low]) +
                      row.low_weight * column.high_weight * N(low[column.high]) +
                      row.high_weight * column.low_weight * N(high[column.low]) +
                      row.high_weight * column.high_weight * N(high[column.high]);
      sum = sum + region_repeated(value, row_times * column_times);
    });
  });
  return sum;
}

template <class T>
cudaError_t align(const RegionCall& call, int64_t count, cudaStream_t stream) {
  grid_loop(count, stream, [call] __device__(int64_t i) {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const Bin<T> bin(call, i);
    N result(F(0));
    if (bin.image >= 0) {
      int64_t points = 0;
      const N sum = sum_points(call.geometry, bin, bin.plane(call, bin.channel), points);
      result = sum / N(static_cast<F>(points > 1 ? points : 1));
    }
    static_cast<T*>(call.out)[i] = static_cast<T>(result);
  });
  return cudaGetLastError();
}

template <class T>
cudaError_t align_by_position(const RegionCall& call, int64_t count, cudaStream_t stream) {
  grid_loop(count, stream, [call] __device__(int64_t i) {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const RegionGeometry& g = call.geometry;
    const Bin<T> bin(call, i);
    const int64_t channel = (bin.channel * g.pooled_height + bin.ph) * g.pooled_width + bin.pw;
    N result(F(0));
    if (bin.image >= 0) {
      int64_t points = 0;
      const N sum = sum_points(g, bin, bin.plane(call, channel), points);
      result = sum / N(static_cast<F>(points));
    }
    static_cast<T*>(call.out)[i] = static_cast<T>(result);
    call.also[i] = static_cast<int32_t>(channel);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_roi_align(const RegionCall& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype, SCONCE_DTYPE_CASE(5, __half, align, call, bins_of(call.geometry), stream)
                                         SCONCE_SINGLE_DOUBLE_CASES(align, call, bins_of(call.geometry), stream));
}
cudaError_t launch_ps_roi_align(const RegionCall& call, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(call.dtype,
                         SCONCE_DTYPE_CASE(5, __half, align_by_position, call, bins_of(call.geometry), stream)
                             SCONCE_SINGLE_DOUBLE_CASES(align_by_position, call, bins_of(call.geometry), stream));
}

}  // namespace sconce::cuda
