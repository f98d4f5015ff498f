// The kernel of flash_attention.h. Each of four warps has 16 or 32 queries and walks over tiles of keys. Scores and
// probabilities stay in registers; a running maximum and sum rescale earlier results (online softmax). While one half
// of shared memory is in use, the next keys, values and bias arrive in the other. Half types multiply with float32
// sums; float32 is split into two TF32 numbers and takes three products, which keeps all but the last bits.
#pragma once

#include <cmath>

#include "src/cuda/attention/flash/flash_attention.h"
#include "src/cuda/attention/flash/flash_numbers.cuh"
#include "src/cuda/device_code/early_start.cuh"
#include "src/cuda/device_code/warp_mma.cuh"

namespace sconce::cuda {

// Elements T, rows of up to kDim elements, kTiles * 16 queries per warp, kKeys keys per tile.
template <class T, int kDim, int kTiles, int kKeys>
struct FlashTile {
  static constexpr int kChunk = 16 / sizeof(T);  // elements that one copy moves
  static constexpr int kPitch = kDim + kChunk;   // of rows in shared memory; neighbouring rows start in different banks

  float scores[kTiles][kKeys / 8][4];
  float sums[kTiles][kDim / 8][4];

  // Copies rows [first, first + kCount) with `columns` elements into shared memory; zeros beyond `rows` and `columns`.
  template <int kCount>
  static __device__ __forceinline__ void fetch(T* to, const T* from, int64_t stride, int first, int rows, int columns) {
    constexpr int kChunks = kDim / kChunk, kStep = kFlashThreads / kChunks;
    static_assert(kFlashThreads % kChunks == 0 && kCount % kStep == 0);
    const int row = threadIdx.x / kChunks, column = threadIdx.x % kChunks * kChunk;
    const T* at = from + (first + row) * stride + column;
    T* const into = to + row * kPitch + column;
#pragma unroll
    for (int r = 0; r < kCount; r += kStep) {
      const bool read = first + row + r < rows && column < columns;
      copy_16(into + r * kPitch, read ? at : from, read);
      at += kStep * stride;
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

  // scores = queries (of this warp, from row 0) times keys transposed. kWhole: rows have kDim elements, so no branches.
  template <bool kWhole>
  __device__ __forceinline__ void multiply_keys(const T* queries, const T* keys, int d) {
    clear_scores();
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kDim; k += 16) {
      if (!kWhole && k >= d) break;
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

  // sums += probabilities (stored in `scores`) times values.
  template <bool kWhole>
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
        if (!kWhole && 8 * n >= dv) break;
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

  // Writes this lane's part of a row.
  template <class To>
  __device__ __forceinline__ void put(int m, int half, float times, To* to, int dv) const {
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n)
      if (8 * n < dv)
        store_two(to + 8 * n + 2 * (threadIdx.x % 4), sums[m][n][2 * half] * times, sums[m][n][2 * half + 1] * times);
  }
};

template <int kDim, int kTiles, int kKeys>
struct FlashTileFloat : FlashTile<float, kDim, kTiles, kKeys> {
  using Base = FlashTile<float, kDim, kTiles, kKeys>;
  using Base::kPitch;
  using Base::scores;
  using Base::sums;

  // c[m][n] += a b for kCount values of n, with a and b split in two. Omits the product of the low parts, which is
  // below the last bit. Spaces dependent sums apart.
  template <int kCount, int kAll>
  static __device__ __forceinline__ void multiply_split(float (&c)[kTiles][kAll][4], int first,
                                                        const uint32_t (&high)[kTiles][4],
                                                        const uint32_t (&low)[kTiles][4], const float (&b)[kCount][2]) {
    uint32_t h[kCount][2], l[kCount][2];
#pragma unroll
    for (int n = 0; n < kCount; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) split(b[n][i], h[n][i], l[n][i]);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < kCount; ++n) multiply_tf32(c[m][first + n], low[m], h[n][0], h[n][1]);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < kCount; ++n) multiply_tf32(c[m][first + n], high[m], l[n][0], l[n][1]);
#pragma unroll
    for (int m = 0; m < kTiles; ++m)
#pragma unroll
      for (int n = 0; n < kCount; ++n) multiply_tf32(c[m][first + n], high[m], h[n][0], h[n][1]);
  }

