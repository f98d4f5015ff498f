#include "src/cpu/convolution/direct/convolution_channels_plan.h"

#include <algorithm>

#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr int64_t kBandBytes = 128 << 10;  // of the input's copy: stays in the second-level cache
constexpr int64_t kBandPixels = 1024;
constexpr int64_t kPanelBytes = 96 << 10;  // of the weights that a pass over the pixels uses: second-level cache
constexpr double kWorkPerThread = 1e5;     // multiplications that are worth a thread

// Whether threads take output channels each, instead of pixels: what all of them read is the input then, not the
// weights, and a weight that is no constant is put in order by the thread that reads it. Pays where there are more
// weights than inputs, and as many blocks of channels for one thread as for another (at most a seventh more).
// 512 x 512 channels, 3 x 3, 7 x 7 pixels, two threads (Zen 4): 1.02 ms so and 1.36 ms by pixels; with a weight that is
// no constant, 1.34 ms and 3.06 ms.
bool prefers_channels(const ConvolutionShape& s, int64_t blocks, int64_t threads) {
  const int64_t most = (blocks + threads - 1) / threads;
  return s.taps() * s.out_channels > s.batch * s.input[0] * s.input[1] * s.input[2] && 7 * most * threads <= 8 * blocks;
}

}  // namespace

ChannelsPlan::ChannelsPlan(const ConvolutionShape& shape, const ConvolutionOperands& operands,
                           const ActivationView& output, Piece of)
    : piece(std::move(of)) {
  const ActivationView& in = operands.input;
  const bool depthwise =
      shape.groups == shape.in_channels && shape.out_channels == shape.in_channels && shape.groups > 1;
  groups = depthwise ? 1 : shape.groups;
  in_channels = depthwise ? shape.in_channels : shape.in_group();
  out_channels = depthwise ? shape.out_channels : shape.out_group();
  order.tiles = &channel_tiles(out_channels);
  order.depthwise = depthwise;
  order.groups = groups;
  order.out = out_channels;
  order.in = depthwise ? 1 : in_channels;

  direct_in = in.dtype == DType::kFloat32 && (in.channel == 1 || in_channels == 1);
  for (size_t d = 0; d < 3; ++d)
    direct_in =
        direct_in && !piece[d].taps.empty() && piece[d].lowest() >= 0 && piece[d].end(0, count(d)) <= shape.input[d];
  direct_out = output.dtype == DType::kFloat32 && (output.channel == 1 || shape.out_channels == 1);

  const Fusion& fusion = operands.fusion;
  accumulate = direct_out && fusion.combination == Combination::kAdd && operands.other.data == output.data;
  finish = !direct_out || (fusion.combination != Combination::kNone && !accumulate) ||
           (fusion.activation != Activation::kNone && fusion.activation != Activation::kRelu);
  relu = !finish && fusion.activation == Activation::kRelu;

  const bool alone = kernel_threads() == 1 || shape.work() < 2 * kWorkPerThread;
  choose_bands(shape, alone ? 1 : kernel_threads());
  if (direct_in) {
    pitch = in.pixel;
    image_pitch = in.batch;
  } else {
    pitch = {box[1] * box[2] * in_channels, box[2] * in_channels, in_channels};
    image_pitch = box[0] * pitch[0];
  }
  // Taps in the kernel's order; neighbours whose inputs lie side by side are one run.
  const int64_t length = depthwise ? 1 : in_channels;
  for (const Tap& d : piece[0].taps)
    for (const Tap& h : piece[1].taps)
      for (const Tap& w : piece[2].taps) {
        order.taps.push_back((d.kernel * shape.kernel[1] + h.kernel) * shape.kernel[2] + w.kernel);
        int64_t at = d.input * pitch[0] + h.input * pitch[1] + w.input * pitch[2];
        if (!direct_in)
          at -= piece[0].lowest() * pitch[0] + piece[1].lowest() * pitch[1] + piece[2].lowest() * pitch[2];
        if (!depthwise && !runs.empty() && runs.back().offset + runs.back().length == at)
          runs.back().length += length;
        else
          runs.push_back({at, length});
      }
  order.set_recipe(shape, operands.weight);
  choose_passes();
  // Offsets of pixels, the input's copy, the output's copy.
  scratch_elems = 4 * most_pixels() + (direct_in ? 0 : band_count[0] * image_pitch) +
                  (direct_out ? 0 : most_pixels() * out_channels);
  scratch_elems = (scratch_elems + 15) / 16 * 16;
}

