// The kernel of flash_attention.h. Four warps have 16 or 32 queries each, or the same 16 and a quarter of the keys each
// where there are no more, and walk over tiles of keys: scores and
// probabilities are registers, the running maximum and sum rescale what has been summed (the online softmax). Keys and
// values arrive in one half of shared memory while the other is in use. Half types are multiplied with sums in
// float32; float32 as three products of its halves of TF32, which keeps all but the last bits.
#pragma once

#include <cmath>

#include "src/cuda/flash_attention.h"
#include "src/cuda/warp_mma.cuh"

namespace sconce::cuda {

constexpr int kFlashThreads = 128;
constexpr float kLog2E = 1.4426950408889634f, kLn2 = 0.6931471805599453f;

// Elements T; rows of up to kDim elements; kTiles times 16 queries a warp; kKeys keys a tile.
template <class T, int kDim, int kTiles, int kKeys>
struct FlashTile {
  static constexpr int kChunk = 16 / sizeof(T);  // elements that are copied at once
  static constexpr int kPitch = kDim + kChunk;   // of rows in shared memory: neighbours in other banks

  float scores[kTiles][kKeys / 8][4];
  float sums[kTiles][kDim / 8][4];

  // Rows [first, first + kCount) of which `rows` exist, with `columns` elements, into shared memory; zeros elsewhere.
  template <int kCount>
  static __device__ __forceinline__ void fetch(T* to, const T* from, int64_t stride, int first, int rows, int columns) {
    constexpr int kChunks = kDim / kChunk;
    for (int i = threadIdx.x; i < kCount * kChunks; i += kFlashThreads) {
      const int r = i / kChunks, c = i % kChunks * kChunk;
      const bool read = first + r < rows && c < columns;
      copy_16(to + r * kPitch + c, read ? from + (first + r) * stride + c : from, read);
    }
  }

  __device__ __forceinline__ void clear_scores() {
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[m][n][i] = 0;
  }

  // scores = queries (of this warp, from row 0) times keys, turned.
  __device__ __forceinline__ void multiply_keys(const T* queries, const T* keys, int d) {
    clear_scores();
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kDim; k += 16) {
      if (k >= d) break;
      uint32_t a[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
        load_matrices(a[m], queries + (16 * m + matrix % 2 * 8 + row) * kPitch + k + matrix / 2 * 8);
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t b[4];
        load_matrices(b, keys + (8 * n + matrix / 2 * 8 + row) * kPitch + k + matrix % 2 * 8);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiply(scores[m][n], a[m], b[0], b[1], T());
          multiply(scores[m][n + 1], a[m], b[2], b[3], T());
        }
      }
    }
  }

  // sums += scores (probabilities by now) times values.
  __device__ __forceinline__ void multiply_values(const T* values, int dv) {
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kKeys / 8; k += 2) {
      uint32_t a[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[m][i] = pack(scores[m][k + i / 2][i % 2 * 2], scores[m][k + i / 2][i % 2 * 2 + 1], T());
#pragma unroll
      for (int n = 0; n < kDim / 8; n += 2) {
        if (8 * n >= dv) break;
        uint32_t b[4];
        load_matrices_turned(b, values + (8 * k + matrix % 2 * 8 + row) * kPitch + 8 * n + matrix / 2 * 8);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiply(sums[m][n], a[m], b[0], b[1], T());
          multiply(sums[m][n + 1], a[m], b[2], b[3], T());
        }
      }
    }
  }
};

// c += a b with a and b in two parts; the product of the small parts is below the last bit.
__device__ __forceinline__ void multiply_split(float (&c)[4], const uint32_t (&high)[4], const uint32_t (&low)[4],
                                               float b0, float b1) {
  uint32_t h0, l0, h1, l1;
  split(b0, h0, l0);
  split(b1, h1, l1);
  multiply_tf32(c, low, h0, h1);
  multiply_tf32(c, high, l0, l1);
  multiply_tf32(c, high, h0, h1);
}

