// Attention with few queries or little work (flash_attention.h), limited by the bandwidth or latency of keys and
// values. They go from memory directly to registers: each warp processes every fourth step of the keys, without
// waiting for others, and prefetches its next step. Everything is transposed, so that queries are the 8 columns of a
// product: scores^T = K Q^T and out^T = V^T P^T. As sums may take any order, the elements of a product are numbered so
// that the 16 bytes which a lane reads from a row are its own operands.
#pragma once

#include <cmath>

#include "src/cuda/attention/flash/flash_attention.h"
#include "src/cuda/attention/flash/flash_forms.h"
#include "src/cuda/attention/flash/flash_numbers.cuh"
#include "src/cuda/device_code/early_start.cuh"
#include "src/cuda/device_code/warp_mma.cuh"

namespace sconce::cuda {

// Reads 16 bytes that are used once; zeros if `read` is false.
__device__ __forceinline__ uint4 read_16(const void* from, bool read) {
  uint4 v;
  asm volatile(
      "{\n .reg .pred p;\n setp.ne.b32 p, %5, 0;\n mov.b32 %0, 0;\n mov.b32 %1, 0;\n mov.b32 %2, 0;\n mov.b32 %3, 0;\n"
      " @p ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
      : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w)
      : "l"(from), "r"(static_cast<int>(read)));
  return v;
}
__device__ __forceinline__ uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// 8 * kQueryTiles queries per block, 16 * kKeyTiles keys per step.
template <class T, int kDim, int kQueryTiles, int kKeyTiles>
__global__ void __launch_bounds__(kFlashThreads, kQueryTiles == 1 ? kFlashFewBlocks : 2)
    flash_few_kernel(const FlashAttention p) {
  constexpr int kRows = 8 * kQueryTiles, kKeys = 16 * kKeyTiles, kWarps = kFlashThreads / 32, kPitch = kDim + 4;
  __shared__ __align__(16) float memory[kWarps * kRows * kPitch];
  __shared__ float warp_most[kWarps][kRows], warp_total[kWarps][kRows];
  let_next_start();
  wait_for_previous();

  const int blocks = (p.queries + kRows - 1) / kRows;
  const int64_t head_number = blockIdx.x / blocks;
  const int first_query = static_cast<int>(blockIdx.x % blocks) * kRows;
  const int batch = static_cast<int>(head_number / p.heads), head = static_cast<int>(head_number % p.heads);
  const int kv_head = head / (p.heads / p.kv_heads);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  int limit = p.keys;
  if (p.causal) limit = min(limit, min(first_query + kRows, p.queries) + p.diagonal);
  const int all = limit > 0 ? (limit + kKeys - 1) / kKeys : 0, each = (all + p.splits - 1) / p.splits;
  const int begin = static_cast<int>(blockIdx.y) * each, end = min(all, begin + each);

  const T* const q = static_cast<const T*>(p.q) + batch * p.q_strides[0] + head * p.q_strides[1] + 8 * t;
  const T* const k = static_cast<const T*>(p.k) + batch * p.k_strides[0] + kv_head * p.k_strides[1] + 8 * t;
  const T* const v = static_cast<const T*>(p.v) + batch * p.v_strides[0] + kv_head * p.v_strides[1] + 8 * g;
  const T* const bias =
      p.bias ? static_cast<const T*>(p.bias) + batch * p.bias_strides[0] + head * p.bias_strides[1] : nullptr;

  uint4 key_words[kKeyTiles][2][kDim / 32], value_words[kKeyTiles][4][kDim / 64];
  const auto read_keys = [&](int step) {
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = step * kKeys + 16 * m + 8 * half + g;
        const T* const row = k + key * p.k_strides[2];
#pragma unroll
        for (int j = 0; j < kDim / 32; ++j)
          key_words[m][half][j] = read_16(row + 32 * j, key < p.keys && 32 * j + 8 * t < p.d);
      }
  };
  const auto read_values = [&](int step) {
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = step * kKeys + 16 * m + 2 * t + i % 2 + i / 2 * 8;
        const T* const row = v + key * p.v_strides[2];
#pragma unroll
        for (int c = 0; c < kDim / 64; ++c)
          value_words[m][i][c] = read_16(row + 64 * c, key < p.keys && 64 * c + 8 * g < p.dv);
      }
  };

  int step = begin + warp;
  if (step < end) {
    read_keys(step);
    read_values(step);
  }
  uint4 query_words[kQueryTiles][kDim / 32];
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n) {
    const int query = first_query + 8 * n + g;
#pragma unroll
    for (int j = 0; j < kDim / 32; ++j)
      query_words[n][j] = read_16(q + query * p.q_strides[2] + 32 * j, query < p.queries && 32 * j + 8 * t < p.d);
  }

  // Exponentials have base 2. A positive scale without a bias is folded into them; otherwise scores are scaled at once.
  const bool folded = !bias && p.scale > 0;
  const float factor = folded ? p.scale * kLog2E : 1.0f, scale = p.scale * kLog2E;
  float sums[kDim / 16][kQueryTiles][4], most[kQueryTiles][2], total[kQueryTiles][2];
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n) {
    most[n][0] = most[n][1] = -INFINITY;
    total[n][0] = total[n][1] = 0;
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d)
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[d][n][i] = 0;
  }

  for (; step < end; step += kWarps) {
    const int first_key = step * kKeys;
    float scores[kKeyTiles][kQueryTiles][4];  // (key g, query 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
    float added[kKeyTiles][kQueryTiles][4];
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
      for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          scores[m][n][i] = 0;
          if (bias) {
            const int key = min(first_key + 16 * m + i / 2 * 8 + g, p.keys - 1),
                      query = min(first_query + 8 * n + 2 * t + i % 2, p.queries - 1);
            added[m][n][i] = number_of(bias[query * p.bias_strides[2] + key * p.bias_strides[3]]);
          }
        }
