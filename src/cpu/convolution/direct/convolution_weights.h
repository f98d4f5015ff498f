// Weights in the order in which convolve_channels() reads them. Those of a constant are made once and kept with its
// storage, in its own dtype (depthwise: float32); others are float32.
#pragma once

#include <array>
#include <vector>

#include "src/cpu/convolution/direct/convolution_channels.h"

namespace sconce {

// The output channels of a group in blocks of `vectors` vectors, as even as possible.
struct ChannelBlocks {
  ChannelBlocks(const ChannelTiles& tiles, int64_t channels) noexcept;
  int64_t count = 0;
  int64_t all_vectors = 0;
  int vectors(int64_t block) const noexcept { return static_cast<int>(least_ + (block < longer_ ? 1 : 0)); }
  int64_t first_vector(int64_t block) const noexcept { return block * least_ + std::min(block, longer_); }

 private:
  int64_t least_ = 0, longer_ = 0;
};

// The part of a weight and its order: for each group, for each block, [taps][inputs][vectors * width]; depthwise: for
// each block, [taps][vectors * width].
struct WeightOrder {
  const ChannelTiles* tiles = nullptr;
  bool depthwise = false;
  int64_t groups = 1, out = 0, in = 0;  // of a group; depthwise: one group, one input
  std::vector<int64_t> taps;            // indices into the kernel, row-major

  // All values that the ordered elements depend on, except the weight's address: the fields above, the weight's
  // strides.
  std::array<int64_t, 15> recipe{};
  uint64_t hash = 0;
  void set_recipe(const ConvolutionShape& shape, const WeightView& weight) noexcept;

  int64_t group_elems() const noexcept {
    return ChannelBlocks(*tiles, out).all_vectors * tiles->width * in * static_cast<int64_t>(taps.size());
  }
};

class OrderedWeight {
 public:
  // `order` has its recipe. `constant`: the storage of weight.data if its bytes never change, else null.
  OrderedWeight(const ConvolutionShape& shape, const WeightView& weight, const WeightOrder& order, Storage* constant);
  const void* data() const noexcept { return data_; }
  DType dtype() const noexcept { return dtype_; }

 private:
  const void* data_ = nullptr;
  DType dtype_ = DType::kFloat32;
  Tensor own_;
};

}  // namespace sconce