  template <bool kWhole>
  __device__ __forceinline__ void multiply_keys(const float* queries, const float* keys, int d) {
    this->clear_scores();
    const int lane = threadIdx.x % 32, row = lane % 8, matrix = lane / 8;
#pragma unroll
    for (int k = 0; k < kDim; k += 8) {
      if (!kWhole && k >= d) break;
      uint32_t high[kTiles][4], low[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        uint32_t a[4];  // a row of 16 bytes is four numbers
        load_matrices(a, queries + (16 * m + matrix % 2 * 8 + row) * kPitch + k + matrix / 2 * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) split(__uint_as_float(a[i]), high[m][i], low[m][i]);
      }
      float b[kKeys / 8][2];
#pragma unroll
      for (int n = 0; n < kKeys / 8; n += 2) {
        uint32_t words[4];
        load_matrices(words, keys + (8 * n + matrix / 2 * 8 + row) * kPitch + k + matrix % 2 * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) b[n + i / 2][i % 2] = __uint_as_float(words[i]);
      }
      multiply_split<kKeys / 8>(scores, 0, high, low, b);
    }
  }

  // Uses columns 2t and 2t + 1 of a tile of scores as its numbers t and t + 4, since sums may take any order. Column g
  // of four tiles of values is read at once, as the four numbers from 4g on.
  template <bool kWhole>
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
      for (int n = 0; n < kDim / 8; n += 4) {
        if (!kWhole && 8 * n >= dv) break;
        const float4* const at = reinterpret_cast<const float4*>(values + (8 * k + 2 * t) * kPitch + 8 * n + 4 * g);
        const float4 first = at[0], second = at[kPitch / 4];
        const float b[4][2] = {{first.x, second.x}, {first.y, second.y}, {first.z, second.z}, {first.w, second.w}};
        multiply_split<4>(sums, n, high, low, b);
      }
    }
  }

  __device__ __forceinline__ void put(int m, int half, float times, float* to, int dv) const {
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 4)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int column = 8 * n + 8 * (threadIdx.x % 4) + 4 * i, at = 2 * half + i;
        if (column < dv)
          store_four(to + column, float4{sums[m][n][at] * times, sums[m][n + 1][at] * times, sums[m][n + 2][at] * times,
                                         sums[m][n + 3][at] * times});
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

