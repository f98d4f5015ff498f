// The plan of convolve_channels() for one piece of a convolution.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "src/cpu/convolution/direct/convolution_pieces.h"
#include "src/cpu/convolution/direct/convolution_weights.h"

namespace sconce {

// A box of outputs: images, slices, rows, columns. If a dimension has more than one, all later ones are whole.
using Box = std::array<int64_t, 4>;
struct Band {
  Box first, count;
  int64_t pixels() const noexcept { return count[0] * count[1] * count[2] * count[3]; }
};

// Steps of the sum that share a pass over the pixels.
struct Pass {
  int64_t first_run, runs, first_row;
};

struct ChannelsPlan {
  ChannelsPlan(const ConvolutionShape& shape, const ConvolutionOperands& operands, const ActivationView& output,
               Piece of);

  Piece piece;
  WeightOrder order;
  int64_t groups = 1, in_channels = 0, out_channels = 0;  // per group; depthwise: one group of all channels
  bool direct_in = false, direct_out = false;             // no copy of the input, none of the output
  bool accumulate = false, relu = false, finish = false;  // in the inner loop, or in a separate pass
  std::array<int64_t, 3> box{};                           // slices, rows, columns of the copied input
  std::array<int64_t, 3> pitch{};  // the offset of one step of a tap along each axis, in elements
  int64_t image_pitch = 0;
  std::vector<ChannelRun> runs;
  std::vector<Pass> passes;
  std::array<std::pair<size_t, size_t>, 5> passes_of{};  // by vectors of a block: a range of passes
  Box whole{};                                           // images, slices, rows, columns of the output
  Box band_count{}, bands{};                             // size and number of bands along each dimension
  int64_t splits = 1;                                    // of a band's blocks between tasks
  bool by_channels = false;                              // a thread processes a split of every band
  int64_t threads = 1;
  int64_t scratch_elems = 0;  // floats per thread

  int64_t count(size_t d) const noexcept { return piece[d].count; }
  int64_t tasks() const noexcept { return bands[0] * bands[1] * bands[2] * bands[3] * groups * splits; }
  int64_t most_pixels() const noexcept { return band_count[0] * band_count[1] * band_count[2] * band_count[3]; }
  Band band(int64_t index) const noexcept;

 private:
  void choose_bands(const ConvolutionShape& shape, int64_t most_threads);
  void choose_passes();
};

}  // namespace sconce
