#include "src/ops/convolution_channels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/device/threads.h"
#include "src/ops/convolution_pieces.h"
#include "src/ops/convolution_weights.h"

namespace sconce {
namespace {

constexpr int64_t kBandBytes = 128 << 10;  // of the input's copy: stays in the second-level cache
constexpr int64_t kBandPixels = 1024;
constexpr int64_t kPanelBytes = 32 << 10;  // of the weights that a pass over the pixels uses: first-level cache
constexpr double kWorkPerThread = 1e5;     // multiplications that are worth a thread

// A box of outputs: images, slices, rows, columns; each whole where the one before has more than one.
using Box = std::array<int64_t, 4>;
struct Band {
  Box first, count;
  int64_t pixels() const noexcept { return count[0] * count[1] * count[2] * count[3]; }
};

// Steps of the sum that share a pass over the pixels.
struct Pass {
  int64_t first_run, runs, first_row;
};

class Job {
 public:
  Job(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output, const Piece& piece)
      : shape_(shape),
        operands_(operands),
        in_(operands.input),
        out_(activation_view(output)),
        output_(output.data()),
        piece_(piece) {}
  void run();

 private:
  void plan();
  void choose_bands();
  int64_t count(size_t d) const { return piece_[d].count; }
  const float* input_of(const Band& band, int64_t group) const;
  Band band(int64_t index) const;
  template <class F>
  void each_row(const Band& band, F f) const;
  void place_pixels(const Band& band, int64_t group, int64_t* input_at, int64_t* output_at) const noexcept;
  void copy_input(const Band& band, int64_t group, float* to) const noexcept;
  void copy_row(const std::byte* from, int64_t w_first, float* to) const noexcept;
  void finish(const Band& band, int64_t group, int64_t lane, int64_t lanes, float* values) const noexcept;
  void work(int64_t task, float* scratch) const noexcept;

  const ConvolutionShape& shape_;
  const ConvolutionOperands& operands_;
  ActivationView in_, out_;
  void* output_;
  const Piece& piece_;

