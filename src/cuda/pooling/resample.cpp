// Low-pass resizing, and gradients of resizing and of replication padding. Match aten::upsample_linear1d_backward,
// upsample_bicubic2d_backward, upsample_trilinear3d_backward, replication_pad1d_backward and replication_pad2d_backward
// (torch 2.15, CUDA). Half types compute in float32 and round once; sums have a fixed order. Checks are the CPU's.
#include "src/cuda/pooling/resample.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "src/cuda/pooling/resample_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/factory.h"
#include "src/tensor/spatial/padded_sides.h"
#include "src/tensor/spatial/resized_axes.h"

namespace sconce::cuda {
namespace {

// For each input coordinate of a line, the output coordinates that draw on it and their weights.
class Line {
 public:
  Line(int64_t input, int64_t output) : shares_(static_cast<size_t>(input)), output_(output) {}
  void add(int64_t input, int64_t output, double weight) {
    if (weight == 0) return;
    shares_[static_cast<size_t>(input)].push_back({output, weight});
    ++count_;
  }
  int64_t words() const { return input() + 1 + 2 * count_; }
  // Writes the table here; the result points into its copy on the device at `there`.
  GatheredLine write(int64_t* here, const int64_t* there) const {
    const int64_t places = input() + 1;
    int64_t next = 0;
    for (size_t i = 0; i < shares_.size(); ++i) {
      here[i] = next;
      for (const Share& share : shares_[i]) {
        here[places + next] = share.output;
        here[places + count_ + next++] = std::bit_cast<int64_t>(share.weight);
      }
    }
    here[shares_.size()] = next;
    size_t most = 0;
    for (const auto& shares : shares_) most = std::max(most, shares.size());
    return {input(),
            output_,
            there,
            there + places,
            reinterpret_cast<const double*>(there + places + count_),
            static_cast<int64_t>(most)};
  }

 private:
  struct Share {
    int64_t output;
    double weight;
  };
  int64_t input() const { return static_cast<int64_t>(shares_.size()); }

