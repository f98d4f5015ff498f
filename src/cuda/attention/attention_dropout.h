// The probabilities that dropout removes: PyTorch's streams of random numbers, for host code.
#pragma once

#include <cstdint>

namespace sconce::cuda {

struct AttentionDropout {
  enum class Stream {
    kNone,
    kElements,  // memory-efficient attention: the generator's number [batch][head][query][key]
    kBlocks     // flash attention: one byte of the counter for a block of 16 queries and 32 keys
  };
  Stream stream = Stream::kNone;
  uint64_t seed = 0, offset = 0;
  float p = 0;
  int64_t first_batch = 0;  // batch of row 0
  int64_t heads = 1;
  int64_t head_elements = 0, row_elements = 0;  // kElements: distance of heads and of queries
};

}  // namespace sconce::cuda