  WeightOrder order_;
  int64_t groups_ = 1, in_channels_ = 0, out_channels_ = 0;  // of a group; depthwise: one group of them all
  const ChannelTiles* tiles_ = nullptr;
  const std::byte* weight_ = nullptr;
  DType weight_dtype_ = DType::kFloat32;
  const float* bias_ = nullptr;  // [groups][all_vectors * width]
  bool direct_in_ = false, direct_out_ = false;
  bool accumulate_ = false, relu_ = false, finish_ = false;
  std::array<int64_t, 3> box_{};    // slices, rows, columns of the copied input
  std::array<int64_t, 3> pitch_{};  // what a tap's step costs along each axis, in elements
  int64_t image_pitch_ = 0;
  std::vector<ChannelRun> runs_;
  std::vector<Pass> passes_;  // by vectors of a block: the first `passes_of_` entries each
  std::array<std::pair<size_t, size_t>, 5> passes_of_{};
  Box band_count_{}, bands_{};  // size and number along images, slices, rows, columns
  int64_t splits_ = 1;          // of a band's blocks among tasks
};

void Job::plan() {
  const bool depthwise =
      shape_.groups == shape_.in_channels && shape_.out_channels == shape_.in_channels && shape_.groups > 1;
  groups_ = depthwise ? 1 : shape_.groups;
  in_channels_ = depthwise ? shape_.in_channels : shape_.in_group();
  out_channels_ = depthwise ? shape_.out_channels : shape_.out_group();
  tiles_ = &channel_tiles(out_channels_);
  order_ = {tiles_, depthwise, groups_, out_channels_, depthwise ? 1 : in_channels_, {}};

  direct_in_ = in_.dtype == DType::kFloat32 && (in_.channel == 1 || in_channels_ == 1);
  for (size_t d = 0; d < 3; ++d)
    direct_in_ = direct_in_ && !piece_[d].taps.empty() && piece_[d].lowest() >= 0 &&
                 piece_[d].end(0, count(d)) <= shape_.input[d];
  direct_out_ = out_.dtype == DType::kFloat32 && (out_.channel == 1 || shape_.out_channels == 1);

  const Fusion& fusion = operands_.fusion;
  accumulate_ = direct_out_ && fusion.combination == Combination::kAdd && operands_.other.data == output_;
  finish_ = !direct_out_ || (fusion.combination != Combination::kNone && !accumulate_) ||
            (fusion.activation != Activation::kNone && fusion.activation != Activation::kRelu);
  relu_ = !finish_ && fusion.activation == Activation::kRelu;

  choose_bands();
  if (direct_in_) {
    pitch_ = in_.pixel;
    image_pitch_ = in_.batch;
  } else {
    pitch_ = {box_[1] * box_[2] * in_channels_, box_[2] * in_channels_, in_channels_};
    image_pitch_ = box_[0] * pitch_[0];
  }
  // Taps in the kernel's order; neighbours whose inputs lie side by side are one run.
  const int64_t length = depthwise ? 1 : in_channels_;
  for (const Tap& d : piece_[0].taps)
    for (const Tap& h : piece_[1].taps)
      for (const Tap& w : piece_[2].taps) {
        order_.taps.push_back((d.kernel * shape_.kernel[1] + h.kernel) * shape_.kernel[2] + w.kernel);
        int64_t at = d.input * pitch_[0] + h.input * pitch_[1] + w.input * pitch_[2];
        if (!direct_in_)
          at -= piece_[0].lowest() * pitch_[0] + piece_[1].lowest() * pitch_[1] + piece_[2].lowest() * pitch_[2];
        if (!depthwise && !runs_.empty() && runs_.back().offset + runs_.back().length == at)
          runs_.back().length += length;
        else
          runs_.push_back({at, length});
      }

  // Cut into passes whose weights stay in the first-level cache.
  std::vector<ChannelRun> cut;
  const ChannelBlocks blocks(*tiles_, out_channels_);
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int vectors = blocks.vectors(b);
    auto& range = passes_of_[static_cast<size_t>(vectors)];
    if (range.second > 0) continue;
    const int64_t most = kPanelBytes / (vectors * tiles_->width * static_cast<int64_t>(sizeof(float)));
    const int64_t rows = static_cast<int64_t>(order_.taps.size()) * order_.in;
    const int64_t even =
        rows <= most + most / 2 ? rows : (rows + (rows + most - 1) / most - 1) / ((rows + most - 1) / most);
    range.first = passes_.size();
    Pass pass{static_cast<int64_t>(cut.size()), 0, 0};
    int64_t in_pass = 0, row = 0;
    for (const ChannelRun& run : runs_)
      for (int64_t done = 0; done < run.length;) {
        if (in_pass == even) {
          passes_.push_back(pass);
          pass = {static_cast<int64_t>(cut.size()), 0, row};
          in_pass = 0;
        }
        const int64_t step = std::min(run.length - done, even - in_pass);
        cut.push_back({run.offset + done, step});
        ++pass.runs;
        in_pass += step;
        row += step;
        done += step;
      }
    passes_.push_back(pass);
    range.second = passes_.size();
  }
  runs_ = std::move(cut);
}

void Job::choose_bands() {
  const Box whole = {shape_.batch, count(0), count(1), count(2)};
  const auto inputs = [&](size_t d, int64_t outputs) {
    return piece_[d].taps.empty() ? outputs : piece_[d].end(0, outputs) - piece_[d].begin(0);
  };
  const int64_t pixel_bytes = in_channels_ * static_cast<int64_t>(sizeof(float));
  const int64_t tasks = kernel_threads() == 1 || shape_.work() < 2 * kWorkPerThread ? 1 : kernel_threads();
  const auto fits = [&](const Box& c) {
    const int64_t bytes = direct_in_ ? 0 : c[0] * inputs(0, c[1]) * inputs(1, c[2]) * inputs(2, c[3]) * pixel_bytes;
    return bytes <= kBandBytes && c[0] * c[1] * c[2] * c[3] <= kBandPixels;
  };
  // Whole rows, whole slices, whole images, several images, as far as they fit and enough bands are left.
  band_count_ = {1, 1, 1, 1};
  const int64_t most_pixels = std::max<int64_t>(1, whole[0] * whole[1] * whole[2] * whole[3] / tasks);
  int64_t inner = 1;
  for (size_t d = 4; d-- > 0;) {
    Box wider = band_count_;
    int64_t low = 1, high = std::min(whole[d], std::max<int64_t>(1, most_pixels / inner));
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      wider[d] = middle;
      if (fits(wider))
        low = middle;
      else
        high = middle - 1;
    }
    const int64_t bands = (whole[d] + low - 1) / low;
    band_count_[d] = (whole[d] + bands - 1) / bands;  // of even size
    inner *= band_count_[d];
    if (band_count_[d] < whole[d]) break;
  }
  for (size_t d = 0; d < 4; ++d) bands_[d] = (whole[d] + band_count_[d] - 1) / band_count_[d];
  box_ = {inputs(0, band_count_[1]), inputs(1, band_count_[2]), inputs(2, band_count_[3])};
  const int64_t all = bands_[0] * bands_[1] * bands_[2] * bands_[3] * groups_;
  const ChannelBlocks blocks(*tiles_, out_channels_);
  if (all < 2 * tasks && tasks > 1) splits_ = std::min(blocks.count, (2 * tasks + all - 1) / all);
}