template <int kDim, int kTiles, int kKeys>
struct FlashTileFloat : FlashTile<float, kDim, kTiles, kKeys> {
  using Base = FlashTile<float, kDim, kTiles, kKeys>;
  using Base::kPitch;
  using Base::scores;
  using Base::sums;

  __device__ __forceinline__ void multiply_keys(const float* queries, const float* keys, int d) {
    this->clear_scores();
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    for (int k = 0; k < d; k += 8) {
      uint32_t high[kTiles][4], low[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          split(queries[(16 * m + i % 2 * 8 + g) * kPitch + k + i / 2 * 4 + t], high[m][i], low[m][i]);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const float* at = keys + (8 * n + g) * kPitch + k + t;
#pragma unroll
        for (int m = 0; m < kTiles; ++m) multiply_split(scores[m][n], high[m], low[m], at[0], at[4]);
      }
    }
  }

  // Columns 2t and 2t + 1 of a tile of scores are taken as its numbers t and t + 4: the order of a sum is free.
  __device__ __forceinline__ void multiply_values(const float* values, int dv) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < kKeys / 8; ++k) {
      uint32_t high[kTiles][4], low[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i) split(scores[m][k][i % 2 * 2 + i / 2], high[m][i], low[m][i]);
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        if (8 * n >= dv) break;
        const float* at = values + (8 * k + 2 * t) * kPitch + 8 * n + g;
#pragma unroll
        for (int m = 0; m < kTiles; ++m) multiply_split(sums[m][n], high[m], low[m], at[0], at[kPitch]);
      }
    }
  }
};

template <class T, int kDim, int kTiles, int kKeys>
struct FlashTileOf {
  using Type = FlashTile<T, kDim, kTiles, kKeys>;
};
template <int kDim, int kTiles, int kKeys>
struct FlashTileOf<float, kDim, kTiles, kKeys> {
  using Type = FlashTileFloat<kDim, kTiles, kKeys>;
};

__device__ __forceinline__ void store_two(float* to, float first, float second) {
  to[0] = first;
  to[1] = second;
}
template <class T>
__device__ __forceinline__ void store_two(T* to, float first, float second) {
  *reinterpret_cast<uint32_t*>(to) = pack(first, second, T());
}

__device__ __forceinline__ float number_of(float v) { return v; }
__device__ __forceinline__ float number_of(__half v) { return __half2float(v); }
__device__ __forceinline__ float number_of(__nv_bfloat16 v) { return __bfloat162float(v); }

// Of the four lanes of a group.
__device__ __forceinline__ float most_of_group(float v) {
  v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 1));
  return fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, 2));
}
__device__ __forceinline__ float sum_of_group(float v) {
  v += __shfl_xor_sync(0xFFFFFFFFu, v, 1);
  return v + __shfl_xor_sync(0xFFFFFFFFu, v, 2);
}

template <class T>
__device__ __forceinline__ T element_of(float v);
template <>
__device__ __forceinline__ float element_of<float>(float v) {
  return v;
}
template <>
__device__ __forceinline__ __half element_of<__half>(float v) {
  return __float2half_rn(v);
}
template <>
__device__ __forceinline__ __nv_bfloat16 element_of<__nv_bfloat16>(float v) {
  return __float2bfloat16_rn(v);
}

