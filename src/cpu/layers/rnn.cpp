// One layer and direction of a recurrent network. Matches aten::mkldnn_rnn_layer (aten/src/ATen/native/mkldnn/RNN.cpp),
// torch 2.15.
#include <algorithm>

#include "sconce/check.h"
#include "src/cpu/convolution/convolution.h"
#include "src/cpu/convolution/direct/convolution_weights.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/vector/vector_math.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"

namespace sconce {
namespace {

constexpr std::string_view kName = "mkldnn_rnn_layer";
constexpr int64_t kChunkBytes = 1 << 20;    // of gates that are computed ahead of the recurrence
constexpr int64_t kWorkPerThread = 200000;  // multiplications of a step that are worth a thread

// A weight [4H, K] as a convolution's: from its plain form, or from oneDNN's [1, 1, K, 4, H].
WeightView gate_weight(const Tensor& weight, int64_t hidden, int64_t k, BlockedWeight& own) {
  WeightView view;
  view.dtype = weight.dtype();
  view.data = weight.data();
  if (weight.layout() == Layout::kMkldnn) {
    const BlockedWeight& blocked = blocked_weight(weight, own);
    const int64_t wanted[5] = {1, 1, k, 4, hidden};
    SCONCE_CHECK(std::equal(blocked.dims.begin(), blocked.dims.end(), wanted, wanted + 5), kInvalidArgument, kName,
                 ": packed weight of dimensions ", to_string(blocked.dims), " does not fit ", k,
                 " inputs and hidden size ", hidden);
    view.blocked = &blocked;
    view.data = weight.storage()->data();
    view.dtype = blocked.dtype;
    view.out = 1;
    view.in = 4 * hidden;
    return view;
  }
  SCONCE_CHECK(weight.dim() == 2 && weight.size(0) == 4 * hidden && weight.size(1) == k, kInvalidArgument, kName,
               ": weight of size ", to_string(weight.sizes()), " is not [", 4 * hidden, ", ", k, "]");
  view.out = weight.stride(0);
  view.in = weight.stride(1);
  return view;
}

ConvolutionShape pointwise_shape(int64_t batch, int64_t pixels, int64_t in, int64_t out) {
  ConvolutionShape shape;
  shape.spatial = 1;
  shape.batch = batch;
  shape.in_channels = in;
  shape.out_channels = out;
  shape.input = shape.output = {1, 1, pixels};
  return shape;
}

struct Lstm {
  int64_t batch, hidden;
  const ChannelTiles& tiles;
  const void* weight;  // ordered, of the recurrence
  DType weight_dtype;
  const int64_t* state_at;  // rows of h
  const int64_t* gates_at;  // rows of a step's gates

  // gates[N, 4H] += h[N, H] * weight, for a range of blocks of output channels.
  void add_recurrence(const float* h, float* gates, int64_t first, int64_t last) const noexcept {
    const ChannelBlocks blocks(tiles, 4 * hidden);
    const ChannelRun run{0, hidden};
    ChannelTile tile{};
    tile.input = h;
    tile.runs = &run;
    tile.run_count = 1;
    tile.weight_dtype = weight_dtype;
    tile.accumulate = true;
    for (int64_t b = first; b < last; ++b) {
      const int vectors = blocks.vectors(b);
      const int64_t lane = blocks.first_vector(b) * tiles.width;
      tile.weight =
          static_cast<const std::byte*>(weight) + lane * hidden * static_cast<int64_t>(dtype_bytes(weight_dtype));
      tile.output = gates + lane;
      tile.lanes = std::min<int64_t>(vectors * tiles.width, 4 * hidden - lane);
      for (int64_t p = 0; p < batch;) {
        const int64_t some = std::min<int64_t>(batch - p, tiles.pixels[vectors]);
        tile.input_at = state_at + p;
        tile.output_at = gates_at + p;
        tiles.dense(vectors, some, tile);
        p += some;
      }
    }
  }