Band Job::band(int64_t index) const {
  const Box whole = {shape_.batch, count(0), count(1), count(2)};
  Band b{};
  for (size_t d = 4; d-- > 0;) {
    b.first[d] = index % bands_[d] * band_count_[d];
    b.count[d] = std::min(band_count_[d], whole[d] - b.first[d]);
    index /= bands_[d];
  }
  return b;
}

// f(image, slice, row), in the order of the band's pixels.
template <class F>
void Job::each_row(const Band& band, F f) const {
  for (int64_t n = 0; n < band.count[0]; ++n)
    for (int64_t d = 0; d < band.count[1]; ++d)
      for (int64_t h = 0; h < band.count[2]; ++h) f(n, d, h);
}

void Job::place_pixels(const Band& band, int64_t group, int64_t* input_at, int64_t* output_at) const noexcept {
  const int64_t pitch = out_channels_;
  int64_t pixel = 0;
  each_row(band, [&](int64_t n, int64_t d, int64_t h) {
    int64_t from;
    if (direct_in_)
      from = (band.first[0] + n) * in_.batch + (band.first[1] + d) * piece_[0].in_step * in_.pixel[0] +
             (band.first[2] + h) * piece_[1].in_step * in_.pixel[1] + band.first[3] * piece_[2].in_step * in_.pixel[2] +
             group * in_channels_ * in_.channel;
    else
      from = n * image_pitch_ + d * piece_[0].in_step * pitch_[0] + h * piece_[1].in_step * pitch_[1];
    int64_t to = 0, to_step = pitch;
    if (direct_out_) {
      const PieceAxis &od = piece_[0], &oh = piece_[1], &ow = piece_[2];
      to = (band.first[0] + n) * out_.batch + (od.first + (band.first[1] + d) * od.step) * out_.pixel[0] +
           (oh.first + (band.first[2] + h) * oh.step) * out_.pixel[1] +
           (ow.first + band.first[3] * ow.step) * out_.pixel[2] + group * out_channels_ * out_.channel;
      to_step = ow.step * out_.pixel[2];
    } else {
      to = pixel * pitch;
    }
    const int64_t from_step = piece_[2].in_step * pitch_[2];
    for (int64_t w = 0; w < band.count[3]; ++w, ++pixel) {
      input_at[pixel] = from + w * from_step;
      output_at[pixel] = to + w * to_step;
    }
  });
}

// Columns [w_first, w_first + box) of one row of one group: what lies outside the image is zero.
void Job::copy_row(const std::byte* from, int64_t w_first, float* to) const noexcept {
  const int64_t c = in_channels_, width = box_[2];
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
  const int64_t d_first = piece_[0].begin(band.first[1]), h_first = piece_[1].begin(band.first[2]);
  for (int64_t n = 0; n < band.count[0]; ++n)
    for (int64_t d = d_first; d < d_first + box_[0]; ++d)
      for (int64_t h = h_first; h < h_first + box_[1]; ++h, to += box_[2] * in_channels_) {
        if (d < 0 || d >= shape_.input[0] || h < 0 || h >= shape_.input[1]) {
          std::fill(to, to + box_[2] * in_channels_, 0.0f);
          continue;
        }
        const int64_t at =
            (band.first[0] + n) * in_.batch + group * in_channels_ * in_.channel + d * in_.pixel[0] + h * in_.pixel[1];
        copy_row(static_cast<const std::byte*>(in_.data) + at * itemsize, piece_[2].begin(band.first[3]), to);
      }
}

