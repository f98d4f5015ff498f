#include "src/cpu/convolution/direct/convolution_pieces.h"

namespace sconce {

std::vector<PieceAxis> piece_axes(const ConvolutionShape& s, size_t axis) {
  const int64_t stride = s.stride[axis], padding = s.padding[axis], dilation = s.dilation[axis];
  std::vector<PieceAxis> axes;
  if (!s.transposed) {
    PieceAxis a{s.output[axis], 0, 1, stride, {}};
    a.taps.reserve(static_cast<size_t>(s.kernel[axis]));
    for (int64_t k = 0; k < s.kernel[axis]; ++k) a.taps.push_back({k, k * dilation - padding});
    if (a.count > 0) axes.push_back(std::move(a));
    return axes;
  }
  // Output o gets in[i] * weight[k] where o + padding = i * stride + k * dilation.
  for (int64_t residue = 0; residue < stride; ++residue) {
    const int64_t first = ((residue - padding) % stride + stride) % stride;
    if (first >= s.output[axis]) continue;
    PieceAxis a{(s.output[axis] - first + stride - 1) / stride, first, stride, 1, {}};
    const int64_t base = (first + padding - residue) / stride;
    for (int64_t k = 0; k < s.kernel[axis]; ++k)
      if (k * dilation % stride == residue) a.taps.push_back({k, base - k * dilation / stride});
    axes.push_back(std::move(a));
  }
  return axes;
}

}  // namespace sconce