  void update(const float* gates, float* h, float* c, int64_t first, int64_t last) const noexcept {
    for (int64_t n = first; n < last; ++n) {
      const float* __restrict g = gates + n * 4 * hidden;
      float* __restrict hs = h + n * hidden;
      float* __restrict cs = c + n * hidden;
      for (int64_t i = 0; i < hidden; ++i) {
        const float cell = sigmoid(g[hidden + i]) * cs[i] + sigmoid(g[i]) * hyperbolic_tangent(g[2 * hidden + i]);
        cs[i] = cell;
        hs[i] = sigmoid(g[3 * hidden + i]) * hyperbolic_tangent(cell);
      }
    }
  }
};

// [1, N, H] or [N, H] to and from packed floats.
void read_state(const Tensor& state, float* to, int64_t batch, int64_t hidden) {
  const int64_t d = state.dim();
  for (int64_t n = 0; n < batch; ++n)
    gather_floats(
        state.dtype(),
        static_cast<const std::byte*>(state.data()) + n * state.stride(d - 2) * static_cast<int64_t>(state.itemsize()),
        state.stride(d - 1), to + n * hidden, hidden);
}

}  // namespace

namespace cpu {

// LSTM (mode 2), the only one that PyTorch runs this way. input [T, N, I]; weight0 [4H, I] and weight1 [4H, H], plain
// or opaque, gates in the order input, forget, cell, output; weight2 and weight3 [4H] biases, looked at only with
// has_biases; hx_ and cx_ [1, N, H]. Any strides; float32, float16 or bfloat16, sums and states float32.
// Returns output [T, N, H], hy and cy like hx_ and cx_, and what training would keep: nothing. `reverse` goes from the
// last step to the first. The layer is told about the network it belongs to (layers, directions, batch_first) but
// does not depend on it. kInvalidArgument for shapes that do not fit, kUnsupported for other modes and packed
// sequences.
std::array<Tensor, 4> mkldnn_rnn_layer(const Tensor& input, const Tensor& weight0, const Tensor& weight1,
                                       const Tensor& weight2, const Tensor& weight3, const Tensor& hx_,
                                       const Tensor& cx_, bool reverse, IntSpan batch_sizes, int64_t mode,
                                       int64_t hidden_size, int64_t, bool has_biases, bool, bool, bool train) {
  SCONCE_CHECK(mode == 2, kUnsupported, kName, ": mode ", mode, " is not supported, only 2 (LSTM) is");
  SCONCE_CHECK(batch_sizes.empty(), kUnsupported, kName, ": packed sequences are not supported");
  SCONCE_CHECK(input.dim() == 3 && hidden_size > 0, kInvalidArgument, kName, ": input of size ",
               to_string(input.sizes()), ", hidden size ", hidden_size);
  for (const Tensor* t :
       {&input, &weight0, &weight1, &hx_, &cx_, has_biases ? &weight2 : nullptr, has_biases ? &weight3 : nullptr})
    SCONCE_CHECK(!t || (is_floating(t->dtype()) && t->dtype() != DType::kFloat64), kUnsupported, kName,
                 ": not implemented for '", dtype_name(t->dtype()), "'");
  const int64_t steps = input.size(0), batch = input.size(1), inputs = input.size(2), hidden = hidden_size;
  for (const Tensor* state : {&hx_, &cx_}) {
    const int64_t d = state->dim();
    SCONCE_CHECK(
        d >= 2 && state->numel() == batch * hidden && state->size(d - 1) == hidden && state->size(d - 2) == batch,
        kInvalidArgument, kName, ": state of size ", to_string(state->sizes()), " is not [1, ", batch, ", ", hidden,
        "]");
  }
  const int64_t gates = 4 * hidden;
  if (has_biases)
    for (const Tensor* bias : {&weight2, &weight3})
      SCONCE_CHECK(bias->dim() == 1 && bias->size(0) == gates, kInvalidArgument, kName, ": bias of size ",
                   to_string(bias->sizes()), " is not [", gates, "]");
  BlockedWeight own0, own1;
  const WeightView input_weight = gate_weight(weight0, hidden, inputs, own0);
  const WeightView state_weight = gate_weight(weight1, hidden, hidden, own1);

  const int64_t output_sizes[3] = {steps, batch, hidden};
  std::array<Tensor, 4> results = {Tensor::empty(output_sizes, input.dtype()), Tensor::empty(hx_.sizes(), hx_.dtype()),
                                   Tensor::empty(cx_.sizes(), cx_.dtype()), Tensor()};
  const int64_t none = 0;
  if (train) results[3] = Tensor::empty({&none, 1}, DType::kUInt8);
  if (batch == 0) return results;

  // Scratch: states, bias, row offsets, gates of some steps.
  const int64_t chunk = std::clamp<int64_t>(kChunkBytes / (batch * gates * static_cast<int64_t>(sizeof(float))), 1,
                                            std::max<int64_t>(steps, 1));
  const int64_t state_elems = batch * hidden, step_elems = batch * gates;
  const int64_t elems = 2 * state_elems + 2 * gates + 4 * batch + chunk * step_elems;
  const Tensor scratch = Tensor::empty({&elems, 1}, DType::kFloat32);
  auto* state_at = scratch.data_as<int64_t>();
  int64_t* gates_at = state_at + batch;
  float* h = scratch.data_as<float>() + 4 * batch;
  float* c = h + state_elems;
  float* bias = c + state_elems;
  float* ahead = bias + 2 * gates;
  for (int64_t n = 0; n < batch; ++n) {
    state_at[n] = n * hidden;
    gates_at[n] = n * gates;
  }
  read_state(hx_, h, batch, hidden);
  read_state(cx_, c, batch, hidden);
  Tensor both;
  if (has_biases) {
    gather_floats(weight2.dtype(), weight2.data(), weight2.stride(0), bias, gates);
    gather_floats(weight3.dtype(), weight3.data(), weight3.stride(0), bias + gates, gates);
    for (int64_t i = 0; i < gates; ++i) bias[i] += bias[gates + i];
    const int64_t one = 1;
    both = Tensor::from_blob(bias, {&gates, 1}, {&one, 1}, DType::kFloat32);
  }

  WeightOrder order;
  order.tiles = &channel_tiles(gates);
  order.out = gates;
  order.in = hidden;
  order.taps = {0};
  const ConvolutionShape recurrence = pointwise_shape(1, batch, hidden, gates);
  order.set_recipe(recurrence, state_weight);
  const OrderedWeight ordered(recurrence, state_weight, order,
                              weight1.storage()->immutable() ? weight1.storage().get() : nullptr);
  const Lstm lstm{batch, hidden, *order.tiles, ordered.data(), ordered.dtype(), state_at, gates_at};
  const int64_t blocks = ChannelBlocks(*order.tiles, gates).count;
  const bool alone = kernel_threads() == 1 || step_elems * hidden < 2 * kWorkPerThread;

  ConvolutionOperands operands;
  operands.weight = input_weight;
  operands.bias = both.defined() ? &both : nullptr;
  if (weight0.storage()->immutable()) operands.constant = weight0.storage().get();
  const auto itemsize = static_cast<int64_t>(results[0].itemsize());
  for (int64_t done = 0; done < steps; done += chunk) {
    const int64_t some = std::min(chunk, steps - done);
    const int64_t first = reverse ? steps - done - some : done;
    const int64_t sizes[3] = {some, gates, batch}, strides[3] = {step_elems, 1, gates};
    Tensor projected = Tensor::from_blob(ahead, sizes, strides, DType::kFloat32);
    operands.input = {
        static_cast<const std::byte*>(input.data()) + first * input.stride(0) * static_cast<int64_t>(input.itemsize()),
        input.dtype(),
        input.stride(0),
        input.stride(2),
        {0, 0, input.stride(1)}};
    if (inputs > 0) {
      convolve(pointwise_shape(some, batch, inputs, gates), operands, projected);
    } else {
      for (int64_t i = 0; i < some * batch; ++i)
        for (int64_t j = 0; j < gates; ++j) ahead[i * gates + j] = has_biases ? bias[j] : 0;
    }
    for (int64_t i = 0; i < some; ++i) {
      const int64_t t = reverse ? some - 1 - i : i;
      float* of_step = ahead + t * step_elems;
      if (alone) {
        lstm.add_recurrence(h, of_step, 0, blocks);
        lstm.update(of_step, h, c, 0, batch);
      } else {
        parallel_for(0, blocks, 1, [&](int64_t b, int64_t e) noexcept { lstm.add_recurrence(h, of_step, b, e); });
        parallel_for(0, batch, 1, [&](int64_t b, int64_t e) noexcept { lstm.update(of_step, h, c, b, e); });
      }
      scatter_floats(h, results[0].dtype(),
                     static_cast<std::byte*>(results[0].data()) + (first + t) * state_elems * itemsize, 1, state_elems);
    }
  }
  scatter_floats(h, hx_.dtype(), results[1].data(), 1, state_elems);
  scatter_floats(c, cx_.dtype(), results[2].data(), 1, state_elems);
  return results;
}

}  // namespace cpu
}  // namespace sconce
