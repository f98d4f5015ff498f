#include <curand_kernel.h>

#include <cub/device/device_radix_sort.cuh>

#include "src/cuda/device_code/device_types.cuh"
#include "src/cuda/random/random_kernels.h"

namespace sconce::cuda {
namespace {

__device__ void place(const CopyShape& shape, int64_t index, char*& at) {
  for (int d = 0; d < shape.rank; ++d) {
    if (d + 1 == shape.rank) {
      at += index * shape.to[d];
      break;
    }
    at += index % shape.sizes[d] * shape.to[d];
    index /= shape.sizes[d];
  }
}

template <class T>
__device__ void put(char* at, T value) {
  *reinterpret_cast<T*>(at) = value;
}

// Draws kCount numbers at a time; number i of a draw belongs to the element i grids ahead. kLine: the shape has one
// dimension.
template <int kCount, bool kLine, class Next, class Write>
__global__ void __launch_bounds__(kRandomThreads, 4)
    draw_kernel(int64_t count, CopyShape shape, char* data, Draw draw, Next next, Write write) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  curandStatePhilox4_32_10_t state;
  curand_init(draw.seed, thread, draw.offset, &state);
  for (int64_t first = thread; first < count; first += step * kCount) {
    const auto numbers = next(&state);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int64_t index = first + step * i;
      if (index >= count) break;
      char* at = data;
      if (kLine)
        at += index * shape.to[0];
      else
        place(shape, index, at);
      write(at, (&numbers.x)[i]);
    }
  }
}

template <int kCount, class Next, class Write>
void launch(const RandomTarget& target, const Draw& draw, cudaStream_t stream, Next next, Write write) {
  const auto kernel =
      target.shape.rank == 1 ? draw_kernel<kCount, true, Next, Write> : draw_kernel<kCount, false, Next, Write>;
  kernel<<<draw.blocks, kRandomThreads, 0, stream>>>(target.shape.numel, target.shape, static_cast<char*>(target.data),
                                                     draw, next, write);
}

struct Uniform4 {
  __device__ float4 operator()(curandStatePhilox4_32_10_t* s) const { return curand_uniform4(s); }
};
struct Uniform2 {
  __device__ double2 operator()(curandStatePhilox4_32_10_t* s) const { return curand_uniform2_double(s); }
};
struct Normal4 {
  __device__ float4 operator()(curandStatePhilox4_32_10_t* s) const { return curand_normal4(s); }
};
struct Normal2 {
  __device__ double2 operator()(curandStatePhilox4_32_10_t* s) const { return curand_normal2_double(s); }
};
struct Words4 {
  __device__ uint4 operator()(curandStatePhilox4_32_10_t* s) const { return curand4(s); }
};
struct Words2 {
  __device__ ulonglong2 operator()(curandStatePhilox4_32_10_t* s) const {
    const uint4 w = curand4(s);
    ulonglong2 pair;
    pair.x = static_cast<uint64_t>(w.x) << 32 | w.y;
    pair.y = static_cast<uint64_t>(w.z) << 32 | w.w;
    return pair;
  }
};

// Writes 0 or 1 in the dtype.
__device__ void put_flag(char* at, int dtype, bool one) {
  switch (dtype) {
    case 2:
      return put<int16_t>(at, one);
    case 3:
      return put<int32_t>(at, one);
    case 4:
      return put<int64_t>(at, one);
    case 5:
      return put<uint16_t>(at, one ? 0x3C00 : 0);
    case 6:
      return put<float>(at, one);
    case 7:
      return put<double>(at, one);
    case 15:
      return put<uint16_t>(at, one ? 0x3F80 : 0);
    default:
      return put<uint8_t>(at, one);
  }
}
__device__ void put_integer(char* at, int dtype, int64_t v) {
  switch (dtype) {
    case 2:
    case 27:
      return put<int16_t>(at, static_cast<int16_t>(v));
    case 3:
    case 28:
      return put<int32_t>(at, static_cast<int32_t>(v));
    case 4:
    case 29:
      return put<int64_t>(at, v);
    case 5:
      return put<__half>(at, __float2half_rn(static_cast<float>(v)));
    case 6:
      return put<float>(at, static_cast<float>(v));
    case 7:
      return put<double>(at, static_cast<double>(v));
    case 11:
      return put<bool>(at, v != 0);
    case 15:
      return put<__nv_bfloat16>(at, __float2bfloat16_rn(static_cast<float>(v)));
    default:
      return put<int8_t>(at, static_cast<int8_t>(v));
  }
}

