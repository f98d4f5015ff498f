#include "src/cpu/convolution/direct/convolution_depthwise.h"

#include <algorithm>

#include "src/cpu/convolution/direct/convolution_plan.h"
#include "src/cpu/convolution/direct/convolution_weights.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr double kWorkPerThread = 1e5;  // multiplications that are worth a thread
constexpr int64_t kMaxRows = 64;        // of the kernel, that one pass over the output takes

// Along one axis: which taps of output `o` fall inside the input.
struct Reach {
  int64_t first, last, input;  // input of tap 0; may be negative
};
Reach reach(const ConvolutionShape& s, size_t axis, int64_t o) {
  const int64_t at = o * s.stride[axis] - s.padding[axis], dilation = s.dilation[axis];
  const int64_t first = at >= 0 ? 0 : (-at + dilation - 1) / dilation;
  const int64_t last = at >= s.input[axis] ? 0 : (s.input[axis] - at + dilation - 1) / dilation;
  return {std::min(first, s.kernel[axis]), std::clamp<int64_t>(last, std::min(first, s.kernel[axis]), s.kernel[axis]),
          at};
}

struct Job {
  const ConvolutionShape& shape;
  const ConvolutionOperands& operands;
  ActivationView in, out;
  float* output;
  const ChannelTiles& tiles;
  ChannelBlocks blocks;
  const float* weight;
  const float* bias;  // padded to whole vectors, or null
  bool accumulate, relu, finish;

  // Output row `h` of slice `d` of image `n`.
  void row(int64_t n, int64_t d, int64_t h) const noexcept;
  void vectors(DepthwiseRow& r, int64_t pixels, int64_t first, int64_t last) const noexcept;
  void finish_row(int64_t n, int64_t d, int64_t h) const noexcept;
};

void Job::row(int64_t n, int64_t d, int64_t h) const noexcept {
  const Reach rd = reach(shape, 0, d), rh = reach(shape, 1, h);
  int64_t row_input[kMaxRows];
  const float* row_weight[kMaxRows];
  const int64_t kernel_w = shape.kernel[2];

  DepthwiseRow r{};
  r.column = in.pixel[2];
  r.step = shape.stride[2];
  r.dilation = shape.dilation[2];
  r.output_pixel = out.pixel[2];
  r.row_input = row_input;
  r.row_weight = row_weight;
  const auto* from = static_cast<const float*>(operands.input.data) + n * in.batch;
  float* to = output + n * out.batch + d * out.pixel[0] + h * out.pixel[1];

  // Columns whose taps are all inside, between two borders.
  const int64_t width = shape.output[2], reach_w = (kernel_w - 1) * shape.dilation[2];
  const int64_t room = shape.input[2] + shape.padding[2] - reach_w - 1;  // of the last such column's tap 0
  const int64_t begin = std::min(width, (shape.padding[2] + r.step - 1) / r.step);
  const int64_t end = room < 0 ? begin : std::clamp(room / r.step + 1, begin, width);

  // Kernel rows in parts, if there are very many.
  int64_t kd = rd.first, kh = rh.first;
  const bool any = rd.first < rd.last && rh.first < rh.last;
  bool started = false;
  while (any ? kd < rd.last : !started) {
    r.rows = 0;
    r.accumulate = accumulate || started;
    int64_t taps[kMaxRows];
    for (; any && kd < rd.last && r.rows < kMaxRows;) {
      row_input[r.rows] =
          (rd.input + kd * shape.dilation[0]) * in.pixel[0] + (rh.input + kh * shape.dilation[1]) * in.pixel[1];
      taps[r.rows++] = (kd * shape.kernel[1] + kh) * kernel_w;
      if (++kh == rh.last) {
        kh = rh.first;
        ++kd;
      }
    }
    r.relu = relu && (!any || kd == rd.last);
    const float* block_weight = weight;
    for (int64_t b = 0; b < blocks.count; ++b) {
      const int64_t pitch = blocks.vectors(b) * tiles.width;
      for (int v = 0; v < blocks.vectors(b); ++v) {
        const int64_t lane = (blocks.first_vector(b) + v) * tiles.width;
        for (int64_t i = 0; i < r.rows; ++i) row_weight[i] = block_weight + taps[i] * pitch + v * tiles.width;
        r.weight_pitch = pitch;
        r.bias = bias && !started ? bias + lane : nullptr;
        r.lanes = std::min<int64_t>(tiles.width, shape.out_channels - lane);
        const auto columns = [&](int64_t first_pixel, int64_t pixels, int64_t first, int64_t last) {
          r.input = from + lane + (first_pixel * r.step - shape.padding[2]) * r.column;
          r.output = to + first_pixel * r.output_pixel + lane;
          tiles.rows->run(r, pixels, first, last, kernel_w);
        };
        for (int64_t w = 0; w < begin; ++w) {
          const Reach rw = reach(shape, 2, w);
          columns(w, 1, rw.first, rw.last);
        }
        if (begin < end) columns(begin, end - begin, 0, kernel_w);
        for (int64_t w = end; w < width; ++w) {
          const Reach rw = reach(shape, 2, w);
          columns(w, 1, rw.first, rw.last);
        }
      }
      block_weight += pitch * shape.taps();
    }
    started = true;
  }
  if (finish) finish_row(n, d, h);
}