// kBiased: the bias is fetched as keys are, or once per tile if all queries share it.
template <class T, int kDim, int kTiles, int kKeys, bool kBiased>
__global__ void __launch_bounds__(kFlashThreads) flash_kernel(const FlashAttention p) {
  constexpr int kRows = 64 * kTiles;
  using Tile = typename FlashTileOf<T, kDim, kTiles, kKeys>::Type;
  constexpr int kQueryElements = kRows * Tile::kPitch, kKeyElements = kKeys * Tile::kPitch;
  constexpr int kBiasPitch = kKeys + 8, kBiasElements = kRows * kBiasPitch;
  extern __shared__ __align__(16) unsigned char flash_memory[];
  T* const queries = reinterpret_cast<T*>(flash_memory);
  T* const tiles = queries + kQueryElements;  // keys, values, keys, values
  T* const biases = tiles + 4 * kKeyElements;

  const int blocks = (p.queries + kRows - 1) / kRows;
  const int64_t head_number = blockIdx.x / blocks;
  // Causal: start the blocks with the most keys first.
  const int block =
      p.causal ? blocks - 1 - static_cast<int>(blockIdx.x % blocks) : static_cast<int>(blockIdx.x % blocks);
  const int batch = static_cast<int>(head_number / p.heads), head = static_cast<int>(head_number % p.heads);
  const int kv_head = head / (p.heads / p.kv_heads), first_query = block * kRows;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int warp_row = warp * 16 * kTiles;
  const bool works = first_query + warp_row < p.queries;

  const T* q = static_cast<const T*>(p.q) + batch * p.q_strides[0] + head * p.q_strides[1];
  const T* k = static_cast<const T*>(p.k) + batch * p.k_strides[0] + kv_head * p.k_strides[1];
  const T* v = static_cast<const T*>(p.v) + batch * p.v_strides[0] + kv_head * p.v_strides[1];
  const T* bias = static_cast<const T*>(p.bias) + batch * p.bias_strides[0] + head * p.bias_strides[1];
  const bool same_bias = p.bias_strides[2] == 0;

  int limit = p.keys;
  if (p.causal) limit = min(limit, min(first_query + kRows, p.queries) + p.diagonal);
  const int all = limit > 0 ? (limit + kKeys - 1) / kKeys : 0, each = (all + p.splits - 1) / p.splits;
  const int begin = static_cast<int>(blockIdx.y) * each, end = min(all, begin + each);

  // Exponentials have base 2. A positive scale without a bias is folded into them; otherwise scores are scaled at once.
  const bool folded = !kBiased && p.scale > 0;
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
    if constexpr (kBiased) {
      constexpr int kChunks = kKeys / Tile::kChunk, kStep = kFlashThreads / kChunks;
      static_assert(kFlashThreads % kChunks == 0 && kRows % kStep == 0);
      const int row = threadIdx.x / kChunks, column = threadIdx.x % kChunks * Tile::kChunk;
      const int left = p.keys - number * kKeys - column;  // bias beyond the last key may be unmapped memory
      const int bytes = max(min(left, Tile::kChunk), 0) * static_cast<int>(sizeof(T));
      const T* const from = bytes == 0 ? bias : bias + number * kKeys + column;
      const int64_t stride = bytes == 0 ? 0 : p.bias_strides[2];
      T* const into = biases + (number - begin) % 2 * kBiasElements + row * kBiasPitch + column;
      if (same_bias) {
        if (row == 0) copy_up_to_16(into, from, bytes);
      } else {
#pragma unroll
        for (int r = 0; r < kRows; r += kStep)
          copy_up_to_16(into + r * kBiasPitch, from + min(first_query + row + r, p.queries - 1) * stride, bytes);
      }
    }
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
      const T* keys = tiles + (number - begin) % 2 * 2 * kKeyElements;
      if (p.d > kDim - 16)
        tile.template multiply_keys<true>(queries + warp_row * Tile::kPitch, keys, p.d);
      else
        tile.template multiply_keys<false>(queries + warp_row * Tile::kPitch, keys, p.d);
      const int first_key = number * kKeys;
      const bool cut =
          first_key + kKeys > p.keys || (p.causal && first_key + kKeys - 1 > first_query + warp_row + p.diagonal);
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int query = first_query + warp_row + 16 * m + 8 * half + g;
          if constexpr (kBiased) {
            const T* const row = biases + (number - begin) % 2 * kBiasElements +
                                 (same_bias ? 0 : (warp_row + 16 * m + 8 * half + g) * kBiasPitch) + 2 * t;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n) {
              const float2 two = load_two(row + 8 * n);
              float &first = tile.scores[m][n][2 * half], &second = tile.scores[m][n][2 * half + 1];
              first = first * scale + two.x * kLog2E;
              second = second * scale + two.y * kLog2E;
            }
          } else if (!folded) {
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i) tile.scores[m][n][2 * half + i] *= scale;
          }
          if (cut) {
            const int last = p.causal ? min(p.keys - 1, query + p.diagonal) : p.keys - 1;
#pragma unroll
            for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i)
                if (first_key + 8 * n + 2 * t + i > last) tile.scores[m][n][2 * half + i] = -INFINITY;
          }
          float highest = most[m][half];
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) highest = fmaxf(highest, tile.scores[m][n][2 * half + i]);
          highest = most_of_group(highest);
          const float base = highest == -INFINITY ? 0.0f : highest * factor;  // a query that has seen no key yet
          const float correction = power_of_2(most[m][half] * factor - base);
          most[m][half] = highest;
          float sum = total[m][half] * correction;
