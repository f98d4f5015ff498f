// Weights in the blocks of output channels that oneDNN's convolutions read, ordered by our own loop. The library's own
// reordering moves single elements. For weights whose channels are a power of two apart, it loads most cache lines
// many times: 2,048 x 512 channels of float32 take 10 ms with the library and 0.4 ms here (Zen 5).
#pragma once

#include <cstdint>
#include <dnnl.hpp>

namespace sconce::onednn {

class WeightBlocks {
 public:
  WeightBlocks() = default;
  // From [out, in, kernel] of any strides to blocks of 8 * n output channels, of bfloat16 with pairs of input
  // channels. Not usable() for other layouts, or if the elements to move are not adjacent.
  WeightBlocks(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  bool usable() const noexcept { return usable_; }
  // On up to kernel_threads() threads.
  void order(const void* from, void* to) const noexcept;

 private:
  // In units of 4 bytes. A run is a contiguous read of one output channel.
  bool usable_ = false;
  int64_t out_ = 0, block_ = 0, from_out_ = 0, to_block_ = 0;
  int64_t runs_ = 0, from_run_ = 0, to_run_ = 0;  // of each output channel
  int64_t rows_ = 0, taps_ = 1, to_tap_ = 0, to_row_ = 0;
};

}  // namespace sconce::onednn
