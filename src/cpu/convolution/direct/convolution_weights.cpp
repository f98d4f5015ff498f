#include "src/cpu/convolution/direct/convolution_weights.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "sconce/check.h"
#include "src/cpu/vector/transpose_runs.h"
#include "src/device/derived_memory.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

struct WeightCopy {
  std::array<int64_t, 15> recipe;
  DerivedMemory data;
};
constexpr char kKind = 0;
constexpr int64_t kElementsPerThread = 16384;  // of a weight: fewer are not worth a thread

// One group's block of vectors. The kernel also computes lanes without a channel, so they must hold numbers.
void order_block(const WeightView& weight, const WeightOrder& order, const std::vector<int64_t>& tap_at, int64_t group,
                 int64_t block, float* to) noexcept {
  const ChannelTiles& tiles = *order.tiles;
  const ChannelBlocks blocks(tiles, order.out);
  const int64_t apart = blocks.vectors(block) * tiles.width, lane = blocks.first_vector(block) * tiles.width;
  const int64_t columns = std::min(apart, order.out - lane), in = order.in;
  const auto taps = static_cast<int64_t>(order.taps.size());
  const auto evenly = [&](int64_t step) {
    for (size_t t = 1; t < tap_at.size(); ++t)
      if (tap_at[t] != tap_at[t - 1] + step) return false;
    return true;
  };
  const float* from = static_cast<const float*>(weight.data) + group * weight.group + lane * weight.out;
  RunsToPanel runs{from + tap_at[0], weight.out, columns, taps * in, 1, to, 0, apart, apart};
  if (in > 1 && weight.in == 1 && evenly(in)) {
    transpose_runs(runs);
  } else if (in > 1 && weight.in == 1) {
    runs.rows = in;
    for (int64_t t = 0; t < taps; ++t, runs.to += in * apart) {
      runs.from = from + tap_at[static_cast<size_t>(t)];
      transpose_runs(runs);
    }
  } else if (evenly(1) && (in == 1 || weight.in == taps)) {
    runs.taps = taps;
    runs.tap_apart = in * apart;
    transpose_runs(runs);
  } else {
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t i = 0; i < in; ++i, to += apart) {
        const float* at = from + tap_at[static_cast<size_t>(t)] + i * weight.in;
        for (int64_t c = 0; c < columns; ++c) to[c] = at[c * weight.out];
        std::fill(to + columns, to + apart, 0.0f);
      }
  }
}

void order_weight(const ConvolutionShape& shape, const WeightView& given, const WeightOrder& order, float* to) {
  if (order.taps.empty()) return;
  Tensor keep;
  WeightView weight = float_weight(shape, given, keep);
  if (order.depthwise) weight.out = weight.group;  // every group is one channel
  const Dims3& kernel = shape.kernel;
  std::vector<int64_t> tap_at;
  for (const int64_t t : order.taps)
    tap_at.push_back(t / (kernel[1] * kernel[2]) * weight.kernel[0] + t / kernel[2] % kernel[1] * weight.kernel[1] +
                     t % kernel[2] * weight.kernel[2]);
  const auto taps = static_cast<int64_t>(order.taps.size());
  const ChannelBlocks blocks(*order.tiles, order.out);
  const int64_t vector = order.tiles->width * order.in * taps;
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / (blocks.vectors(0) * vector));
  parallel_for(0, order.groups * blocks.count, grain, [&](int64_t begin, int64_t end) noexcept {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = i / blocks.count, b = i % blocks.count;
      order_block(weight, order, tap_at, g, b, to + (g * blocks.all_vectors + blocks.first_vector(b)) * vector);
    }
  });
}

}  // namespace

ChannelBlocks::ChannelBlocks(const ChannelTiles& tiles, int64_t channels) noexcept {
  all_vectors = (channels + tiles.width - 1) / tiles.width;
  count = (all_vectors + tiles.vectors - 1) / tiles.vectors;
  least_ = all_vectors / count;
  longer_ = all_vectors % count;
}

void WeightOrder::set_recipe(const ConvolutionShape& shape, const WeightView& weight) noexcept {
  const auto mix = [](uint64_t h, int64_t value) {
    h = (h ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15;
    return h ^ h >> 29;
  };
  constexpr uint64_t kStart = 0xcbf29ce484222325;
  uint64_t tap_list = kStart;
  for (const int64_t t : taps) tap_list = mix(tap_list, t);
  recipe = {static_cast<int64_t>(weight.dtype),
            weight.group,
            weight.out,
            weight.in,
            weight.kernel[0],
            weight.kernel[1],
            weight.kernel[2],
            groups,
            out,
            in,
            static_cast<int64_t>(taps.size()),
            shape.kernel[2],
            tiles->width,
            (depthwise ? 1 : 0) + (weight.blocked ? 2 : 0),
            static_cast<int64_t>(tap_list)};
  hash = kStart;
  for (const int64_t word : recipe) hash = mix(hash, word);
}

OrderedWeight::OrderedWeight(const ConvolutionShape& shape, const WeightView& weight, const WeightOrder& order,
                             Storage* constant) {
  if (!constant) {
    const int64_t elems = order.group_elems() * order.groups;
    own_ = Tensor::empty({&elems, 1}, DType::kFloat32);
    order_weight(shape, weight, order, own_.data_as<float>());
    data_ = own_.data_as<float>();
    return;
  }
  if (!order.depthwise) dtype_ = weight.dtype;
  const auto offset = static_cast<const std::byte*>(weight.data) - static_cast<const std::byte*>(constant->data());
  const DerivedKey key{&kKind, {static_cast<int64_t>(order.hash), offset}};
  const auto how = [&]() -> Storage::Derive {
    return [shape, view = weight, order, dtype = dtype_, offset](Storage& from) mutable -> Storage::Value {
      view.data = static_cast<const std::byte*>(from.data()) + offset;
      auto made = std::make_shared<WeightCopy>();
      made->recipe = order.recipe;
      const int64_t elems = order.group_elems() * order.groups;
      const size_t bytes = static_cast<size_t>(elems) * dtype_bytes(dtype);
      made->data = allocate_derived("convolution", bytes);
      if (dtype == DType::kFloat32) {
        order_weight(shape, view, order, static_cast<float*>(made->data.get()));
      } else {
        const Tensor floats = Tensor::empty({&elems, 1}, DType::kFloat32);
        order_weight(shape, view, order, floats.data_as<float>());
        scatter_floats(floats.data_as<float>(), dtype, made->data.get(), 1, elems);
      }
      from.give_up(static_cast<size_t>(offset));
      return {std::move(made), bytes};
    };
  };
  // The description of a packed weight belongs to its storage and never changes.
  const auto* ordered = static_cast<const WeightCopy*>(constant->derived(key, std::ref(how)));
  SCONCE_CHECK(ordered->recipe == order.recipe, kInternal, "two weight orders of one constant have the same hash");
  data_ = ordered->data.get();
}

}  // namespace sconce
