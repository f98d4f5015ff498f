#include "src/cpu/convolution/direct/convolution_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "sconce/check.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/onednn/plan_table.h"
#include "src/device/derived_memory.h"
#include "src/device/threads.h"

namespace sconce {
namespace {

constexpr double kWorkPerThread = 4e5;      // multiplications that are worth a thread
constexpr int64_t kInputBytes = 192 << 10;  // that the channels of a task read again and again
constexpr int64_t kBeyond = 64;             // bytes behind the copied input that a vector may read

bool is_depthwise(const ConvolutionShape& s) noexcept {
  return s.groups > 1 && s.groups == s.in_channels && s.out_channels == s.in_channels;
}

// What a pixel multiplies, in the order of the weight: rows of the kernel where their inputs lie side by side, else
// taps.
struct Runs {
  explicit Runs(const ConvolutionShape& s) noexcept
      : rows(is_depthwise(s) || (s.groups == 1 && s.dilation[2] == 1)),
        count(s.kernel[0] * s.kernel[1] * (rows ? 1 : s.kernel[2])),
        length(s.in_group() * (rows ? s.kernel[2] : 1)) {}
  bool rows;
  int64_t count, length;
};

// [groups][vectors][quads of all runs][lanes][quad]; depthwise: one group, of int32 [vectors][taps][lanes].
struct Order {
  Order(const ConvolutionShape& s, const WeightView& view, const ByteTiles& t)
      : tiles(&t),
        depthwise(is_depthwise(s)),
        groups(depthwise ? 1 : s.groups),
        out(depthwise ? s.out_channels : s.out_group()),
        vectors((out + t.width - 1) / t.width),
        quads((Runs(s).length + t.quad - 1) / t.quad),
        vector_bytes(depthwise ? s.taps() * t.width * 4 : Runs(s).count * quads * t.width * t.quad * t.itemsize) {
    recipe = {view.group,
              view.out,
              view.in,
              view.kernel[0],
              view.kernel[1],
              view.kernel[2],
              s.groups,
              s.in_channels,
              s.out_channels,
              s.kernel[0],
              s.kernel[1],
              s.kernel[2],
              (depthwise ? 1 : 0) + (Runs(s).rows ? 2 : 0) + (view.blocked ? 4 : 0),
              t.width,
              view.blocked ? static_cast<int64_t>(view.blocked->layout_hash) : 0};
  }
  const ByteTiles* tiles;
  bool depthwise;
  int64_t groups, out, vectors, quads, vector_bytes;
  std::array<int64_t, 15> recipe;