// What the warps of a block have of the same 16 queries, put together and written.
template <class T, int kDim, class Tile>
__device__ __forceinline__ void join_warps(const FlashAttention& p, const Tile& tile, const float (&most)[2],
                                           const float (&total)[2], float factor, int64_t head_number, T* out,
                                           float* memory) {
  constexpr int kWarps = kFlashThreads / 32, kWords = kDim + 2;  // of a query: the highest score, the sum, the results
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float* const mine = memory + (warp * 16 + 8 * half + g) * kWords;
    const float sum = sum_of_group(total[half]);
    if (t == 0) {
      mine[0] = most[half] * factor;
      mine[1] = sum;
    }
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      mine[2 + 8 * n + 2 * t] = tile.sums[0][n][2 * half];
      mine[2 + 8 * n + 2 * t + 1] = tile.sums[0][n][2 * half + 1];
    }
  }
  __syncthreads();
  const int64_t part = static_cast<int64_t>(blockIdx.y) * p.batch * p.heads + head_number;
  for (int i = threadIdx.x; i < p.queries * p.dv; i += kFlashThreads) {
    const int query = i / p.dv, column = i % p.dv;
    float highest = -INFINITY;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, memory[(w * 16 + query) * kWords]);
    const float base = highest == -INFINITY ? 0.0f : highest;
    float sum = 0, result = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float* const its = memory + (w * 16 + query) * kWords;
      const float weight = power_of_2(its[0] - base);
      sum += weight * its[1];
      result += weight * its[2 + column];
    }
    result = sum == 0 ? 0.0f : result / sum;
    const float logsumexp = sum == 0 ? -INFINITY : (base + log2f(sum)) * kLn2;
    if (p.splits > 1) {
      p.partial[(part * p.queries + query) * p.dv + column] = result;
      if (column == 0) p.partial_logsumexp[part * p.queries + query] = logsumexp;
    } else {
      out[query * p.out_strides[2] + column] = element_of<T>(result);
      if (column == 0 && p.logsumexp)
        p.logsumexp[head_number * p.logsumexp_rows + query] = sum == 0 ? p.empty_logsumexp : logsumexp;
    }
  }
  if (p.splits == 1 && p.logsumexp)
    for (int query = p.queries + threadIdx.x; query < p.logsumexp_rows; query += kFlashThreads)
      p.logsumexp[head_number * p.logsumexp_rows + query] = INFINITY;
}