#pragma unroll
    for (int j = 0; j < kDim / 32; ++j)
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int m = 0; m < kKeyTiles; ++m) {
          const uint32_t a[4] = {word_of(key_words[m][0][j], 2 * part), word_of(key_words[m][1][j], 2 * part),
                                 word_of(key_words[m][0][j], 2 * part + 1), word_of(key_words[m][1][j], 2 * part + 1)};
#pragma unroll
          for (int n = 0; n < kQueryTiles; ++n)
            multiply(scores[m][n], a, word_of(query_words[n][j], 2 * part), word_of(query_words[n][j], 2 * part + 1),
                     T());
        }
    if (step + kWarps < end) read_keys(step + kWarps);

    const bool cut = first_key + kKeys > p.keys || (p.causal && first_key + kKeys - 1 > first_query + p.diagonal);
    uint32_t chances[kKeyTiles][kQueryTiles][2];
#pragma unroll
    for (int n = 0; n < kQueryTiles; ++n) {
      float correction[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (!folded) {
#pragma unroll
          for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
              float& score = scores[m][n][2 * half + i];
              score *= scale;
              if (bias) score += added[m][n][2 * half + i] * kLog2E;
            }
        }
        if (cut) {
          const int query = first_query + 8 * n + 2 * t + i,
                    end_key = p.causal ? min(p.keys - 1, query + p.diagonal) : p.keys - 1;
#pragma unroll
          for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
            for (int half = 0; half < 2; ++half)
              if (first_key + 16 * m + 8 * half + g > end_key) scores[m][n][2 * half + i] = -INFINITY;
        }
        float highest = most[n][i];
#pragma unroll
        for (int m = 0; m < kKeyTiles; ++m) highest = fmaxf(highest, fmaxf(scores[m][n][i], scores[m][n][2 + i]));
        highest = most_of_column(highest);
        const float base = highest == -INFINITY ? 0.0f : highest * factor;  // a query that has seen no key yet
        correction[i] = power_of_2(most[n][i] * factor - base);
        most[n][i] = highest;
        total[n][i] *= correction[i];
#pragma unroll
        for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float& score = scores[m][n][2 * half + i];
            score = power_of_2(score * factor - base);
            total[n][i] += score;
          }
      }
      if (__any_sync(0xFFFFFFFFu, correction[0] != 1 || correction[1] != 1)) {  // becomes rarer along the row
#pragma unroll
        for (int d = 0; d < kDim / 16; ++d)
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[d][n][i] *= correction[i % 2];
      }
