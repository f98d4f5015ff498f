// Random numbers drawn on a device, for host code. dtype: c10::ScalarType.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "src/cuda/runtime/strided_copy.h"

namespace sconce::cuda {

// What a kernel draws: thread t of its grid has subsequence t of the seed's stream, from the offset on.
struct Draw {
  uint64_t seed, offset;
  unsigned blocks;  // of kRandomThreads
};
inline constexpr unsigned kRandomThreads = 256;

// Elements in the order of the shape, whose `to` strides are theirs.
struct RandomTarget {
  CopyShape shape;
  void* data;
  int dtype;
};

enum class Distribution {
  kUniform,      // [a, b)
  kNormal,       // mean a, standard deviation b
  kExponential,  // rate a
  kBernoulli,    // one with probability a; any real dtype or bool
};
// Numbers that one draw of a thread gives: two for double, else four.
int numbers_per_draw(Distribution distribution, int dtype);
void launch_random(Distribution distribution, const RandomTarget& target, double a, double b, const Draw& draw,
                   cudaStream_t stream);

// base + word % range, words of 64 bits where the range asks for them, else of 32.
bool wide_words(uint64_t range);
void launch_random_integers(const RandomTarget& target, uint64_t range, int64_t base, const Draw& draw,
                            cudaStream_t stream);

// One with the probability that `from` of the shape has, float or (for a double target) double. Four neighbours a
// thread, blocks of 512 whatever draw.blocks is.
void launch_bernoulli(const RandomTarget& target, const void* probabilities, const Draw& draw, cudaStream_t stream);

// out = in * kept / keep, mask = kept, of packed elements of the same order. vector: elements that a thread takes at
// once (1: it takes four that are a grid apart).
void launch_dropout(const void* in, void* out, bool* mask, int dtype, int64_t count, double keep, int vector,
                    const Draw& draw, cudaStream_t stream);

// Keys that are equal in their low bits lie together; positions under such keys are shuffled among each other.
// key_bytes: 4 or 8.
void launch_shuffle_equal(const void* keys, int key_bytes, int64_t* positions, int64_t count, int bits,
                          const Draw& draw, cudaStream_t stream);
// Sorts pairs by the low `bits` of signed keys. A null scratch asks for its size.
cudaError_t sort_by_key(void* scratch, size_t& scratch_bytes, const void* keys, void* sorted_keys, int key_bytes,
                        const int64_t* positions, int64_t* sorted_positions, int64_t count, int bits,
                        cudaStream_t stream);
void launch_iota(int64_t* values, int64_t count, cudaStream_t stream);

}  // namespace sconce::cuda
