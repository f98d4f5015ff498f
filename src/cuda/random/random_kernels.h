// Draws random numbers on a device, for host code. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/runtime/strided_copy.h"

namespace sconce::cuda {

// The numbers that a kernel draws: thread t of the grid uses subsequence t of the seed's stream, from `offset` on.
struct Draw {
  uint64_t seed, offset;
  unsigned blocks;  // of kRandomThreads threads
};
inline constexpr unsigned kRandomThreads = 256;

// Elements in the order of the shape, at its `to` strides.
struct RandomTarget {
  CopyShape shape;
  void* data;
  int dtype;
};

enum class Distribution {
  kUniform,      // [a, b)
  kNormal,       // mean a, standard deviation b
  kExponential,  // rate a
  kBernoulli,    // 1 with probability a; any real dtype or bool
};
// How many numbers a thread gets per draw: two for double, else four.
int numbers_per_draw(Distribution distribution, int dtype);
void launch_random(Distribution distribution, const RandomTarget& target, double a, double b, const Draw& draw,
                   cudaStream_t stream);

// base + word % range; words have 64 bits if the range needs them, else 32.
bool wide_words(uint64_t range);
void launch_random_integers(const RandomTarget& target, uint64_t range, int64_t base, const Draw& draw,
                            cudaStream_t stream);

// 1 with the probability at the shape's `from` strides, float or (for a double target) double. A thread takes four
// neighbours; blocks have 512 threads whatever draw.blocks is.
void launch_bernoulli(const RandomTarget& target, const void* probabilities, const Draw& draw, cudaStream_t stream);

// out = in * kept / keep and mask = kept, for packed elements. vector: adjacent elements per thread; 1: four elements
// that are a grid apart.
void launch_dropout(const void* in, void* out, bool* mask, int dtype, int64_t count, double keep, int vector,
                    const Draw& draw, cudaStream_t stream);

// Among adjacent keys with equal low bits, shuffles the positions. key_bytes: 4 or 8.
void launch_shuffle_equal(const void* keys, int key_bytes, int64_t* positions, int64_t count, int bits,
                          const Draw& draw, cudaStream_t stream);
// Sorts pairs by the low `bits` of signed keys. With a null scratch, only returns its size.
cudaError_t sort_by_key(void* scratch, size_t& scratch_bytes, const void* keys, void* sorted_keys, int key_bytes,
                        const int64_t* positions, int64_t* sorted_positions, int64_t count, int bits,
                        cudaStream_t stream);
void launch_iota(int64_t* values, int64_t count, cudaStream_t stream);

}  // namespace sconce::cuda
