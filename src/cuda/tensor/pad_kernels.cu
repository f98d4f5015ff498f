#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/element_sizes.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/tensor/pad_kernels.h"

namespace sconce::cuda {
namespace {

struct Line {
  int in, out, before;
};

// A thread writes 16 bytes, whose elements may lie in several rows.
template <class T>
void pad_as(const PaddedPlanes& planes, const void* given, T element, void* to, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  const Line d{static_cast<int>(planes.in[0]), static_cast<int>(planes.out[0]), static_cast<int>(planes.before[0])},
      h{static_cast<int>(planes.in[1]), static_cast<int>(planes.out[1]), static_cast<int>(planes.before[1])},
      w{static_cast<int>(planes.in[2]), static_cast<int>(planes.out[2]), static_cast<int>(planes.before[2])};
  const Divider by_width(w.out), by_height(h.out), by_depth(d.out);
  const T* in = static_cast<const T*>(given);
  T* out = static_cast<T*>(to);
  const int64_t count = planes.planes * planes.out[0] * planes.out[1] * planes.out[2];
  grid_loop((count + kAtOnce - 1) / kAtOnce, stream, [=] __device__(int64_t i) {
    const int64_t first = i * kAtOnce;
    auto rest = static_cast<uint32_t>(first);
    int x = static_cast<int>(by_width.take_small(rest)), y = static_cast<int>(by_height.take_small(rest)),
        z = static_cast<int>(by_depth.take_small(rest)), plane = static_cast<int>(rest);
    const auto row_of = [&]() -> const T* {
      const int in_y = y - h.before, in_z = z - d.before;
      if (static_cast<unsigned>(in_y) >= static_cast<unsigned>(h.in) ||
          static_cast<unsigned>(in_z) >= static_cast<unsigned>(d.in))
        return nullptr;
      return in + ((plane * d.in + in_z) * h.in + in_y) * w.in;
    };
    const T* row = row_of();
    Pack<T, kAtOnce> made;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int in_x = x - w.before;
      made.at[k] = element;
      if (row && static_cast<unsigned>(in_x) < static_cast<unsigned>(w.in) && first + k < count) made.at[k] = row[in_x];
      if (++x < w.out) continue;
      x = 0;
      if (++y == h.out) {
        y = 0;
        if (++z == d.out) {
          z = 0;
          ++plane;
        }
      }
      row = row_of();
    }
    if (first + kAtOnce <= count) {
      *reinterpret_cast<Pack<T, kAtOnce>*>(out + first) = made;
    } else {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k)
        if (first + k < count) out[first + k] = made.at[k];
    }
  });
}

}  // namespace

void launch_pad(const PaddedPlanes& planes, int itemsize, const void* in, const void* element, void* out,
                cudaStream_t stream) {
  by_size(itemsize, [&](auto sample) {
    __builtin_memcpy(&sample, element, sizeof sample);
    pad_as(planes, in, sample, out, stream);
  });
}

}  // namespace sconce::cuda
