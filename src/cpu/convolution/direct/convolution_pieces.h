// A convolution, transposed or not, as pieces of one form. Along each axis, output j of a piece is
//   out[first + j * step] = sum over taps t of weight[t.kernel] * in[j * in_step + t.input]
// A transposed convolution of stride s has up to s pieces along an axis, each with stride 1 over the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "src/tensor/spatial/convolution_shape.h"

namespace sconce {

struct Tap {
  int64_t kernel;  // index into the kernel
  int64_t input;   // offset into the input; negative in the padding
};

struct PieceAxis {
  int64_t count = 0;  // outputs
  int64_t first = 0, step = 1;
  int64_t in_step = 1;
  std::vector<Tap> taps;  // may be empty: outputs that depend on no input
  int64_t lowest() const noexcept { return taps.empty() ? 0 : std::min(taps.front().input, taps.back().input); }
  int64_t highest() const noexcept { return taps.empty() ? -1 : std::max(taps.front().input, taps.back().input); }
  // The inputs that outputs [from, from + n) read: [begin, end).
  int64_t begin(int64_t from) const noexcept { return from * in_step + lowest(); }
  int64_t end(int64_t from, int64_t n) const noexcept { return (from + n - 1) * in_step + highest() + 1; }
};

using Piece = std::array<PieceAxis, 3>;

// Pieces along one axis; pieces without outputs are left out.
std::vector<PieceAxis> piece_axes(const ConvolutionShape& shape, size_t axis);

}  // namespace sconce
