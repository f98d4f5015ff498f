#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/linalg/fft_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
struct Pair {
  T re, im;
};

// In packs of 16 bytes, of which the last may be short: `reals` is memory that a tensor has for itself.
template <class T>
void scale_as(void* reals, int64_t count, double factor, cudaStream_t stream) {
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  T* data = static_cast<T*>(reals);
  const auto by = static_cast<Compute<T>>(factor);
  grid_loop((count + kAtOnce - 1) / kAtOnce, stream, [=] __device__(int64_t i) {
    T* const first = data + i * kAtOnce;
    if (count - i * kAtOnce >= kAtOnce) {
      auto values = *reinterpret_cast<const Pack<T, kAtOnce>*>(first);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) values.at[k] = narrowed<T>(widened(values.at[k]) * by);
      *reinterpret_cast<Pack<T, kAtOnce>*>(first) = values;
      return;
    }
    for (int64_t k = 0; k < count - i * kAtOnce; ++k) first[k] = narrowed<T>(widened(first[k]) * by);
  });
}

template <class T>
void mirror_as(const Mirror& m, void* numbers, cudaStream_t stream) {
  auto* data = static_cast<Pair<T>*>(numbers);
  int64_t count = m.sizes[0] - m.known;
  for (int d = 1; d < m.rank; ++d) count *= m.sizes[d];
  const Mirror mirror = m;
  grid_loop(count > 0 ? count : 0, stream, [=] __device__(int64_t i) {
    int64_t to = 0, from = 0;
    for (int d = 0; d < mirror.rank; ++d) {
      const int64_t length = d == 0 ? mirror.sizes[0] - mirror.known : mirror.sizes[d];
      const int64_t at = i % length + (d == 0 ? mirror.known : 0);
      i /= length;
      to += at * mirror.strides[d];
      from += (mirror.transformed[d] && at > 0 ? mirror.sizes[d] - at : at) * mirror.strides[d];
    }
    const Pair<T> source = data[from];
    data[to] = {source.re, -source.im};
  });
}

}  // namespace

void launch_scale(void* reals, int dtype, int64_t count, double factor, cudaStream_t stream) {
  if (dtype == 7)
    scale_as<double>(reals, count, factor, stream);
  else if (dtype == 6)
    scale_as<float>(reals, count, factor, stream);
  else
    scale_as<__half>(reals, count, factor, stream);
}

void launch_mirror(const Mirror& mirror, void* numbers, int dtype, cudaStream_t stream) {
  if (dtype == 7)
    mirror_as<double>(mirror, numbers, stream);
  else if (dtype == 6)
    mirror_as<float>(mirror, numbers, stream);
  else
    mirror_as<__half>(mirror, numbers, stream);
}

}  // namespace sconce::cuda