// kFew: at most 16 queries, which all warps have.
template <class T, int kDim, int kTiles, int kKeys, bool kFew>
__global__ void __launch_bounds__(kFlashThreads) flash_kernel(const FlashAttention p) {
  constexpr int kRows = (kFew ? 16 : 64) * kTiles, kWarpKeys = kFew ? kKeys / 4 : kKeys;
  using Tile = typename FlashTileOf<T, kDim, kTiles, kWarpKeys>::Type;
  constexpr int kQueryElements = kRows * Tile::kPitch, kKeyElements = kKeys * Tile::kPitch;
  extern __shared__ __align__(16) unsigned char flash_memory[];
  T* const queries = reinterpret_cast<T*>(flash_memory);
  T* const tiles = queries + kQueryElements;  // keys, values, keys, values

  const int blocks = (p.queries + kRows - 1) / kRows;
  const int64_t head_number = blockIdx.x / blocks;
  // Causal: those with most keys first.
  const int block =
      p.causal ? blocks - 1 - static_cast<int>(blockIdx.x % blocks) : static_cast<int>(blockIdx.x % blocks);
  const int batch = static_cast<int>(head_number / p.heads), head = static_cast<int>(head_number % p.heads);
  const int kv_head = head / (p.heads / p.kv_heads), first_query = block * kRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = kFew ? 0 : warp * 16 * kTiles, warp_key = kFew ? warp * kWarpKeys : 0;
  const bool works = first_query + warp_row < p.queries;

  const T* q = static_cast<const T*>(p.q) + batch * p.q_strides[0] + head * p.q_strides[1];
  const T* k = static_cast<const T*>(p.k) + batch * p.k_strides[0] + kv_head * p.k_strides[1];
  const T* v = static_cast<const T*>(p.v) + batch * p.v_strides[0] + kv_head * p.v_strides[1];
  const T* bias =
      p.bias ? static_cast<const T*>(p.bias) + batch * p.bias_strides[0] + head * p.bias_strides[1] : nullptr;

  int limit = p.keys;
  if (p.causal) limit = min(limit, min(first_query + kRows, p.queries) + p.diagonal);
  const int all = limit > 0 ? (limit + kKeys - 1) / kKeys : 0, each = (all + p.splits - 1) / p.splits;
  const int begin = static_cast<int>(blockIdx.y) * each, end = min(all, begin + each);

  // Scores are taken to the base 2; a bias, or a scale that turns their order, is applied at once.
  const bool folded = !bias && p.scale > 0;
  const float factor = folded ? p.scale * kLog2E : 1.0f, scale = p.scale * kLog2E;

  Tile tile;
  float most[kTiles][2], total[kTiles][2];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    most[m][0] = most[m][1] = -INFINITY;
    total[m][0] = total[m][1] = 0;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) tile.sums[m][n][i] = 0;
  }

  const auto fetch_tile = [&](int number) {
    T* to = tiles + (number - begin) % 2 * 2 * kKeyElements;
    Tile::template fetch<kKeys>(to, k, p.k_strides[2], number * kKeys, p.keys, p.d);
    Tile::template fetch<kKeys>(to + kKeyElements, v, p.v_strides[2], number * kKeys, p.keys, p.dv);
  };
  if (begin < end) {
    Tile::template fetch<kRows>(queries, q, p.q_strides[2], first_query, p.queries, p.d);
    fetch_tile(begin);
  }
  commit_copies();

  for (int number = begin; number < end; ++number) {
    if (number + 1 < end) fetch_tile(number + 1);
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    if (works) {
      const T* keys = tiles + (number - begin) % 2 * 2 * kKeyElements + warp_key * Tile::kPitch;
      tile.multiply_keys(queries + warp_row * Tile::kPitch, keys, p.d);
      const int first_key = number * kKeys + warp_key;
      const bool cut =
          first_key + kWarpKeys > p.keys || (p.causal && first_key + kWarpKeys - 1 > first_query + warp_row + p.diagonal);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int query = first_query + warp_row + 16 * m + 8 * half + g;
          if (!folded) {
            const T* row = bias ? bias + static_cast<int64_t>(min(query, p.queries - 1)) * p.bias_strides[2] : nullptr;
#pragma unroll
            for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i) {
                float& score = tile.scores[m][n][2 * half + i];
                const int key = first_key + 8 * n + 2 * t + i;
                score *= scale;
                if (row && key < p.keys) score += number_of(row[key * p.bias_strides[3]]) * kLog2E;
              }
          }
          if (cut) {
            const int last = p.causal ? min(p.keys - 1, query + p.diagonal) : p.keys - 1;
#pragma unroll
            for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i)
                if (first_key + 8 * n + 2 * t + i > last) tile.scores[m][n][2 * half + i] = -INFINITY;
          }
          float highest = most[m][half];
#pragma unroll
          for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) highest = fmaxf(highest, tile.scores[m][n][2 * half + i]);
          highest = most_of_group(highest);
          const float base = highest == -INFINITY ? 0.0f : highest * factor;  // a query that sees nothing yet
          const float correction = power_of_2(most[m][half] * factor - base);
          most[m][half] = highest;
          float sum = total[m][half] * correction;
