// The random numbers that attention_dropout.h describes.
#pragma once

#include "src/cuda/attention/attention_dropout.h"

namespace sconce::cuda {

// Philox4x32 with `rounds` rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
__device__ inline void philox(uint64_t seed, uint64_t low, uint64_t high, int rounds, uint32_t (&out)[4]) {
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  out[0] = static_cast<uint32_t>(low);
  out[1] = static_cast<uint32_t>(low >> 32);
  out[2] = static_cast<uint32_t>(high);
  out[3] = static_cast<uint32_t>(high >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * out[0], second = uint64_t{0xCD9E8D57} * out[2];
    out[0] = static_cast<uint32_t>(second >> 32) ^ out[1] ^ key[0];
    out[2] = static_cast<uint32_t>(first >> 32) ^ out[3] ^ key[1];
    out[1] = static_cast<uint32_t>(second);
    out[3] = static_cast<uint32_t>(first);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

// The factor of a probability: 0 if it is dropped, else 1 / (1 - p).
__device__ inline float dropout_factor(const AttentionDropout& d, int64_t batch, int64_t head, int64_t query,
                                       int64_t key) {
  if (d.stream == AttentionDropout::Stream::kNone) return 1;
  uint32_t words[4];
  const int64_t number = (batch + d.first_batch) * d.heads + head;
  if (d.stream == AttentionDropout::Stream::kElements) {
    const uint64_t n = d.offset + static_cast<uint64_t>(number * d.head_elements + query * d.row_elements + key);
    philox(d.seed, n / 4, 0, 10, words);
    // As curand_uniform computes it.
    const float uniform = static_cast<float>(words[n % 4]) * 2.3283064e-10f + 2.3283064e-10f / 2.0f;
    return uniform > d.p ? 1.0f / (1.0f - d.p) : 0.0f;
  }
  const float kept = 1.0f - d.p;
  const auto most = static_cast<uint8_t>(floor(static_cast<double>(kept) * 255.0));
  // The lane and byte that hold this element when warps multiply tiles of 16 by 8.
  const int64_t lane = query % 8 * 4 + key % 8 / 2;
  const int byte = static_cast<int>(key % 2 + query % 16 / 8 * 2 + key % 16 / 8 * 4 + key % 32 / 16 * 8);
  philox(d.seed, d.offset + static_cast<uint64_t>(number * 32 + lane),
         static_cast<uint64_t>(query / 16) | static_cast<uint64_t>(key / 32) << 32, 7, words);
  const auto drawn = static_cast<uint8_t>(words[byte / 4] >> byte % 4 * 8);
  return drawn <= most ? 1.0f / kept : 0.0f;
}

}  // namespace sconce::cuda
