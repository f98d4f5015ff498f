#include "src/cpu/pooling/resample.h"

#include <array>

#include "sconce/check.h"
#include "src/cpu/pooling/picked_row.h"
#include "src/cpu/pooling/resample_lines.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/spatial/resample_taps.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

using enum ResampleMode;
constexpr OptScale kNone;

// Each neighbour counts by itself, even where several fall on the same element at the ends of a line.
template <class T>
LineWindows taps_along(ResampleMode mode, const ResampledAxis& axis, bool align_corners) {
  const size_t used = taps_of(mode);
  LineWindows lines;
  lines.width = static_cast<int64_t>(used);
  for (int64_t o = 0; o < axis.output; ++o) {
    const Taps<T> taps = make_taps<T>(mode, axis, align_corners, o);
    lines.windows.push_back({taps.at[0], lines.width});
    lines.places.insert(lines.places.end(), taps.at.begin(), taps.at.begin() + used);
    lines.weights.insert(lines.weights.end(), taps.weight.begin(), taps.weight.begin() + used);
  }
  return lines;
}
// For integers: neighbours that fall on the same element are joined to one.
LineWindows windows_of(ResampleMode mode, const ResampledAxis& axis, bool align_corners) {
  const size_t used = taps_of(mode);
  LineWindows lines;
  lines.width = static_cast<int64_t>(used);
  lines.weights.assign(static_cast<size_t>(axis.output) * used, 0.0);
  for (int64_t o = 0; o < axis.output; ++o) {
    const Taps<double> taps = make_taps<double>(mode, axis, align_corners, o);
    const int64_t first = *std::min_element(taps.at.begin(), taps.at.begin() + used),
                  last = *std::max_element(taps.at.begin(), taps.at.begin() + used);
    lines.windows.push_back({first, last - first + 1});
    for (size_t t = 0; t < used; ++t)
      lines.weights[static_cast<size_t>(o * lines.width + taps.at[t] - first)] += taps.weight[t];
  }
  return lines;
}

// Row-major [N, C, sizes...] resampled along one of its dimensions.
Tensor along(const Tensor& in, ResampleMode mode, const ResampledAxis& axis, int64_t dim, bool align_corners,
             const char* name) {
  Shape sizes(in.sizes());
  sizes[static_cast<int>(dim)] = axis.output;
  Tensor out = Tensor::empty(sizes, in.dtype());
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < in.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : in.size(d);
  if (in.dtype() == DType::kUInt8) {
    const LineWindows lines = windows_of(mode, axis, align_corners);
    const auto [weights, shift] = fixed_point(lines);
    resample(in.data_as<uint8_t>(), out.data_as<uint8_t>(), outer, axis.input, inner, lines, weights, shift);
  } else {
    dispatch_float_double(in.dtype(), name, [&]<class T>() -> void {
      const LineWindows lines = taps_along<T>(mode, axis, align_corners);
      const std::vector<T> weights(lines.weights.begin(), lines.weights.end());
      resample(in.data_as<T>(), out.data_as<T>(), outer, axis.input, inner, lines, weights, 0);
    });
  }
  return out;
}

// Elements of the nearest places.
Tensor nearest(const Tensor& in, const std::array<ResampledAxis, 3>& axes, bool exact, IntSpan sizes, bool by_sizes) {
  Tensor out = Tensor::empty(sizes, in.dtype());
  const bool in_double = in.dtype() == DType::kFloat64 && !by_sizes;
  std::array<std::vector<int64_t>, 3> at;
  for (size_t a = 0; a < 3; ++a)
    for (int64_t o = 0; o < axes[a].output; ++o)
      at[a].push_back(in_double ? nearest_tap<double>(axes[a], exact, o, by_sizes)
                                : nearest_tap(axes[a], exact, o, by_sizes));
  const int64_t from = axes[0].input * axes[1].input * axes[2].input,
                to = axes[0].output * axes[1].output * axes[2].output;
  dispatch_bytes(in.itemsize(), [&]<class Bytes>() {
    const auto* const source = static_cast<const Bytes*>(in.data());
    auto* const target = static_cast<Bytes*>(out.data());
    const PickedRow<Bytes> picked(at[2], axes[2].input);
    const int64_t width = axes[2].output;
    for_planes(to == 0 ? 0 : out.numel() / to, to, [&](int64_t plane) noexcept {
      Bytes* next = target + plane * to;
      for (const int64_t d : at[0])
        for (size_t h = 0; h < at[1].size(); ++h, next += width) {
          if (h > 0 && at[1][h] == at[1][h - 1])  // the row that was written last
            std::copy_n(next - width, width, next);
          else
            picked(source + plane * from + (d * axes[1].input + at[1][h]) * axes[2].input, next);
        }
    });
  });
  return out;
}

