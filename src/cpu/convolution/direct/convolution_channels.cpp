#include "src/cpu/convolution/direct/convolution_channels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/cpu/convolution/direct/convolution_channels_plan.h"
#include "src/cpu/convolution/direct/convolution_plan.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

class Job {
 public:
  Job(const ConvolutionShape& shape, const ConvolutionOperands& operands, const ActivationView& output,
      const ChannelsPlan& plan)
      : shape_(shape),
        operands_(operands),
        plan_(plan),
        tiles_(plan.order.tiles),
        in_(operands.input),
        out_(output),
        output_(const_cast<void*>(output.data)) {}
  void run();

 private:
  template <class F>
  void each_row(const Band& band, F f) const;
  void place_pixels(const Band& band, int64_t group, int64_t* input_at, int64_t* output_at) const noexcept;
  void copy_input(const Band& band, int64_t group, float* to) const noexcept;
  void copy_row(const std::byte* from, int64_t w_first, float* to) const noexcept;
  void finish(const Band& band, int64_t group, int64_t lane, int64_t lanes, float* values) const noexcept;
  void work(int64_t task, float* scratch) const noexcept;

  const ConvolutionShape& shape_;
  const ConvolutionOperands& operands_;
  const ChannelsPlan& plan_;
  const ChannelTiles* tiles_;
  const ActivationView in_, out_;
  void* output_;
  const std::byte* weight_ = nullptr;
  DType weight_dtype_ = DType::kFloat32;
  const float* bias_ = nullptr;  // [groups][all_vectors * width]
};

// f(image, slice, row), in the order of the band's pixels.
template <class F>
void Job::each_row(const Band& band, F f) const {
  for (int64_t n = 0; n < band.count[0]; ++n)
    for (int64_t d = 0; d < band.count[1]; ++d)
      for (int64_t h = 0; h < band.count[2]; ++h) f(n, d, h);
}

void Job::place_pixels(const Band& band, int64_t group, int64_t* input_at, int64_t* output_at) const noexcept {
  const int64_t pitch = plan_.out_channels;
  int64_t pixel = 0;
  each_row(band, [&](int64_t n, int64_t d, int64_t h) {
    int64_t from;
    if (plan_.direct_in)
      from = (band.first[0] + n) * in_.batch + (band.first[1] + d) * plan_.piece[0].in_step * in_.pixel[0] +
             (band.first[2] + h) * plan_.piece[1].in_step * in_.pixel[1] +
             band.first[3] * plan_.piece[2].in_step * in_.pixel[2] + group * plan_.in_channels * in_.channel;
    else
      from = n * plan_.image_pitch + d * plan_.piece[0].in_step * plan_.pitch[0] +
             h * plan_.piece[1].in_step * plan_.pitch[1];
    int64_t to = 0, to_step = pitch;
    if (plan_.direct_out) {
      const PieceAxis &od = plan_.piece[0], &oh = plan_.piece[1], &ow = plan_.piece[2];
      to = (band.first[0] + n) * out_.batch + (od.first + (band.first[1] + d) * od.step) * out_.pixel[0] +
           (oh.first + (band.first[2] + h) * oh.step) * out_.pixel[1] +
           (ow.first + band.first[3] * ow.step) * out_.pixel[2] + group * plan_.out_channels * out_.channel;
      to_step = ow.step * out_.pixel[2];
    } else {
      to = pixel * pitch;
    }
    const int64_t from_step = plan_.piece[2].in_step * plan_.pitch[2];
    for (int64_t w = 0; w < band.count[3]; ++w, ++pixel) {
      input_at[pixel] = from + w * from_step;
      output_at[pixel] = to + w * to_step;
    }
  });
}