  int64_t bytes() const noexcept { return groups * vectors * vector_bytes; }
};

// One vector of channels, and the sum of each channel's weights.
template <class Item>
void order_vector(const ConvolutionShape& s, const WeightView& w, const Order& order, int64_t group, int64_t vector,
                  Item* to, uint32_t* sums) noexcept {
  const ByteTiles& t = *order.tiles;
  const Runs runs(s);
  const int64_t quad = order.depthwise ? 1 : t.quad, in = s.in_group(), columns = runs.rows ? 1 : s.kernel[2];
  const int64_t quads = order.depthwise ? runs.length : order.quads, apart = order.depthwise ? w.group : w.out;
  for (int64_t lane = 0; lane < t.width; ++lane) {
    const int64_t channel = vector * t.width + lane;
    const bool real = channel < order.out;
    const int8_t* const of_channel = static_cast<const int8_t*>(w.data) + group * w.group + channel * apart;
    uint32_t sum = 0;
    for (int64_t r = 0; r < runs.count; ++r) {
      const int64_t row = r / columns;
      const int8_t* const from =
          of_channel + row / s.kernel[1] * w.kernel[0] + row % s.kernel[1] * w.kernel[1] + r % columns * w.kernel[2];
      Item* at = to + r * quads * t.width * quad + lane * quad;
      int64_t in_quad = 0, left = quads * quad;
      const auto place = [&](int8_t value) {
        *at++ = value;
        --left;
        if (++in_quad < quad) return;
        in_quad = 0;
        at += (t.width - 1) * quad;
      };
      for (int64_t k = 0; real && k < runs.length / std::max<int64_t>(in, 1); ++k)
        for (int64_t c = 0; c < in; ++c) {
          const int8_t value = from[k * w.kernel[2] + c * w.in];
          place(value);
          sum += static_cast<uint32_t>(int32_t{value});
        }
      while (left > 0) place(0);
    }
    sums[lane] = sum;
  }
}

// `sums`: of every lane of every vector.
void order_weight(const ConvolutionShape& s, const WeightView& given, const Order& order, std::byte* to,
                  uint32_t* sums) {
  WeightView view = given;
  Tensor rows;
  if (given.blocked) {
    const int64_t elems = given.blocked->numel();
    rows = Tensor::empty({&elems, 1}, DType::kInt8);
    given.blocked->to_bytes(given.data, rows.data_as<int8_t>());
    view.data = rows.data();
  }
  parallel_for(0, order.groups * order.vectors, std::max<int64_t>(1, 65536 / std::max<int64_t>(order.vector_bytes, 1)),
               [&](int64_t begin, int64_t end) noexcept {
                 for (int64_t i = begin; i < end; ++i) {
                   std::byte* const at = to + i * order.vector_bytes;
                   const auto one = [&]<class Item>(Item* items) {
                     order_vector(s, view, order, i / order.vectors, i % order.vectors, items,
                                  sums + i * order.tiles->width);
                   };
                   if (order.depthwise)
                     one(reinterpret_cast<int32_t*>(at));
                   else if (order.tiles->itemsize == 1)
                     one(reinterpret_cast<int8_t*>(at));
                   else
                     one(reinterpret_cast<int16_t*>(at));
                 }
               });
}

constexpr char kKind = 0;

struct OrderedCopy {
  std::array<int64_t, 15> recipe;
  DerivedMemory data;
  std::vector<uint32_t> sums;
};

class OrderedBytes {
 public:
  OrderedBytes(const ConvolutionShape& s, const WeightView& weight, const Order& order, Storage* constant) {
    const int64_t lanes = order.groups * order.vectors * order.tiles->width;
    if (!constant) {
      const int64_t bytes = order.bytes();
      own_ = Tensor::empty({&bytes, 1}, DType::kUInt8);
      own_sums_ = Tensor::empty({&lanes, 1}, DType::kInt32);
      auto* const sums = reinterpret_cast<uint32_t*>(own_sums_.data());
      order_weight(s, weight, order, static_cast<std::byte*>(own_.data()), sums);
      data = static_cast<const std::byte*>(own_.data());
      this->sums = sums;
      return;
    }
    const auto offset = static_cast<const std::byte*>(weight.data) - static_cast<const std::byte*>(constant->data());
    const auto how = [&]() -> Storage::Derive {
      return [s, view = weight, order, lanes, offset,
              blocked = weight.blocked ? std::make_shared<BlockedWeight>(*weight.blocked)
                                       : nullptr](Storage& from) mutable -> Storage::Value {
        view.data = static_cast<const std::byte*>(from.data()) + offset;
        view.blocked = blocked.get();
        auto made = std::make_shared<OrderedCopy>();
        made->recipe = order.recipe;
        made->sums.resize(static_cast<size_t>(lanes));
        made->data = allocate_derived("convolution", static_cast<size_t>(order.bytes()));
        order_weight(s, view, order, static_cast<std::byte*>(made->data.get()), made->sums.data());
        from.give_up(static_cast<size_t>(offset));
        const size_t bytes = static_cast<size_t>(order.bytes()) + made->sums.size() * sizeof(uint32_t);
        return {std::move(made), bytes};
      };
    };
    const DerivedKey key{&kKind, {offset, static_cast<int64_t>(hash_words(order.recipe))}};
    const auto* ordered = static_cast<const OrderedCopy*>(constant->derived(key, std::ref(how)));
    SCONCE_CHECK(ordered->recipe == order.recipe, kInternal, "two weight orders of one constant have the same hash");
    data = static_cast<const std::byte*>(ordered->data.get());
    sums = ordered->sums.data();
  }
  const std::byte* data;
  const uint32_t* sums;