#pragma unroll
      for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          chances[m][n][half] = turn(pack(scores[m][n][2 * half], scores[m][n][2 * half + 1], T()));
    }
#pragma unroll
    for (int m = 0; m < kKeyTiles; ++m)
#pragma unroll
      for (int c = 0; c < kDim / 64; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const uint32_t first = word_of(value_words[m][0][c], e), second = word_of(value_words[m][1][c], e),
                         third = word_of(value_words[m][2][c], e), fourth = word_of(value_words[m][3][c], e);
          const uint32_t a[4] = {__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632),
                                 __byte_perm(third, fourth, 0x5410), __byte_perm(third, fourth, 0x7632)};
#pragma unroll
          for (int n = 0; n < kQueryTiles; ++n)
            multiply(sums[4 * c + e][n], a, chances[m][n][0], chances[m][n][1], T());
        }
    if (step + kWarps < end) read_values(step + kWarps);
  }

  // Combine the results of the warps.
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float sum = sum_of_column(total[n][i]);
      if (g == 0) {
        warp_most[warp][8 * n + 2 * t + i] = most[n][i] * factor;
        warp_total[warp][8 * n + 2 * t + i] = sum;
      }
    }
  __syncthreads();
#pragma unroll
  for (int n = 0; n < kQueryTiles; ++n)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = 8 * n + 2 * t + i;
      float highest = -INFINITY, sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) highest = fmaxf(highest, warp_most[w][row]);
      const float base = highest == -INFINITY ? 0.0f : highest;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += power_of_2(warp_most[w][row] - base) * warp_total[w][row];
      const float weight = sum == 0 ? 0.0f : power_of_2(warp_most[warp][row] - base) / sum;
      const int query = first_query + row;
      if (warp == 0 && g == 0 && query < p.queries) {
        const float logsumexp = sum == 0 ? -INFINITY : (base + log2f(sum)) * kLn2;
        if (p.splits > 1)
          p.partial_logsumexp[(static_cast<int64_t>(blockIdx.y) * p.batch * p.heads + head_number) * p.queries +
                              query] = logsumexp;
        else if (query < p.logsumexp_rows)
          p.logsumexp[head_number * p.logsumexp_rows + query] = sum == 0 ? p.empty_logsumexp : logsumexp;
      }
      float* const mine = memory + (warp * kRows + row) * kPitch + 8 * g;
#pragma unroll
      for (int c = 0; c < kDim / 64; ++c)
#pragma unroll
        for (int e = 0; e < 4; e += 2)
          *reinterpret_cast<float4*>(mine + 64 * c + 2 * e) =
              float4{sums[4 * c + e][n][i] * weight, sums[4 * c + e][n][2 + i] * weight,
                     sums[4 * c + e + 1][n][i] * weight, sums[4 * c + e + 1][n][2 + i] * weight};
    }
  __syncthreads();
  T* const out =
      static_cast<T*>(p.out) + batch * p.out_strides[0] + head * p.out_strides[1] + first_query * p.out_strides[2];
  const int rows = min(kRows, p.queries - first_query), chunks = p.dv / 4;
  for (int i = threadIdx.x; i < rows * chunks; i += kFlashThreads) {
    const int row = i / chunks, column = i % chunks * 4;
    float4 sum{0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float4 part = *reinterpret_cast<const float4*>(memory + (w * kRows + row) * kPitch + column);
      sum.x += part.x;
      sum.y += part.y;
      sum.z += part.z;
      sum.w += part.w;
    }
    if (p.splits > 1) {
      const int64_t at =
          (static_cast<int64_t>(blockIdx.y) * p.batch * p.heads + head_number) * p.queries + first_query + row;
      *reinterpret_cast<float4*>(p.partial + at * p.dv + column) = sum;
    } else {
      store_four(out + row * p.out_strides[2] + column, sum);
    }
  }
  if (p.splits == 1 && first_query + kRows >= p.queries)
    for (int i = p.queries + threadIdx.x; i < p.logsumexp_rows; i += kFlashThreads)
      p.logsumexp[head_number * p.logsumexp_rows + i] = INFINITY;
}

}  // namespace sconce::cuda