#pragma unroll
          for (int n = 0; n < kWarpKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              float& score = tile.scores[m][n][2 * half + i];
              score = power_of_2(score * factor - base);
              sum += score;
            }
          total[m][half] = sum;
          if (__any_sync(0xFFFFFFFFu, correction != 1)) {  // the longer a row, the rarer
#pragma unroll
            for (int n = 0; n < kDim / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i) tile.sums[m][n][2 * half + i] *= correction;
          }
        }
      tile.multiply_values(keys + kKeyElements, p.dv);
    }
    __syncthreads();  // the other half is free
  }
  wait_copies<0>();
  if constexpr (kFew) {
    join_warps<T, kDim>(p, tile, most[0], total[0], factor, head_number,
                        static_cast<T*>(p.out) + batch * p.out_strides[0] + head * p.out_strides[1],
                        reinterpret_cast<float*>(tiles));
    return;
  }

  // Rows of this warp go through shared memory, so that what is written to the device is in one piece.
  T* const mine = queries + warp_row * Tile::kPitch;
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_group(total[m][half]), inverse = sum == 0 ? 0.0f : 1 / sum;
      const int row = 16 * m + 8 * half + g, query = first_query + warp_row + row;
      if (t == 0) {
        const float logsumexp = sum == 0 ? -INFINITY : (most[m][half] * factor + log2f(sum)) * kLn2;
        if (p.splits > 1) {
          if (query < p.queries)
            p.partial_logsumexp[(static_cast<int64_t>(blockIdx.y) * p.batch * p.heads + head_number) * p.queries +
                                query] = logsumexp;
        } else if (p.logsumexp && query < p.logsumexp_rows) {
          p.logsumexp[head_number * p.logsumexp_rows + query] = query >= p.queries ? INFINITY
                                                                : sum == 0         ? p.empty_logsumexp
                                                                                   : logsumexp;
        }
      }
      float* const partial =
          p.splits > 1
              ? p.partial +
                    ((static_cast<int64_t>(blockIdx.y) * p.batch * p.heads + head_number) * p.queries + query) * p.dv
              : nullptr;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) {
        if (8 * n >= p.dv) break;
        const float first = tile.sums[m][n][2 * half] * inverse, second = tile.sums[m][n][2 * half + 1] * inverse;
        if (!partial) {
          store_two(mine + row * Tile::kPitch + 8 * n + 2 * t, first, second);
        } else if (query < p.queries) {
          // dv is a multiple of 4 with float32: the last of 8 columns may not exist.
          if (8 * n + 2 * t < p.dv) partial[8 * n + 2 * t] = first;
          if (8 * n + 2 * t + 1 < p.dv) partial[8 * n + 2 * t + 1] = second;
        }
      }
    }
  if (p.splits > 1) return;
  __syncwarp();
  T* const out = static_cast<T*>(p.out) + batch * p.out_strides[0] + head * p.out_strides[1];
  const int chunks = p.dv / Tile::kChunk;
  for (int i = lane; i < 16 * kTiles * chunks; i += 32) {
    const int row = i / chunks, column = i % chunks * Tile::kChunk, query = first_query + warp_row + row;
    if (query < p.queries)
      *reinterpret_cast<uint4*>(out + query * p.out_strides[2] + column) =
          *reinterpret_cast<const uint4*>(mine + row * Tile::kPitch + column);
  }
}

// What the parts of the keys gave, as one. A warp has a query.
template <class T>
__global__ void flash_combine_kernel(const FlashAttention p) {
  const int64_t rows = static_cast<int64_t>(p.batch) * p.heads * p.queries;
  const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  const int64_t head_number = row / p.queries;
  const int query = static_cast<int>(row % p.queries);
  if (row >= rows) return;
  float most = -INFINITY;
  for (int s = 0; s < p.splits; ++s) most = fmaxf(most, p.partial_logsumexp[s * rows + row]);
  const float base = most == -INFINITY ? 0.0f : most;
  float sum = 0;
  for (int s = 0; s < p.splits; ++s) sum += expf(p.partial_logsumexp[s * rows + row] - base);
  const float inverse = sum == 0 ? 0.0f : 1 / sum;
  if (lane == 0 && p.logsumexp) {
    p.logsumexp[head_number * p.logsumexp_rows + query] = sum == 0 ? p.empty_logsumexp : base + logf(sum);
    if (query == p.queries - 1)
      for (int i = p.queries; i < p.logsumexp_rows; ++i) p.logsumexp[head_number * p.logsumexp_rows + i] = INFINITY;
  }
  T* const out = static_cast<T*>(p.out) + head_number / p.heads * p.out_strides[0] +
                 head_number % p.heads * p.out_strides[1] + query * p.out_strides[2];
  for (int c = lane; c < p.dv; c += 32) {
    float result = 0;
    for (int s = 0; s < p.splits; ++s)
      result += expf(p.partial_logsumexp[s * rows + row] - base) * p.partial[(s * rows + row) * p.dv + c];
    out[c] = element_of<T>(result * inverse);
  }
}

}  // namespace sconce::cuda