#pragma unroll
          for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              float& score = tile.scores[m][n][2 * half + i];
              score = power_of_2(score * factor - base);
              sum += score;
            }
          total[m][half] = sum;
          if (__any_sync(0xFFFFFFFFu, correction != 1)) {  // becomes rarer along the row
#pragma unroll
            for (int n = 0; n < kDim / 8; ++n)
#pragma unroll
              for (int i = 0; i < 2; ++i) tile.sums[m][n][2 * half + i] *= correction;
          }
        }
      if (p.dv > kDim - 16)
        tile.template multiply_values<true>(keys + kKeyElements, p.dv);
      else
        tile.template multiply_values<false>(keys + kKeyElements, p.dv);
    }
    __syncthreads();  // the other half is free now
  }
  wait_copies<0>();

  // This warp's rows go through shared memory, so that writes to the device are contiguous.
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
        } else if (query < p.logsumexp_rows) {
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
      if (!partial)
        tile.put(m, half, inverse, mine + row * Tile::kPitch, p.dv);
      else if (query < p.queries)
        tile.put(m, half, inverse, partial, p.dv);
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

// Combines the results of the parts of the keys. One warp per query.
template <class T>
__global__ void __launch_bounds__(kCombineThreads) flash_combine_kernel(const FlashAttention p) {
  const int64_t rows = static_cast<int64_t>(p.batch) * p.heads * p.queries;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kCombineThreads / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int64_t head_number = row / p.queries;
  const int query = static_cast<int>(row % p.queries);
  if (row >= rows) return;
  wait_for_previous();
  const float a = lane < p.splits ? p.partial_logsumexp[lane * rows + row] : -INFINITY,
              b = lane + 32 < p.splits ? p.partial_logsumexp[(lane + 32) * rows + row] : -INFINITY;
  const float most = most_of_warp(fmaxf(a, b)), base = most == -INFINITY ? 0.0f : most;
  float first = expf(a - base), second = expf(b - base);
  const float sum = sum_of_warp(first + second), inverse = sum == 0 ? 0.0f : 1 / sum;
  first *= inverse;
  second *= inverse;
  if (lane == 0 && query < p.logsumexp_rows) {
    p.logsumexp[head_number * p.logsumexp_rows + query] = sum == 0 ? p.empty_logsumexp : base + logf(sum);
    if (query == p.queries - 1)
      for (int i = p.queries; i < p.logsumexp_rows; ++i) p.logsumexp[head_number * p.logsumexp_rows + i] = INFINITY;
  }
  T* const out = static_cast<T*>(p.out) + head_number / p.heads * p.out_strides[0] +
                 head_number % p.heads * p.out_strides[1] + query * p.out_strides[2];
  for (int c = 4 * lane; c - 4 * lane < p.dv; c += 128) {
    const float* const from = p.partial + row * p.dv + (c < p.dv ? c : 0);
    float4 result{0, 0, 0, 0};
#pragma unroll 8
    for (int s = 0; s < p.splits; ++s) {
      const float4 part = *reinterpret_cast<const float4*>(from + s * rows * p.dv);
      const float weight = __shfl_sync(0xFFFFFFFFu, s < 32 ? first : second, s % 32);
      result.x += weight * part.x;
      result.y += weight * part.y;
      result.z += weight * part.z;
      result.w += weight * part.w;
    }
    if (c < p.dv) store_four(out + c, result);
  }
}

}  // namespace sconce::cuda
