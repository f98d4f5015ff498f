// A thread samples one place of one tap for all channels of its offset group.
#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/vision/vision_kernels.h"
#include "src/tensor/spatial/deform_taps.h"

namespace sconce::cuda {
namespace {

template <class T>
cudaError_t columns_of(const DeformGeometry& g, int64_t images, const void* input, const void* offset, const void* mask,
                       void* columns, cudaStream_t stream) {
  const int64_t plane = g.out_plane(), taps = g.offset_groups * g.kernel();
  grid_loop(images * taps * plane, stream, [=] __device__(int64_t i) {
    using N = RoundedNumber<T>;
    using F = PlainNumber<T>;
    const int64_t place = i % plane, row = i / plane % taps, image = i / plane / taps;
    const int64_t group = row / g.kernel(), tap = row % g.kernel();
    const T* const down = static_cast<const T*>(offset) + (image * taps + row) * 2 * plane + place;
    const int64_t oy = place / g.out_width, ox = place % g.out_width;
    const int64_t iy = oy * g.stride_height - g.pad_height + tap / g.kernel_width * g.dilation_height;
    const int64_t ix = ox * g.stride_width - g.pad_width + tap % g.kernel_width * g.dilation_width;
    const DeformTap<T> sampled(N(static_cast<F>(iy)) + N(down[0]), N(static_cast<F>(ix)) + N(down[plane]), g.height,
                               g.width);
    const N scale = mask ? N(static_cast<const T*>(mask)[(image * taps + row) * plane + place]) : N(static_cast<F>(1));
    const int64_t each = g.channels / g.offset_groups;
    for (int64_t c = group * each; c < (group + 1) * each; ++c) {
      const N value = sampled.value(static_cast<const T*>(input) + (image * g.channels + c) * g.height * g.width);
      static_cast<T*>(columns)[((image * g.channels + c) * g.kernel() + tap) * plane + place] =
          static_cast<T>(scale * value);
    }
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_deformed_columns(const DeformGeometry& g, int dtype, int64_t images, const void* input,
                                    const void* offset, const void* mask, void* columns, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(dtype,
                         SCONCE_DTYPE_CASE(5, __half, columns_of, g, images, input, offset, mask, columns, stream)
                             SCONCE_SINGLE_DOUBLE_CASES(columns_of, g, images, input, offset, mask, columns, stream));
}

}  // namespace sconce::cuda
