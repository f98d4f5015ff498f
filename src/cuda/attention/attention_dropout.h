// Which probabilities of attention are dropped: PyTorch's streams of random numbers, for host code.
#pragma once

#include <cstdint>

namespace sconce::cuda {

struct AttentionDropout {
  enum class Stream {
    kNone,
    kElements,  // of memory-efficient attention: number [batch][head][query][key] of the generator's
    kBlocks     // of flash attention: a byte of a counter of the block of 16 queries and 32 keys
  };
  Stream stream = Stream::kNone;
  uint64_t seed = 0, offset = 0;
  float p = 0;
  int64_t first_batch = 0;  // that of row 0
  int64_t heads = 1;
  int64_t head_elements = 0, row_elements = 0;  // kElements: from head to head and from query to query
};

}  // namespace sconce::cuda