  std::vector<std::vector<Share>> shares_;
  int64_t output_, count_ = 0;
};

void gather(const char* name, const std::array<Line, 3>& lines, int64_t planes, const Tensor& grads, Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t words = lines[0].words() + lines[1].words() + lines[2].words();
  Tensor table = Tensor::empty(IntSpan(&words, 1), DType::kInt64);
  Tensor sent = Tensor::empty(IntSpan(&words, 1), DType::kInt64, grads.device());
  GatheredLine gathered[3];
  int64_t at = 0;
  for (size_t i = 0; i < 3; ++i) {
    gathered[i] = lines[i].write(table.data_as<int64_t>() + at, sent.data_as<int64_t>() + at);
    at += lines[i].words();
  }
  copy(table, sent, true);
  const Tensor packed = cuda::contiguous(grads);
  check_launch(name,
               launch_gather_lines(gathered, planes, static_cast<int>(grads.dtype()), packed.data(), out.data(),
                                   current_stream()),
               grads.dtype());
}

template <class T>
void add_taps(Line& line, const ResampledAxis& axis, ResampleMode mode, bool align_corners) {
  for (int64_t o = 0; o < axis.output; ++o) {
    const Taps<T> taps = make_taps<T>(mode, axis, align_corners, o);
    for (size_t i = 0; i < taps_of(mode); ++i) line.add(taps.at[i], o, taps.weight[i]);
  }
}

// Channels-last if `like` is, unless row_major is set.
Tensor in_format_of(const char* name, const Tensor& like, bool row_major, const Tensor& packed) {
  const MemoryFormat format = row_major ? MemoryFormat::kContiguous : suggested_format(like);
  if (format == MemoryFormat::kContiguous) return packed;
  Tensor formatted = empty_in_format(name, packed, packed.dtype(), format);
  copy(packed, formatted, false);
  return formatted;
}

Tensor resize_gradient(const char* name, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                       bool align_corners, const std::array<OptScale, 3>& scales, int dims, ResampleMode mode) {
  const auto axes = resized_axes(name, grad_output, output_size, input_size, scales, dims);
  const ResampleModes modes = resample_modes(axes, dims, mode);
  const DeviceScope scope(grad_output.device());
  std::array<Line, 3> lines{Line(axes[0].input, axes[0].output), Line(axes[1].input, axes[1].output),
                            Line(axes[2].input, axes[2].output)};
  for (size_t a = 0; a < 3; ++a)
    grad_output.dtype() == DType::kFloat64 ? add_taps<double>(lines[a], axes[a], modes[a], align_corners)
                                           : add_taps<float>(lines[a], axes[a], modes[a], align_corners);
  Tensor out = Tensor::empty(input_size, grad_output.dtype(), grad_output.device());
  gather(name, lines, input_size[0] * input_size[1], grad_output, out);
  return in_format_of(name, grad_output, mode == ResampleMode::kCubic, out);
}

// The filter from a plane of two `sizes` to another or, with `backward`, its gradient: gathers `given`, which has the
// other sizes, into `sizes`.
Tensor filtered(LowPass filter, bool backward, const Tensor& given, IntSpan sizes, bool align_corners,
                OptScale scales_h, OptScale scales_w) {
  const char* const name = low_pass_name(filter);
  const DeviceScope scope(given.device());
  const int64_t to[] = {sizes[2], sizes[3]}, from[] = {given.size(2), given.size(3)};
  std::array<Line, 3> lines{Line(1, 1), Line(to[0], from[0]), Line(to[1], from[1])};
  lines[0].add(0, 0, 1);
  const OptScale scales[] = {scales_h, scales_w};
  for (size_t a = 0; a < 2; ++a) {
    const LineWindows w = low_pass_windows(filter, given.dtype(), backward ? to[a] : from[a],
                                           backward ? from[a] : to[a], align_corners, scales[a]);
    for (size_t o = 0; o < w.windows.size(); ++o)
      for (int64_t j = 0; j < w.windows[o].count; ++j) {
        const auto output = static_cast<int64_t>(o), input = w.windows[o].first + j;
        lines[1 + a].add(backward ? input : output, backward ? output : input,
                         w.weights[o * static_cast<size_t>(w.width) + static_cast<size_t>(j)]);
      }
  }
  Tensor out = Tensor::empty(sizes, given.dtype(), given.device());
  gather(name, lines, sizes[0] * sizes[1], given, out);
  return in_format_of(name, given, backward && filter == LowPass::kBicubic, out);
}

Tensor padding_gradient(const char* name, const Tensor& grad_output, const Tensor& self, IntSpan padding, int dims) {
  const PaddedSides sides = padded_sides(name, grad_output, self, padding, dims);
  const DeviceScope scope(self.device());
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  PaddedLines lines{};
  for (size_t a = 0; a < 3; ++a) {
    lines.in[a] = sides.in[a];
    lines.out[a] = sides.out[a];
    lines.before[a] = sides.before[a];
  }
  check_launch(name,
               launch_border_slopes(lines, self.numel() / (sides.in[0] * sides.in[1] * sides.in[2]),
                                    static_cast<int>(self.dtype()), cuda::contiguous(grad_output).data(), out.data(),
                                    current_stream()),
               self.dtype());
  return out;
}

}  // namespace

Tensor upsample_linear1d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                  bool align_corners, OptScale scales) {
  return resize_gradient("upsample_linear1d_backward", grad_output, output_size, input_size, align_corners,
                         {std::nullopt, std::nullopt, scales}, 1, ResampleMode::kLinear);
}
Tensor upsample_bicubic2d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                   bool align_corners, OptScale scales_h, OptScale scales_w) {
  return resize_gradient("upsample_bicubic2d_backward", grad_output, output_size, input_size, align_corners,
                         {std::nullopt, scales_h, scales_w}, 2, ResampleMode::kCubic);
}
Tensor upsample_trilinear3d_backward(const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                                     bool align_corners, OptScale scales_d, OptScale scales_h, OptScale scales_w) {
  return resize_gradient("upsample_trilinear3d_backward", grad_output, output_size, input_size, align_corners,
                         {scales_d, scales_h, scales_w}, 3, ResampleMode::kLinear);
}

Tensor replication_pad1d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_gradient("replication_pad1d_backward", grad_output, self, padding, 1);
}
Tensor replication_pad2d_backward(const Tensor& grad_output, const Tensor& self, IntSpan padding) {
  return padding_gradient("replication_pad2d_backward", grad_output, self, padding, 2);
}

Tensor low_pass(LowPass filter, const Tensor& self, IntSpan output_size, bool align_corners, OptScale scales_h,
                OptScale scales_w) {
  check_low_pass(filter, self, output_size);
  const int64_t sizes[] = {self.size(0), self.size(1), output_size[0], output_size[1]};
  return filtered(filter, false, self, sizes, align_corners, scales_h, scales_w);
}
Tensor low_pass_backward(LowPass filter, const Tensor& grad_output, IntSpan output_size, IntSpan input_size,
                         bool align_corners, OptScale scales_h, OptScale scales_w) {
  check_low_pass_gradient(filter, grad_output, output_size, input_size);
  return filtered(filter, true, grad_output, input_size, align_corners, scales_h, scales_w);
}

}  // namespace sconce::cuda
