#include "src/cuda/device_code/elements.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/linalg/fft_kernels.h"

namespace sconce::cuda {
namespace {

template <class T>
struct Pair {
  T re, im;
};

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
  if (dtype == 7) {
    auto* data = static_cast<double*>(reals);
    grid_loop(count, stream, [=] __device__(int64_t i) { data[i] *= factor; });
  } else if (dtype == 6) {
    auto* data = static_cast<float*>(reals);
    const auto narrow = static_cast<float>(factor);
    grid_loop(count, stream, [=] __device__(int64_t i) { data[i] *= narrow; });
  } else {
    auto* data = static_cast<__half*>(reals);
    const auto narrow = static_cast<float>(factor);
    grid_loop(count, stream, [=] __device__(int64_t i) { data[i] = __float2half_rn(__half2float(data[i]) * narrow); });
  }
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