 private:
  Tensor own_, own_sums_;
};

// A convolution whose pixels lie side by side and are read once each: one long line of them.
void flatten(ConvolutionShape& s, ActivationView& in) noexcept {
  if (s.taps() != 1 || s.stride != Dims3{1, 1, 1} || s.padding != Dims3{}) return;
  int64_t step = 0, size = 1;
  for (int d = 3; d-- > -1;) {
    const int64_t count = d < 0 ? s.batch : s.input[static_cast<size_t>(d)];
    const int64_t stride = d < 0 ? in.batch : in.pixel[static_cast<size_t>(d)];
    if (count == 1) continue;
    if (step == 0)
      step = stride;
    else if (stride != step * size)
      return;
    size *= count;
  }
  s.batch = 1;
  s.input = s.output = {1, size, 1};
  in.pixel = {0, step, 0};
}

struct Job {
  ConvolutionShape shape;
  ActivationView in;
  const ByteTiles& tiles;
  const Order& order;
  int32_t zero_point;
  bool direct = false;  // the tiles read the input where it lies
  int64_t width = 0;    // of a row of the copy, in pixels
  int64_t most_rows = 0;
  int64_t itemsize = 1;  // of an input as the tiles read it
  const std::byte* weight = nullptr;
  ByteOutput output{};
  size_t output_itemsize = 1;
  // What a task of rows and vectors may use.
  int64_t scratch_bytes = 0;
  std::vector<ByteRun> runs{};  // of `direct`, or of a copy of most_rows rows

  int64_t rows() const noexcept { return shape.batch * shape.output[0] * shape.output[1]; }
  int64_t copied_rows(int64_t rows) const noexcept {
    return (rows - 1) * shape.stride[1] + (shape.kernel[1] - 1) * shape.dilation[1] + 1;
  }
  void choose();
  void run(int64_t row, int64_t last_row, int64_t vector, int64_t last_vector, std::byte* scratch) const noexcept;