// Columns [w_first, w_first + box) of one row of one group: what lies outside the image is zero.
void Job::copy_row(const std::byte* from, int64_t w_first, float* to) const noexcept {
  const int64_t c = plan_.in_channels, width = plan_.box[2];
  const int64_t begin = std::clamp<int64_t>(-w_first, 0, width);
  const int64_t end = std::clamp<int64_t>(shape_.input[2] - w_first, begin, width);
  std::fill(to, to + begin * c, 0.0f);
  std::fill(to + end * c, to + width * c, 0.0f);
  if (begin == end) return;
  to += begin * c;
  const int64_t n = end - begin;
  const auto itemsize = static_cast<int64_t>(dtype_bytes(in_.dtype));
  from += (w_first + begin) * in_.pixel[2] * itemsize;
  if ((in_.channel == 1 || c == 1) && (in_.pixel[2] == c || n == 1)) {
    gather_floats(in_.dtype, from, 1, to, n * c);
  } else if (in_.channel == 1 || c == 1) {
    for (int64_t w = 0; w < n; ++w) gather_floats(in_.dtype, from + w * in_.pixel[2] * itemsize, 1, to + w * c, c);
  } else if (in_.pixel[2] == 1 && in_.dtype == DType::kFloat32) {
    tiles_->transpose(reinterpret_cast<const float*>(from), in_.channel, c, n, nullptr, false, to, c);
  } else {
    for (int64_t w = 0; w < n; ++w)
      gather_floats(in_.dtype, from + w * in_.pixel[2] * itemsize, in_.channel, to + w * c, c);
  }
}

void Job::copy_input(const Band& band, int64_t group, float* to) const noexcept {
  const auto itemsize = static_cast<int64_t>(dtype_bytes(in_.dtype));
  const int64_t d_first = plan_.piece[0].begin(band.first[1]), h_first = plan_.piece[1].begin(band.first[2]);
  for (int64_t n = 0; n < band.count[0]; ++n)
    for (int64_t d = d_first; d < d_first + plan_.box[0]; ++d)
      for (int64_t h = h_first; h < h_first + plan_.box[1]; ++h, to += plan_.box[2] * plan_.in_channels) {
        if (d < 0 || d >= shape_.input[0] || h < 0 || h >= shape_.input[1]) {
          std::fill(to, to + plan_.box[2] * plan_.in_channels, 0.0f);
          continue;
        }
        const int64_t at = (band.first[0] + n) * in_.batch + group * plan_.in_channels * in_.channel +
                           d * in_.pixel[0] + h * in_.pixel[1];
        copy_row(static_cast<const std::byte*>(in_.data) + at * itemsize, plan_.piece[2].begin(band.first[3]), to);
      }
}