Tensor resize(const char* name, const Tensor& self, IntSpan size, bool align_corners, std::array<OptScale, 3> scales,
              size_t dims, ResampleMode mode) {
  SCONCE_CHECK(size.size() == dims, kInvalidArgument, name, ": It is expected output_size equals to ", dims,
               ", but got size ", size.size());
  SCONCE_CHECK(self.dim() == static_cast<int64_t>(dims) + 2, kInvalidArgument, name, ": Non-empty ", dims + 2,
               "D data tensor expected but got a tensor with sizes ", to_string(self.sizes()));
  std::array<ResampledAxis, 3> axes;
  Shape sizes(self.sizes());
  for (size_t d = 0; d < dims; ++d) {
    axes[3 - dims + d] = {self.size(static_cast<int64_t>(d) + 2), size[d], scales[3 - dims + d]};
    sizes[static_cast<int>(d) + 2] = size[d];
    SCONCE_CHECK(size[d] > 0 && self.size(static_cast<int64_t>(d) + 2) > 0, kInvalidArgument, name,
                 ": Input and output sizes should be greater than 0, but got input ", to_string(self.sizes()),
                 ", output ", to_string(size));
  }
  SCONCE_CHECK(self.size(1) > 0, kInvalidArgument, name, ": Non-empty ", dims + 2,
               "D data tensor expected but got a tensor with sizes ", to_string(self.sizes()));
  const bool bytes = self.dtype() == DType::kUInt8;
  const bool is_nearest = mode == kNearest || mode == kNearestExact;
  if (!is_floating(self.dtype()) && !(bytes && (is_nearest || dims == 2))) fail_dispatch(self.dtype(), name);
  Tensor out;
  if (is_nearest) {
    // ATen has two kernels. The one for channels-last images, which it also uses for small results, looks at the sizes
    // first and computes coordinates in float. The other looks at the scale and computes those of float64 in double.
    constexpr int64_t kSmall = 128;
    const bool last = (dims == 2 && is_channels_last(self)) || (dims == 3 && is_channels_last_3d(self));
    const bool by_sizes = (last && self.size(1) > 3) || (dims == 2 && size[0] + size[1] <= kSmall);
    out = nearest(contiguous(self), axes, mode == kNearestExact, sizes, by_sizes);
  } else {
    const Tensor in = contiguous(to_dtype(self, summed_dtype(self.dtype())));
    out = in;
    for (size_t a = 3; a-- > 3 - dims;) {  // the last dimension first
      // If a size stays, bytes are copied. Other elements are resampled all the same, by the scale if one is given:
      // their neighbours count with weights 1 and 0, so that infinity becomes NaN.
      if (bytes && axes[a].input == axes[a].output) continue;
      out = along(out, mode, axes[a], static_cast<int64_t>(2 + a + dims) - 3, align_corners, name);
    }
    if (out.data() == in.data()) out = clone_contiguous(out);
  }
  return in_format(name, out, self.dtype(), suggested_format(self));
}

}  // namespace

Tensor upsample_nearest1d(const Tensor& self, IntSpan size, OptScale w) {
  return resize("upsample_nearest1d", self, size, false, {kNone, kNone, w}, 1, kNearest);
}
Tensor upsample_nearest2d(const Tensor& self, IntSpan size, OptScale h, OptScale w) {
  return resize("upsample_nearest2d", self, size, false, {kNone, h, w}, 2, kNearest);
}
Tensor upsample_nearest3d(const Tensor& self, IntSpan size, OptScale d, OptScale h, OptScale w) {
  return resize("upsample_nearest3d", self, size, false, {d, h, w}, 3, kNearest);
}
Tensor _upsample_nearest_exact1d(const Tensor& self, IntSpan size, OptScale w) {
  return resize("_upsample_nearest_exact1d", self, size, false, {kNone, kNone, w}, 1, kNearestExact);
}
Tensor _upsample_nearest_exact2d(const Tensor& self, IntSpan size, OptScale h, OptScale w) {
  return resize("_upsample_nearest_exact2d", self, size, false, {kNone, h, w}, 2, kNearestExact);
}
Tensor _upsample_nearest_exact3d(const Tensor& self, IntSpan size, OptScale d, OptScale h, OptScale w) {
  return resize("_upsample_nearest_exact3d", self, size, false, {d, h, w}, 3, kNearestExact);
}
Tensor upsample_linear1d(const Tensor& self, IntSpan size, bool align_corners, OptScale w) {
  return resize("upsample_linear1d", self, size, align_corners, {kNone, kNone, w}, 1, kLinear);
}
Tensor upsample_bilinear2d(const Tensor& self, IntSpan size, bool align_corners, OptScale h, OptScale w) {
  return resize("upsample_bilinear2d", self, size, align_corners, {kNone, h, w}, 2, kLinear);
}
Tensor upsample_bicubic2d(const Tensor& self, IntSpan size, bool align_corners, OptScale h, OptScale w) {
  return resize("upsample_bicubic2d", self, size, align_corners, {kNone, h, w}, 2, kCubic);
}
Tensor upsample_trilinear3d(const Tensor& self, IntSpan size, bool align_corners, OptScale d, OptScale h, OptScale w) {
  return resize("upsample_trilinear3d", self, size, align_corners, {d, h, w}, 3, kLinear);
}

}  // namespace sconce::cpu