// Cuts runs into passes whose weights stay in the cache.
void ChannelsPlan::choose_passes() {
  std::vector<ChannelRun> cut;
  const ChannelBlocks blocks(*order.tiles, out_channels);
  for (int64_t b = 0; b < blocks.count; ++b) {
    const int vectors = blocks.vectors(b);
    auto& range = passes_of[static_cast<size_t>(vectors)];
    if (range.second > 0) continue;
    const int64_t most = kPanelBytes / (vectors * order.tiles->width * static_cast<int64_t>(sizeof(float)));
    const int64_t rows = static_cast<int64_t>(order.taps.size()) * order.in;
    const int64_t count = rows <= most + most / 2 ? 1 : (rows + most - 1) / most;
    const int64_t even = (rows + count - 1) / count;
    range.first = passes.size();
    Pass pass{static_cast<int64_t>(cut.size()), 0, 0};
    int64_t in_pass = 0, row = 0;
    for (const ChannelRun& run : runs)
      for (int64_t done = 0; done < run.length;) {
        if (in_pass == even) {
          passes.push_back(pass);
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
    passes.push_back(pass);
    range.second = passes.size();
  }
  runs = std::move(cut);
}

void ChannelsPlan::choose_bands(const ConvolutionShape& shape, int64_t most_threads) {
  whole = {shape.batch, count(0), count(1), count(2)};
  const auto inputs = [&](size_t d, int64_t outputs) {
    return piece[d].taps.empty() ? outputs : piece[d].end(0, outputs) - piece[d].begin(0);
  };
  const int64_t pixel_bytes = in_channels * static_cast<int64_t>(sizeof(float));
  const auto fits = [&](const Box& c) {
    const int64_t bytes = direct_in ? 0 : c[0] * inputs(0, c[1]) * inputs(1, c[2]) * inputs(2, c[3]) * pixel_bytes;
    return bytes <= kBandBytes && c[0] * c[1] * c[2] * c[3] <= kBandPixels;
  };
  // Whole rows, whole slices, whole images, several images, as far as they fit and enough bands are left.
  band_count = {1, 1, 1, 1};
  const ChannelBlocks blocks(*order.tiles, out_channels);
  by_channels =
      most_threads > 1 && groups == 1 && !order.depthwise && prefers_channels(shape, blocks.count, most_threads);
  const int64_t most_pixels =
      std::max<int64_t>(1, whole[0] * whole[1] * whole[2] * whole[3] / (by_channels ? 1 : most_threads));
  int64_t inner = 1;
  for (size_t d = 4; d-- > 0;) {
    Box wider = band_count;
    int64_t low = 1, high = std::min(whole[d], std::max<int64_t>(1, most_pixels / inner));
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      wider[d] = middle;
      if (fits(wider))
        low = middle;
      else
        high = middle - 1;
    }
    const int64_t pieces = (whole[d] + low - 1) / low;
    band_count[d] = (whole[d] + pieces - 1) / pieces;  // of even size
    inner *= band_count[d];
    if (band_count[d] < whole[d]) break;
  }
  for (size_t d = 0; d < 4; ++d) bands[d] = (whole[d] + band_count[d] - 1) / band_count[d];
  box = {inputs(0, band_count[1]), inputs(1, band_count[2]), inputs(2, band_count[3])};
  const int64_t all = bands[0] * bands[1] * bands[2] * bands[3] * groups;
  if (by_channels)
    splits = most_threads;
  else if (all < 2 * most_threads && most_threads > 1)
    splits = std::min(blocks.count, (2 * most_threads + all - 1) / all);
  threads = std::min(most_threads, all * splits);
}

Band ChannelsPlan::band(int64_t index) const noexcept {
  Band b{};
  for (size_t d = 4; d-- > 0;) {
    b.first[d] = index % bands[d] * band_count[d];
    b.count[d] = std::min(band_count[d], whole[d] - b.first[d]);
    index /= bands[d];
  }
  return b;
}

}  // namespace sconce