// Fused operations and the way into the output, for `lanes` channels of a band from `lane` on.
void Job::finish(const Band& band, int64_t group, int64_t lane, int64_t lanes, float* values) const noexcept {
  constexpr int64_t kMost = 1024;
  float others[kMost];
  const Fusion& fusion = operands_.fusion;
  const ActivationView& other = operands_.other;
  const bool combine = fusion.combination != Combination::kNone && !accumulate_;
  Fusion rest = fusion;
  if (!combine) rest.combination = Combination::kNone;
  const auto out_itemsize = static_cast<int64_t>(dtype_bytes(out_.dtype));
  const auto other_itemsize = static_cast<int64_t>(dtype_bytes(other.dtype));
  const PieceAxis &od = piece_[0], &oh = piece_[1], &ow = piece_[2];
  int64_t pixel = 0;
  each_row(band, [&](int64_t n, int64_t d, int64_t h) {
    const auto offset = [&](const ActivationView& v) {
      return (band.first[0] + n) * v.batch + (od.first + (band.first[1] + d) * od.step) * v.pixel[0] +
             (oh.first + (band.first[2] + h) * oh.step) * v.pixel[1] +
             (ow.first + band.first[3] * ow.step) * v.pixel[2] + (group * out_channels_ + lane) * v.channel;
    };
    const int64_t out_step = ow.step * out_.pixel[2], other_step = ow.step * other.pixel[2];
    std::byte* to = static_cast<std::byte*>(output_) + offset(out_) * out_itemsize;
    const std::byte* with =
        combine ? static_cast<const std::byte*>(other.data) + offset(other) * other_itemsize : nullptr;
    float* row = direct_out_ ? reinterpret_cast<float*>(to) : values + pixel * out_channels_ + lane;
    const int64_t row_step = direct_out_ ? out_step : out_channels_;
    pixel += band.count[3];
    // A whole row at once where its pixels follow each other everywhere.
    const bool joined = row_step == lanes && (direct_out_ || (out_.channel == 1 && out_step == lanes)) &&
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
        if (!direct_out_ && (joined || out_.channel == 1 || out_step != 1 || out_.dtype != DType::kFloat32))
          scatter_floats(at, out_.dtype, to + (w * out_step + i * out_.channel) * out_itemsize,
                         joined ? 1 : out_.channel, some);
      }
    }
    if (!direct_out_ && !joined && out_.channel != 1 && out_step == 1 && out_.dtype == DType::kFloat32)
      tiles_->transpose(row, row_step, band.count[3], lanes, nullptr, false, reinterpret_cast<float*>(to),
                        out_.channel);
  });
}

