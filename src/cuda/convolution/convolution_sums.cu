#include "src/cuda/convolution/convolution_sums.h"
#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/device_code/division.cuh"
#include "src/cuda/device_code/grid_loop.cuh"
#include "src/cuda/device_code/warp_sum.cuh"

namespace sconce::cuda {
namespace {

constexpr int kThreads = 256;
// Splits each channel (channels_last: all channels together) into enough parts to fill a device.
constexpr int64_t kBlocks = 1056, kLeast = 4096;

int64_t parts_of(const ChannelSums& s) {
  const int64_t elements = s.batch * s.inner,
                most = (elements * (s.channels_last ? s.channels : 1) + kLeast - 1) / kLeast;
  const int64_t wanted = s.channels_last ? kBlocks : (kBlocks + s.channels - 1) / s.channels;
  return wanted < most ? wanted : most;
}

// Writes sums [parts, channels].
template <class T, int kAtOnce>
__global__ void __launch_bounds__(kThreads)
    rows_kernel(const T* in, int64_t channels, Divider inner, int64_t count, Compute<T>* sums) {
  using C = Compute<T>;
  __shared__ C shared[kThreads / 32];
  const int64_t channel = blockIdx.x;
  C sum = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.y) * kThreads) {
    int64_t n = i;
    const int64_t at = inner.take(n);
    const auto pack = reinterpret_cast<const Pack<T, kAtOnce>*>(in)[(n * channels + channel) * inner.divisor() + at];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) sum += widened(pack.at[k]);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kThreads / 32; ++i) sum += shared[i];
    sums[blockIdx.y * channels + channel] = sum;
  }
}

// Each thread sums kAtOnce channels; `lanes` neighbouring threads cover a row, and the block walks over rows together.
template <class T, int kAtOnce>
__global__ void __launch_bounds__(kThreads)
    columns_kernel(const T* in, int64_t channels, int64_t rows, int lanes, Compute<T>* sums) {
  using C = Compute<T>;
  __shared__ C shared[kThreads * kAtOnce];
  const int lane = static_cast<int>(threadIdx.x) % lanes, turn = static_cast<int>(threadIdx.x) / lanes,
            turns = kThreads / lanes;
  const int64_t channel = (static_cast<int64_t>(blockIdx.x) * lanes + lane) * kAtOnce;
  const bool there = channel < channels && turn < turns;
  C sum[kAtOnce] = {};
  if (there)
    for (int64_t row = static_cast<int64_t>(blockIdx.y) * turns + turn; row < rows;
         row += static_cast<int64_t>(gridDim.y) * turns) {
      const auto pack = *reinterpret_cast<const Pack<T, kAtOnce>*>(in + row * channels + channel);
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) sum[k] += widened(pack.at[k]);
    }
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) shared[threadIdx.x * kAtOnce + k] = sum[k];
  __syncthreads();
  if (!there || turn != 0) return;
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    for (int other = 1; other < turns; ++other) sum[k] += shared[(other * lanes + lane) * kAtOnce + k];
    sums[blockIdx.y * channels + channel + k] = sum[k];
  }
}

template <class T, int kAtOnce>
void sums_of_parts(const ChannelSums& s, int64_t parts, Compute<T>* sums, cudaStream_t stream) {
  const T* in = static_cast<const T*>(s.in);
  const auto y = static_cast<unsigned>(parts);
  if (s.channels_last) {
    const int64_t packs = s.channels / kAtOnce;
    const int lanes = static_cast<int>(packs < kThreads ? packs : kThreads);
    const dim3 grid(static_cast<unsigned>((packs + lanes - 1) / lanes), y);
    columns_kernel<T, kAtOnce><<<grid, kThreads, 0, stream>>>(in, s.channels, s.batch * s.inner, lanes, sums);
  } else {
    const dim3 grid(static_cast<unsigned>(s.channels), y);
    rows_kernel<T, kAtOnce>
        <<<grid, kThreads, 0, stream>>>(in, s.channels, Divider(s.inner / kAtOnce), s.batch * s.inner / kAtOnce, sums);
  }
}

template <class T>
cudaError_t sums_as(const ChannelSums& s, void* scratch, cudaStream_t stream) {
  using C = Compute<T>;
  constexpr int kAtOnce = 16 / static_cast<int>(sizeof(T));
  const int64_t parts = parts_of(s), channels = s.channels;
  C* sums = static_cast<C*>(scratch);
  const bool packs =
      reinterpret_cast<uintptr_t>(s.in) % 16 == 0 && (s.channels_last ? channels : s.inner) % kAtOnce == 0;
  if (packs)
    sums_of_parts<T, kAtOnce>(s, parts, sums, stream);
  else
    sums_of_parts<T, 1>(s, parts, sums, stream);
  T* out = static_cast<T*>(s.out);
  // One warp per channel.
  grid_loop(channels * 32, stream, [=] __device__(int64_t i) {
    const int64_t channel = i / 32;
    C sum = 0;
    for (int64_t part = i % 32; part < parts; part += 32) sum += sums[part * channels + channel];
    sum = warp_sum(sum);
    if (i % 32 == 0) out[channel] = narrowed<T>(sum);
  });
  return cudaGetLastError();
}

}  // namespace

size_t channel_sum_bytes(const ChannelSums& s) { return static_cast<size_t>(parts_of(s) * s.channels) * 8; }

cudaError_t launch_channel_sums(const ChannelSums& sums, void* scratch, cudaStream_t stream) {
  SCONCE_RETURN_BY_DTYPE(sums.dtype, SCONCE_FLOATING_CASES(sums_as, sums, scratch, stream));
}

}  // namespace sconce::cuda