// Fused operations and the way into the output, for `lanes` channels of a band from `lane` on.
void Job::finish(const Band& band, int64_t group, int64_t lane, int64_t lanes, float* values) const noexcept {
  constexpr int64_t kMost = 1024;
  float others[kMost];
  const Fusion& fusion = operands_.fusion;
  const ActivationView& other = operands_.other;
  const bool combine = fusion.combination != Combination::kNone && !plan_.accumulate;
  Fusion rest = fusion;
  if (!combine) rest.combination = Combination::kNone;
  const auto out_itemsize = static_cast<int64_t>(dtype_bytes(out_.dtype));
  const auto other_itemsize = static_cast<int64_t>(dtype_bytes(other.dtype));
  const PieceAxis &od = plan_.piece[0], &oh = plan_.piece[1], &ow = plan_.piece[2];
  int64_t pixel = 0;
  each_row(band, [&](int64_t n, int64_t d, int64_t h) {
    const auto offset = [&](const ActivationView& v) {
      return (band.first[0] + n) * v.batch + (od.first + (band.first[1] + d) * od.step) * v.pixel[0] +
             (oh.first + (band.first[2] + h) * oh.step) * v.pixel[1] +
             (ow.first + band.first[3] * ow.step) * v.pixel[2] + (group * plan_.out_channels + lane) * v.channel;
    };
    const int64_t out_step = ow.step * out_.pixel[2], other_step = ow.step * other.pixel[2];
    std::byte* to = static_cast<std::byte*>(output_) + offset(out_) * out_itemsize;
    const std::byte* with =
        combine ? static_cast<const std::byte*>(other.data) + offset(other) * other_itemsize : nullptr;
    float* row = plan_.direct_out ? reinterpret_cast<float*>(to) : values + pixel * plan_.out_channels + lane;
    const int64_t row_step = plan_.direct_out ? out_step : plan_.out_channels;
    pixel += band.count[3];
    // A whole row at once where its pixels follow each other everywhere.
    const bool joined = row_step == lanes && (plan_.direct_out || (out_.channel == 1 && out_step == lanes)) &&
                        (!combine || (other.channel == 1 && other_step == lanes));
    const int64_t length = joined ? lanes * band.count[3] : lanes;
    for (int64_t w = 0; w < (joined ? 1 : band.count[3]); ++w) {
      for (int64_t i = 0; i < length; i += kMost) {
        const int64_t some = std::min(kMost, length - i);
        float* at = row + w * row_step + i;
        if (combine)
          gather_floats(other.dtype, with + (w * other_step + i * other.channel) * other_itemsize, other.channel,
                        others, some);
        apply_fusion(rest, at, others, some);
        if (!plan_.direct_out && (joined || out_.channel == 1 || out_step != 1 || out_.dtype != DType::kFloat32))
          scatter_floats(at, out_.dtype, to + (w * out_step + i * out_.channel) * out_itemsize,
                         joined ? 1 : out_.channel, some);
      }
    }
    if (!plan_.direct_out && !joined && out_.channel != 1 && out_step == 1 && out_.dtype == DType::kFloat32)
      tiles_->transpose(row, row_step, band.count[3], lanes, nullptr, false, reinterpret_cast<float*>(to),
                        out_.channel);
  });
}

void Job::work(int64_t task, float* scratch) const noexcept {
  const int64_t others = plan_.by_channels ? plan_.tasks() / plan_.splits : 1;
  const int64_t split = task / others % plan_.splits;
  const int64_t place = plan_.by_channels ? task % others : task / plan_.splits;
  const int64_t group = place % plan_.groups;
  const Band at = plan_.band(place / plan_.groups);
  const int64_t pixels = at.pixels();
  const int64_t most = plan_.most_pixels();
  auto* input_at = reinterpret_cast<int64_t*>(scratch);
  int64_t* output_at = input_at + most;
  scratch += 4 * most;
  const float* input = static_cast<const float*>(in_.data);
  place_pixels(at, group, input_at, output_at);
  if (!plan_.direct_in) {
    copy_input(at, group, scratch);
    input = scratch;
    scratch += plan_.band_count[0] * plan_.image_pitch;
  }
  float* values = plan_.direct_out ? static_cast<float*>(output_) : scratch;

  const ChannelBlocks blocks(*tiles_, plan_.out_channels);
  const int64_t first = blocks.count * split / plan_.splits, last = blocks.count * (split + 1) / plan_.splits;
  const int64_t rows = static_cast<int64_t>(plan_.order.taps.size()) * plan_.order.in;
  ChannelTile tile{};
  for (int64_t b = first; b < last; ++b) {
    const int vectors = blocks.vectors(b);
    const int64_t lane = blocks.first_vector(b) * tiles_->width;
    const auto itemsize = static_cast<int64_t>(dtype_bytes(weight_dtype_));
    const std::byte* weight = weight_ + (group * blocks.all_vectors * tiles_->width * rows + lane * rows) * itemsize;
    const auto [pass_begin, pass_end] = plan_.passes_of[static_cast<size_t>(vectors)];
    for (size_t i = pass_begin; i < pass_end; ++i) {
      const Pass& pass = plan_.passes[i];
      tile.input = input + (plan_.order.depthwise ? lane : 0);
      tile.runs = plan_.runs.data() + pass.first_run;
      tile.run_count = pass.runs;
      tile.weight = weight + pass.first_row * vectors * tiles_->width * itemsize;
      tile.weight_dtype = weight_dtype_;
      tile.bias = bias_ && i == pass_begin ? bias_ + group * blocks.all_vectors * tiles_->width + lane : nullptr;
      tile.output = values + lane;
      tile.lanes = std::min<int64_t>(vectors * tiles_->width, plan_.out_channels - lane);
      tile.accumulate = plan_.accumulate || i != pass_begin;
      tile.relu = plan_.relu && i + 1 == pass_end;
      const auto run = plan_.order.depthwise ? tiles_->depthwise : tiles_->dense;
      // As few tiles as possible, and these as even as possible.
      int64_t left = (pixels + tiles_->pixels[vectors] - 1) / tiles_->pixels[vectors];
      for (int64_t p = 0; p < pixels; --left) {
        const int64_t some = (pixels - p + left - 1) / left;
        tile.input_at = input_at + p;
        tile.output_at = output_at + p;
        run(vectors, some, tile);
        p += some;
      }
    }
  }
  if (plan_.finish && first < last) {
    const int64_t lane = blocks.first_vector(first) * tiles_->width;
    const int64_t end = last == blocks.count ? plan_.out_channels : blocks.first_vector(last) * tiles_->width;
    finish(at, group, lane, end - lane, values);
  }
}