void Job::finish_row(int64_t n, int64_t d, int64_t h) const noexcept {
  constexpr int64_t kMost = 1024;
  float others[kMost];
  const Fusion& fusion = operands.fusion;
  const ActivationView& other = operands.other;
  const auto itemsize = static_cast<int64_t>(dtype_bytes(other.dtype));
  Fusion rest = fusion;
  if (accumulate) rest.combination = Combination::kNone;
  float* to = output + n * out.batch + d * out.pixel[0] + h * out.pixel[1];
  const std::byte* with = static_cast<const std::byte*>(other.data) +
                          (n * other.batch + d * other.pixel[0] + h * other.pixel[1]) * itemsize;
  const bool combine = rest.combination != Combination::kNone;
  const bool joined =
      out.pixel[2] == shape.out_channels && (!combine || (other.channel == 1 && other.pixel[2] == shape.out_channels));
  const int64_t length = joined ? shape.out_channels * shape.output[2] : shape.out_channels;
  for (int64_t w = 0; w < (joined ? 1 : shape.output[2]); ++w)
    for (int64_t i = 0; i < length; i += kMost) {
      const int64_t some = std::min(kMost, length - i);
      if (combine)
        gather_floats(other.dtype, with + (w * other.pixel[2] + i * other.channel) * itemsize, other.channel, others,
                      some);
      apply_fusion(rest, to + w * out.pixel[2] + i, others, some);
    }
}

}  // namespace

bool depthwise_suits(const ConvolutionShape& s, const ConvolutionOperands& operands, const Tensor& output) noexcept {
  return s.groups == s.in_channels && s.out_channels == s.in_channels && s.groups > 1 && !s.transposed &&
         operands.input.dtype == DType::kFloat32 && operands.input.channel == 1 && output.dtype() == DType::kFloat32 &&
         output.stride(1) == 1;
}

void convolve_depthwise(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  const ChannelTiles& tiles = channel_tiles(shape.out_channels);
  const WeightOrder& order =
      PlanTable<WeightOrder, PlanKey>::get(PlanKey(shape, operands, activation_view(output)), [&] {
        WeightOrder made;
        made.tiles = &tiles;
        made.depthwise = true;
        made.out = shape.out_channels;
        made.in = 1;
        for (int64_t t = 0; t < shape.taps(); ++t) made.taps.push_back(t);
        made.set_recipe(shape, operands.weight);
        return made;
      });
  const OrderedWeight weight(shape, operands.weight, order, operands.constant);
  const ChannelBlocks blocks(tiles, shape.out_channels);

  Tensor bias;
  if (operands.bias) {
    const int64_t lanes = blocks.all_vectors * tiles.width;
    bias = Tensor::empty({&lanes, 1}, DType::kFloat32);
    gather_floats(operands.bias->dtype(), operands.bias->data(), operands.bias->stride(0), bias.data_as<float>(),
                  shape.out_channels);
    std::fill(bias.data_as<float>() + shape.out_channels, bias.data_as<float>() + lanes, 0.0f);
  }
  const Fusion& fusion = operands.fusion;
  const bool accumulate = fusion.combination == Combination::kAdd && operands.other.data == output.data();
  const bool finish = (fusion.combination != Combination::kNone && !accumulate) ||
                      (fusion.activation != Activation::kNone && fusion.activation != Activation::kRelu);
  const Job job{shape,
                operands,
                operands.input,
                activation_view(output),
                output.data_as<float>(),
                tiles,
                blocks,
                static_cast<const float*>(weight.data()),
                bias.defined() ? bias.data_as<float>() : nullptr,
                accumulate,
                !finish && fusion.activation == Activation::kRelu,
                finish};
  const int64_t slices = shape.output[0], height = shape.output[1];
  const auto rows = [&](int64_t first, int64_t last) noexcept {
    for (int64_t i = first; i < last; ++i) job.row(i / height / slices, i / height % slices, i % height);
  };
  const int64_t all = shape.batch * slices * height;
  if (kernel_threads() == 1 || shape.work() < 2 * kWorkPerThread)
    rows(0, all);
  else
    parallel_for(0, all, 1, rows);
}

}  // namespace sconce