 private:
  template <class Item>
  void copy(int64_t n, int64_t d, int64_t h, int64_t rows, Item* to) const noexcept;
  template <class Item>
  void copy_row(const uint8_t* from, Item* to) const noexcept;
  void tile_rows(int64_t n, int64_t d, int64_t h, int64_t rows, int64_t vector, int64_t last,
                 const std::byte* scratch) const noexcept;
  void depthwise_rows(int64_t n, int64_t d, int64_t h, int64_t rows, int64_t vector, int64_t last,
                      const std::byte* scratch) const noexcept;
  ByteOutput output_of(int64_t vector, int64_t count, int64_t pixel) const noexcept;
};

void Job::choose() {
  const Runs of(shape);
  itemsize = order.depthwise ? 1 : tiles.itemsize;
  direct = !order.depthwise && itemsize == 1 && in.channel == 1 && shape.padding == Dims3{} &&
           of.length % tiles.quad == 0 && (!of.rows || shape.kernel[2] == 1 || in.pixel[2] == shape.in_channels);
  width = (shape.output[2] - 1) * shape.stride[2] + (shape.kernel[2] - 1) * shape.dilation[2] + 1;
  const int64_t row_bytes = width * shape.in_channels * itemsize * (direct ? 1 : shape.kernel[0]);
  const int64_t room = kInputBytes / std::max<int64_t>(row_bytes, 1) - copied_rows(1);
  most_rows = std::clamp<int64_t>(1 + room / shape.stride[1], 1, shape.output[1]);
  if (!direct) scratch_bytes = copied_rows(most_rows) * row_bytes + kBeyond;
  Dims3 pitch = in.pixel;
  if (!direct) {
    pitch[2] = shape.in_channels;
    pitch[1] = width * pitch[2];
    pitch[0] = copied_rows(most_rows) * pitch[1];
  }
  const int64_t columns = of.rows ? 1 : shape.kernel[2];
  for (int64_t r = 0; r < of.count; ++r) {
    const int64_t row = r / columns, kd = row / shape.kernel[1];
    runs.push_back({(direct ? kd * shape.dilation[0] : kd) * pitch[0] +
                        row % shape.kernel[1] * shape.dilation[1] * pitch[1] +
                        r % columns * shape.dilation[2] * pitch[2],
                    order.quads});
  }
}

template <class Item>
void Job::copy_row(const uint8_t* from, Item* to) const noexcept {
  const int64_t channels = shape.in_channels, before = std::min(shape.padding[2], width);
  const int64_t count = std::clamp<int64_t>(shape.input[2], 0, width - before);
  std::fill_n(to, before * channels, static_cast<Item>(zero_point));
  to += before * channels;
  if (in.channel == 1 && (in.pixel[2] == channels || count == 1)) {
    std::copy_n(from, count * channels, to);
  } else if (in.channel == 1) {
    for (int64_t w = 0; w < count; ++w) std::copy_n(from + w * in.pixel[2], channels, to + w * channels);
  } else {
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t w = 0; w < count; ++w) to[w * channels + c] = from[w * in.pixel[2] + c * in.channel];
  }
  std::fill_n(to + count * channels, (width - before - count) * channels, static_cast<Item>(zero_point));
}

// What outputs of `rows` rows from h on read.
template <class Item>
void Job::copy(int64_t n, int64_t d, int64_t h, int64_t rows, Item* to) const noexcept {
  const int64_t length = width * shape.in_channels;
  for (int64_t kd = 0; kd < shape.kernel[0]; ++kd)
    for (int64_t r = 0; r < copied_rows(rows); ++r) {
      const int64_t slice = d * shape.stride[0] - shape.padding[0] + kd * shape.dilation[0];
      const int64_t row = h * shape.stride[1] - shape.padding[1] + r;
      Item* const at = to + (kd * copied_rows(most_rows) + r) * length;
      if (slice < 0 || slice >= shape.input[0] || row < 0 || row >= shape.input[1])
        std::fill_n(at, length, static_cast<Item>(zero_point));
      else
        copy_row(static_cast<const uint8_t*>(in.data) + n * in.batch + slice * in.pixel[0] + row * in.pixel[1], at);
    }
}

ByteOutput Job::output_of(int64_t vector, int64_t count, int64_t pixel) const noexcept {
  const int64_t group = vector / order.vectors, lane = vector % order.vectors * tiles.width;
  const int64_t channel = group * order.out + lane;
  ByteOutput o = output;
  o.start += vector * tiles.width;
  o.scale += channel;
  o.bias += channel;
  o.to += pixel * o.pitch + channel * static_cast<int64_t>(output_itemsize);
  o.lanes = std::min(count * tiles.width, order.out - lane);
  return o;
}

void Job::tile_rows(int64_t n, int64_t d, int64_t h, int64_t rows, int64_t vector, int64_t last,
                    const std::byte* scratch) const noexcept {
  const int64_t columns = shape.output[2], pixels = rows * columns;
  const int64_t first = ((n * shape.output[0] + d) * shape.output[1] + h) * columns;
  const std::byte* base = scratch;
  int64_t row_step = shape.stride[1] * width * shape.in_channels * itemsize;
  int64_t step = shape.stride[2] * shape.in_channels * itemsize;
  if (direct) {
    base = static_cast<const std::byte*>(in.data) + n * in.batch + d * shape.stride[0] * in.pixel[0] +
           h * shape.stride[1] * in.pixel[1];
    row_step = shape.stride[1] * in.pixel[1];
    step = shape.stride[2] * in.pixel[2];
  }
  ByteTile tile;
  tile.runs = runs.data();
  tile.run_count = static_cast<int64_t>(runs.size());
  tile.weight_pitch = order.vector_bytes;
  while (vector < last) {
    const int64_t in_group = std::min(last - vector, order.vectors - vector % order.vectors);
    const int64_t blocks = (in_group + tiles.vectors - 1) / tiles.vectors, count = (in_group + blocks - 1) / blocks;
    const std::byte* const of_group = base + vector / order.vectors * shape.in_group() * itemsize;
    tile.weight = weight + vector * order.vector_bytes;
    tile.output = output_of(vector, count, first);
    int64_t row = 0, column = 0;
    for (int64_t p = 0; p < pixels; p += kBytePixels) {
      const int some = static_cast<int>(std::min<int64_t>(kBytePixels, pixels - p));
      for (int i = 0; i < some; ++i) {
        tile.pixels[i] = of_group + row * row_step + column * step;
        if (++column == columns) {
          column = 0;
          ++row;
        }
      }
      tiles.run(tile, some, static_cast<int>(count));
      tile.output.to += some * tile.output.pitch;
    }
    vector += count;
  }
}

void Job::depthwise_rows(int64_t n, int64_t d, int64_t h, int64_t rows, int64_t vector, int64_t last,
                         const std::byte* scratch) const noexcept {
  ByteDepthwiseRow r{};
  r.column = shape.in_channels;
  r.step = shape.stride[2];
  r.dilation = shape.dilation[2];
  r.runs = runs.data();
  r.rows = static_cast<int64_t>(runs.size());
  r.taps = shape.kernel[2];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t v = vector; v < last; ++v) {
      r.input =
          reinterpret_cast<const uint8_t*>(scratch) + i * shape.stride[1] * width * shape.in_channels + v * tiles.width;
      r.weight = reinterpret_cast<const int32_t*>(weight + v * order.vector_bytes);
      r.output = output_of(v, 1, ((n * shape.output[0] + d) * shape.output[1] + h + i) * shape.output[2]);
      tiles.depthwise(r, shape.output[2]);
    }
}