void Job::work(int64_t task, float* scratch) const noexcept {
  const int64_t split = task % splits_, group = task / splits_ % groups_;
  const Band at = band(task / splits_ / groups_);
  const int64_t pixels = at.pixels();
  const int64_t most = band_count_[0] * band_count_[1] * band_count_[2] * band_count_[3];
  auto* input_at = reinterpret_cast<int64_t*>(scratch);
  int64_t* output_at = input_at + most;
  scratch += 4 * most;
  const float* input = static_cast<const float*>(in_.data);
  place_pixels(at, group, input_at, output_at);
  if (!direct_in_) {
    copy_input(at, group, scratch);
    input = scratch;
    scratch += band_count_[0] * image_pitch_;
  }
  float* values = direct_out_ ? static_cast<float*>(output_) : scratch;

  const ChannelBlocks blocks(*tiles_, out_channels_);
  const int64_t first = blocks.count * split / splits_, last = blocks.count * (split + 1) / splits_;
  const int64_t rows = static_cast<int64_t>(order_.taps.size()) * order_.in;
  ChannelTile tile{};
  for (int64_t b = first; b < last; ++b) {
    const int vectors = blocks.vectors(b);
    const int64_t lane = blocks.first_vector(b) * tiles_->width;
    const auto itemsize = static_cast<int64_t>(dtype_bytes(weight_dtype_));
    const std::byte* weight = weight_ + (group * blocks.all_vectors * tiles_->width * rows + lane * rows) * itemsize;
    const auto [pass_begin, pass_end] = passes_of_[static_cast<size_t>(vectors)];
    for (size_t i = pass_begin; i < pass_end; ++i) {
      const Pass& pass = passes_[i];
      tile.input = input + (order_.depthwise ? lane : 0);
      tile.runs = runs_.data() + pass.first_run;
      tile.run_count = pass.runs;
      tile.weight = weight + pass.first_row * vectors * tiles_->width * itemsize;
      tile.weight_dtype = weight_dtype_;
      tile.bias = bias_ && i == pass_begin ? bias_ + group * blocks.all_vectors * tiles_->width + lane : nullptr;
      tile.output = values + lane;
      tile.lanes = std::min<int64_t>(vectors * tiles_->width, out_channels_ - lane);
      tile.accumulate = accumulate_ || i != pass_begin;
      tile.relu = relu_ && i + 1 == pass_end;
      const auto run = order_.depthwise ? tiles_->depthwise : tiles_->dense;
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
  if (finish_ && first < last) {
    const int64_t lane = blocks.first_vector(first) * tiles_->width;
    const int64_t end = last == blocks.count ? out_channels_ : blocks.first_vector(last) * tiles_->width;
    finish(at, group, lane, end - lane, values);
  }
}

void Job::run() {
  plan();
  const OrderedWeight weight(shape_, operands_.weight, order_, operands_.constant);
  weight_ = static_cast<const std::byte*>(weight.data());
  weight_dtype_ = weight.dtype();
  const ChannelBlocks blocks(*tiles_, out_channels_);
  const int64_t lanes = blocks.all_vectors * tiles_->width;
  Tensor bias;
  if (operands_.bias) {
    const int64_t elems = groups_ * lanes;
    bias = Tensor::empty({&elems, 1}, DType::kFloat32);
    auto* to = bias.data_as<float>();
    const Tensor& b = *operands_.bias;
    for (int64_t g = 0; g < groups_; ++g, to += lanes) {
      gather_floats(b.dtype(),
                    static_cast<const std::byte*>(b.data()) +
                        g * out_channels_ * b.stride(0) * static_cast<int64_t>(b.itemsize()),
                    b.stride(0), to, out_channels_);
      std::fill(to + out_channels_, to + lanes, 0.0f);
    }
    bias_ = bias.data_as<float>();
  }

  const int64_t pixels = band_count_[0] * band_count_[1] * band_count_[2] * band_count_[3];
  const int64_t tasks = bands_[0] * bands_[1] * bands_[2] * bands_[3] * groups_ * splits_;
  const bool alone = kernel_threads() == 1 || shape_.work() < 2 * kWorkPerThread;
  const int64_t threads = alone ? 1 : std::min<int64_t>(kernel_threads(), tasks);
  int64_t elems =
      4 * pixels + (direct_in_ ? 0 : band_count_[0] * image_pitch_) + (direct_out_ ? 0 : pixels * out_channels_);
  elems = (elems + 15) / 16 * 16;
  const int64_t all = elems * threads;
  const Tensor scratch = Tensor::empty({&all, 1}, DType::kFloat32);
  auto* base = scratch.data_as<float>();
  if (threads == 1) {
    for (int64_t t = 0; t < tasks; ++t) work(t, base);
    return;
  }
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t t = tasks * i / threads; t < tasks * (i + 1) / threads; ++t) work(t, base + i * elems);
  });
}

}  // namespace

void convolve_channels(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  const auto ds = piece_axes(shape, 0), hs = piece_axes(shape, 1), ws = piece_axes(shape, 2);
  for (const PieceAxis& d : ds)
    for (const PieceAxis& h : hs)
      for (const PieceAxis& w : ws) {
        const Piece piece{d, h, w};
        Job(shape, operands, output, piece).run();
      }
}

}  // namespace sconce