// Bounds are in the dtype. A value that rounding moves to the upper bound becomes the lower bound.
template <class T>
void uniform(const RandomTarget& target, float from, float to, float range, const Draw& draw, cudaStream_t stream) {
  launch<4>(target, draw, stream, Uniform4{}, [=] __device__(char* at, float unit) {
    const T value = narrowed<T>(unit * range + from);
    put<T>(at, widened(value) == to ? narrowed<T>(from) : value);
  });
}
template <class T>
void normal(const RandomTarget& target, float mean, float deviation, const Draw& draw, cudaStream_t stream) {
  launch<4>(target, draw, stream, Normal4{},
            [=] __device__(char* at, float v) { put<T>(at, narrowed<T>(v * deviation + mean)); });
}
template <class T>
void exponential(const RandomTarget& target, float rate, const Draw& draw, cudaStream_t stream) {
  launch<4>(target, draw, stream, Uniform4{}, [=] __device__(char* at, float unit) {
    constexpr float kEpsilon = 0x1p-23f;
    // The stream contains 1, whose logarithm is 0, but exponential numbers must be positive.
    const float log = unit >= 1.0f - kEpsilon / 2 ? -kEpsilon / 2 : __logf(unit);
    put<T>(at, narrowed<T>(-1.0f / rate * log));
  });
}

void random_double(Distribution distribution, const RandomTarget& target, double a, double b, const Draw& draw,
                   cudaStream_t stream) {
  switch (distribution) {
    case Distribution::kUniform: {
      const double range = b - a;
      return launch<2>(target, draw, stream, Uniform2{}, [=] __device__(char* at, double unit) {
        const double value = unit * range + a;
        put<double>(at, value == b ? a : value);
      });
    }
    case Distribution::kNormal:
      return launch<2>(target, draw, stream, Normal2{},
                       [=] __device__(char* at, double v) { put<double>(at, v * b + a); });
    case Distribution::kExponential:
      return launch<2>(target, draw, stream, Uniform2{}, [=] __device__(char* at, double unit) {
        constexpr double kEpsilon = 0x1p-52;
        const double log = unit >= 1.0 - kEpsilon / 2 ? -kEpsilon / 2 : ::log(unit);
        put<double>(at, -1.0 / a * log);
      });
    case Distribution::kBernoulli:
      return launch<2>(target, draw, stream, Uniform2{},
                       [=] __device__(char* at, double unit) { put<double>(at, unit < a); });
  }
}

float as_dtype(double value, int dtype) {
  if (dtype == 5) return __half2float(__double2half(value));
  if (dtype == 15) return __bfloat162float(__double2bfloat16(value));
  return static_cast<float>(value);
}

template <class T, int kVector>
__global__ void dropout_vector_kernel(const T* in, T* out, bool* mask, int64_t count, float keep, Draw draw) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(draw.seed, thread, draw.offset, &state);
  const float scale = 1.0f / keep;
  float4 numbers;
  for (int64_t at = thread * kVector; at < count; at += static_cast<int64_t>(gridDim.x) * blockDim.x * kVector) {
    const auto given = *reinterpret_cast<const Pack<T, kVector>*>(in + at);
    Pack<T, kVector> result;
    Pack<bool, kVector> flags;
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (i % 4 == 0) numbers = curand_uniform4(&state);  // a vector of two uses two of four numbers, as in ATen
      const float kept = (&numbers.x)[i % 4] < keep;
      result.at[i] = narrowed<T>(widened(given.at[i]) * kept * scale);
      flags.at[i] = kept != 0;
    }
    *reinterpret_cast<Pack<T, kVector>*>(out + at) = result;
    *reinterpret_cast<Pack<bool, kVector>*>(mask + at) = flags;
  }
}
template <class T>
__global__ void dropout_kernel(const T* in, T* out, bool* mask, int64_t count, float keep, Draw draw) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  curandStatePhilox4_32_10_t state;
  curand_init(draw.seed, thread, draw.offset, &state);
  const float scale = 1.0f / keep;
  for (int64_t first = thread; first < count; first += step * 4) {
    const float4 numbers = curand_uniform4(&state);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t at = first + step * i;
      if (at >= count) break;
      const float kept = (&numbers.x)[i] < keep;
      out[at] = narrowed<T>(widened(in[at]) * kept * scale);
      mask[at] = kept != 0;
    }
  }
}
// For double: draws floats, multiplies in double.
__global__ void dropout_double_kernel(const double* in, double* out, bool* mask, int64_t count, double keep, int vector,
                                      Draw draw) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  curandStatePhilox4_32_10_t state;
  curand_init(draw.seed, thread, draw.offset, &state);
  const double scale = 1.0 / keep;
  const auto one = [&](int64_t at, float number) {
    const double kept = number < keep;
    out[at] = in[at] * kept * scale;
    mask[at] = kept != 0;
  };
  if (vector == 1) {
    for (int64_t first = thread; first < count; first += step * 4) {
      const float4 numbers = curand_uniform4(&state);
      for (int i = 0; i < 4; ++i)
        if (first + step * i < count) one(first + step * i, (&numbers.x)[i]);
    }
    return;
  }
  float4 numbers;
  for (int64_t at = thread * vector; at < count; at += step * vector)
    for (int i = 0; i < vector; ++i) {
      if (i % 4 == 0) numbers = curand_uniform4(&state);
      one(at + i, (&numbers.x)[i % 4]);
    }
}