void Job::run(int64_t row, int64_t last_row, int64_t vector, int64_t last_vector, std::byte* scratch) const noexcept {
  while (row < last_row) {
    const int64_t h = row % shape.output[1], d = row / shape.output[1] % shape.output[0];
    const int64_t n = row / shape.output[1] / shape.output[0];
    const int64_t some = std::min({last_row - row, shape.output[1] - h, most_rows});
    if (!direct && itemsize == 1)
      copy(n, d, h, some, reinterpret_cast<uint8_t*>(scratch));
    else if (!direct)
      copy(n, d, h, some, reinterpret_cast<int16_t*>(scratch));
    if (order.depthwise)
      depthwise_rows(n, d, h, some, vector, last_vector, scratch);
    else
      tile_rows(n, d, h, some, vector, last_vector, scratch);
    row += some;
  }
}

// Parts of rows and of vectors, one of each a thread, so that the largest task is least.
std::array<int64_t, 2> split(int64_t rows, int64_t vectors, int64_t threads) noexcept {
  std::array<int64_t, 2> best{1, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t b = 1; b <= std::min(threads, vectors); ++b) {
    const int64_t a = std::min(rows, threads / b);
    const int64_t largest = ((rows + a - 1) / a) * ((vectors + b - 1) / b);
    if (largest < least) {
      least = largest;
      best = {a, b};
    }
  }
  return best;
}

}  // namespace

void convolve_bytes(const ConvolutionShape& shape, const ConvolutionOperands& operands, int32_t zero_point,
                    const ByteFinish* finish, Tensor& output) {
  const ByteTiles& tiles = byte_tiles();
  const Order order(shape, operands.weight, tiles);
  const OrderedBytes weight(shape, operands.weight, order, operands.constant);
  Job job{shape, operands.input, tiles, order, zero_point};
  if (!order.depthwise) flatten(job.shape, job.in);
  job.choose();
  job.weight = weight.data;

  const int64_t lanes = order.groups * order.vectors * tiles.width, channels = shape.out_channels;
  const int64_t padded = channels + tiles.vectors * tiles.width;
  const int64_t words = lanes + (tiles.vectors * tiles.width) + 2 * padded;
  const Tensor values = Tensor::empty({&words, 1}, DType::kInt32);
  auto* const start = values.data_as<int32_t>();
  for (int64_t i = 0; i < lanes; ++i)
    start[i] = static_cast<int32_t>(-static_cast<uint32_t>(zero_point) * weight.sums[i]);
  std::fill_n(start + lanes, tiles.vectors * tiles.width, 0);
  auto* const scale = reinterpret_cast<float*>(start + lanes + tiles.vectors * tiles.width);
  float* const bias = scale + padded;
  std::fill_n(scale, 2 * padded, 0.0f);
  if (finish) {
    std::copy_n(finish->scale, channels, scale);
    if (finish->bias) std::copy_n(finish->bias, channels, bias);
  }
  job.output_itemsize = output.itemsize();
  job.output = {finish,
                output.dtype(),
                start,
                scale,
                bias,
                static_cast<std::byte*>(output.data()),
                channels * static_cast<int64_t>(output.itemsize()),
                0};

  const int64_t rows = job.rows(), vectors = order.groups * order.vectors;
  const int64_t threads = std::clamp<int64_t>(static_cast<int64_t>(shape.work() / kWorkPerThread), 1, kernel_threads());
  const auto [row_parts, vector_parts] = split(rows, vectors, threads);
  const int64_t tasks = row_parts * vector_parts;
  const int64_t scratch_bytes = job.scratch_bytes * tasks;
  const Tensor scratch = Tensor::empty({&scratch_bytes, 1}, DType::kUInt8);
  parallel_for(
      0, tasks, 1, [&, row_parts = row_parts, vector_parts = vector_parts](int64_t begin, int64_t end) noexcept {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t a = i / vector_parts, b = i % vector_parts;
          job.run(rows * a / row_parts, rows * (a + 1) / row_parts, vectors * b / vector_parts,
                  vectors * (b + 1) / vector_parts, static_cast<std::byte*>(scratch.data()) + i * job.scratch_bytes);
        }
      });
}

}  // namespace sconce