void Job::run() {
  const OrderedWeight weight(shape_, operands_.weight, plan_.order, operands_.constant);
  weight_ = static_cast<const std::byte*>(weight.data());
  weight_dtype_ = weight.dtype();
  const int64_t lanes = ChannelBlocks(*tiles_, plan_.out_channels).all_vectors * tiles_->width;
  const Tensor* b = operands_.bias;
  Tensor padded;
  if (b && b->dtype() == DType::kFloat32 && b->stride(0) == 1 && lanes == plan_.out_channels) {
    bias_ = b->data_as<float>();
  } else if (b) {
    const int64_t elems = plan_.groups * lanes;
    padded = Tensor::empty({&elems, 1}, DType::kFloat32);
    auto* to = padded.data_as<float>();
    bias_ = to;
    for (int64_t g = 0; g < plan_.groups; ++g, to += lanes) {
      gather_floats(b->dtype(),
                    static_cast<const std::byte*>(b->data()) +
                        g * plan_.out_channels * b->stride(0) * static_cast<int64_t>(b->itemsize()),
                    b->stride(0), to, plan_.out_channels);
      std::fill(to + plan_.out_channels, to + lanes, 0.0f);
    }
  }

  const int64_t threads = plan_.threads, tasks = plan_.tasks(), all = plan_.scratch_elems * threads;
  const Tensor scratch = Tensor::empty({&all, 1}, DType::kFloat32);
  auto* base = scratch.data_as<float>();
  if (threads == 1) {
    for (int64_t t = 0; t < tasks; ++t) work(t, base);
    return;
  }
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t t = tasks * i / threads; t < tasks * (i + 1) / threads; ++t) work(t, base + i * plan_.scratch_elems);
  });
}

}  // namespace

void convolve_channels(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  const ActivationView out = activation_view(output);
  using Plans = std::vector<ChannelsPlan>;
  const Plans& plans = PlanTable<Plans, PlanKey>::get(PlanKey(shape, operands, out), [&] {
    Plans made;
    const auto ds = piece_axes(shape, 0), hs = piece_axes(shape, 1), ws = piece_axes(shape, 2);
    for (const PieceAxis& d : ds)
      for (const PieceAxis& h : hs)
        for (const PieceAxis& w : ws) made.emplace_back(shape, operands, out, Piece{d, h, w});
    return made;
  });
  for (const ChannelsPlan& plan : plans) Job(shape, operands, out, plan).run();
}

}  // namespace sconce