template <class T>
void dropout(const void* in, void* out, bool* mask, int64_t count, double keep, int vector, const Draw& draw,
             cudaStream_t stream) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  const auto k = static_cast<float>(keep);
  switch (vector) {
    case 16:
      dropout_vector_kernel<T, 16><<<draw.blocks, kRandomThreads, 0, stream>>>(from, to, mask, count, k, draw);
      break;
    case 8:
      dropout_vector_kernel<T, 8><<<draw.blocks, kRandomThreads, 0, stream>>>(from, to, mask, count, k, draw);
      break;
    case 4:
      dropout_vector_kernel<T, 4><<<draw.blocks, kRandomThreads, 0, stream>>>(from, to, mask, count, k, draw);
      break;
    case 2:
      dropout_vector_kernel<T, 2><<<draw.blocks, kRandomThreads, 0, stream>>>(from, to, mask, count, k, draw);
      break;
    default:
      dropout_kernel<T><<<draw.blocks, kRandomThreads, 0, stream>>>(from, to, mask, count, k, draw);
  }
}

__global__ void bernoulli_kernel(CopyShape shape, char* to, int dtype, const char* from, Draw draw) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t first = thread * 4; first < shape.numel; first += static_cast<int64_t>(gridDim.x) * blockDim.x * 4) {
    curandStatePhilox4_32_10_t state;
    curand_init(draw.seed, thread, draw.offset, &state);
    const float4 numbers = curand_uniform4(&state);
    for (int i = 0; i < 4 && first + i < shape.numel; ++i) {
      int64_t t = 0, f = 0;
      for (int64_t d = 0, rest = first + i; d < shape.rank; ++d) {
        const int64_t in = d + 1 < shape.rank ? rest % shape.sizes[d] : rest;
        t += in * shape.to[d];
        f += in * shape.from[d];
        if (d + 1 < shape.rank) rest /= shape.sizes[d];
      }
      const float number = (&numbers.x)[i];
      const bool one = dtype == 7 ? number <= *reinterpret_cast<const double*>(from + f)
                                  : number <= *reinterpret_cast<const float*>(from + f);
      put_flag(to + t, dtype, one);
    }
  }
}

template <class Key>
__global__ void shuffle_equal_kernel(const Key* keys, int64_t* positions, int64_t count, Key mask, Draw draw) {
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (begin >= count - 1) return;
  const Key key = keys[begin] & mask;
  if (key != (keys[begin + 1] & mask) || (begin > 0 && key == (keys[begin - 1] & mask))) return;
  int64_t length = 2;
  while (begin + length < count && (keys[begin + length] & mask) == key) ++length;
  curandStatePhilox4_32_10_t state;
  curand_init(draw.seed, begin, draw.offset, &state);
  for (int64_t i = length - 1; i > 0; --i) {
    const unsigned other = curand(&state) % static_cast<unsigned>(i + 1);
    const int64_t moved = positions[begin + i];
    positions[begin + i] = positions[begin + other];
    positions[begin + other] = moved;
  }
}

__global__ void iota_kernel(int64_t* values, int64_t count) {
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    values[i] = i;
}

unsigned blocks_of(int64_t count, int64_t threads) { return static_cast<unsigned>((count + threads - 1) / threads); }

}  // namespace

int numbers_per_draw(Distribution, int dtype) { return dtype == 7 ? 2 : 4; }

void launch_random(Distribution distribution, const RandomTarget& target, double a, double b, const Draw& draw,
                   cudaStream_t stream) {
  const int dtype = target.dtype;
  if (dtype == 7) return random_double(distribution, target, a, b, draw, stream);
  switch (distribution) {
    case Distribution::kUniform: {
      const float from = as_dtype(a, dtype), to = as_dtype(b, dtype), range = as_dtype(to - from, dtype);
      if (dtype == 5) return uniform<__half>(target, from, to, range, draw, stream);
      if (dtype == 15) return uniform<__nv_bfloat16>(target, from, to, range, draw, stream);
      return uniform<float>(target, from, to, range, draw, stream);
    }
    case Distribution::kNormal: {
      const auto mean = static_cast<float>(a), deviation = static_cast<float>(b);
      if (dtype == 5) return normal<__half>(target, mean, deviation, draw, stream);
      if (dtype == 15) return normal<__nv_bfloat16>(target, mean, deviation, draw, stream);
      return normal<float>(target, mean, deviation, draw, stream);
    }
    case Distribution::kExponential: {
      const auto rate = static_cast<float>(a);
      if (dtype == 5) return exponential<__half>(target, rate, draw, stream);
      if (dtype == 15) return exponential<__nv_bfloat16>(target, rate, draw, stream);
      return exponential<float>(target, rate, draw, stream);
    }
    case Distribution::kBernoulli: {
      const auto p = static_cast<float>(a);
      if (dtype == 6)
        return launch<4>(target, draw, stream, Uniform4{},
                         [=] __device__(char* at, float unit) { put<float>(at, unit < p); });
      return launch<4>(target, draw, stream, Uniform4{},
                       [=] __device__(char* at, float unit) { put_flag(at, dtype, unit < p); });
    }
  }
}

bool wide_words(uint64_t range) { return range >= uint64_t{1} << 28; }

void launch_random_integers(const RandomTarget& target, uint64_t range, int64_t base, const Draw& draw,
                            cudaStream_t stream) {
  const int dtype = target.dtype;
  if (wide_words(range))
    return launch<2>(target, draw, stream, Words2{}, [=] __device__(char* at, unsigned long long word) {
      put_integer(at, dtype, static_cast<int64_t>(word % range + static_cast<uint64_t>(base)));
    });
  const auto narrow = static_cast<uint32_t>(range);
  launch<4>(target, draw, stream, Words4{},
            [=] __device__(char* at, unsigned word) { put_integer(at, dtype, int64_t{word % narrow} + base); });
}

void launch_bernoulli(const RandomTarget& target, const void* probabilities, const Draw& draw, cudaStream_t stream) {
  constexpr int64_t kThreads = 512;
  const int64_t blocks = (target.shape.numel + 4 * kThreads - 1) / (4 * kThreads);
  bernoulli_kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      target.shape, static_cast<char*>(target.data), target.dtype, static_cast<const char*>(probabilities), draw);
}

void launch_dropout(const void* in, void* out, bool* mask, int dtype, int64_t count, double keep, int vector,
                    const Draw& draw, cudaStream_t stream) {
  switch (dtype) {
    case 5:
      return dropout<__half>(in, out, mask, count, keep, vector, draw, stream);
    case 7:
      dropout_double_kernel<<<draw.blocks, kRandomThreads, 0, stream>>>(
          static_cast<const double*>(in), static_cast<double*>(out), mask, count, keep, vector, draw);
      return;
    case 15:
      return dropout<__nv_bfloat16>(in, out, mask, count, keep, vector, draw, stream);
    default:
      return dropout<float>(in, out, mask, count, keep, vector, draw, stream);
  }
}

void launch_shuffle_equal(const void* keys, int key_bytes, int64_t* positions, int64_t count, int bits,
                          const Draw& draw, cudaStream_t stream) {
  constexpr int64_t kThreads = 512;
  const unsigned blocks = blocks_of(count, kThreads);
  if (key_bytes == 4)
    shuffle_equal_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint32_t*>(keys), positions, count,
                                                          bits >= 32 ? ~uint32_t{0} : (uint32_t{1} << bits) - 1, draw);
  else
    shuffle_equal_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<const uint64_t*>(keys), positions, count,
                                                          bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1, draw);
}

cudaError_t sort_by_key(void* scratch, size_t& scratch_bytes, const void* keys, void* sorted_keys, int key_bytes,
                        const int64_t* positions, int64_t* sorted_positions, int64_t count, int bits,
                        cudaStream_t stream) {
  if (key_bytes == 4)
    return cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, static_cast<const int32_t*>(keys),
                                           static_cast<int32_t*>(sorted_keys), positions, sorted_positions, count, 0,
                                           bits, stream);
  return cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, static_cast<const int64_t*>(keys),
                                         static_cast<int64_t*>(sorted_keys), positions, sorted_positions, count, 0,
                                         bits, stream);
}

void launch_iota(int64_t* values, int64_t count, cudaStream_t stream) {
  iota_kernel<<<blocks_of(count, 256 * 4), 256, 0, stream>>>(values, count);
}

}  // namespace sconce::cuda
