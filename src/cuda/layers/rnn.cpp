// Recurrent networks by cuDNN, and the LSTM cell. Match aten::_cudnn_rnn and _thnn_fused_lstm_cell (torch 2.15, CUDA):
// float16, bfloat16, float32 (with TF32, PyTorch's default), float64. Nonzero dropout in training is refused.
#include <algorithm>
#include <limits>
#include <vector>

#include "src/cuda/cudnn/dnn_lane.h"
#include "src/cuda/layers/rnn_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/plan_cache.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

using RecurrentHandle = Handle<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>;
using DataHandle = Handle<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor>;

// A network's descriptor in cuDNN, and the offsets of the weights in its weight buffer.
struct Network {
  struct Place {
    size_t weight;  // index in the list of weights
    int64_t first, count;
    size_t offset;  // bytes
  };
  RecurrentHandle network;
  Handle<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor> dropout;
  size_t weight_bytes = 0;
  std::vector<Place> places;
};

struct Settings {
  DType dtype;
  int64_t mode, input, hidden, projection, layers, per_layer;
  bool bidirectional, packed;
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t gates() const { return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1; }
  int64_t result() const { return projection > 0 ? projection : hidden; }
  bool biases() const { return per_layer >= 4; }
};

int narrow_int(const char* what, int64_t value) {
  SCONCE_CHECK(value >= 0 && value <= std::numeric_limits<int>::max(), kInvalidArgument, "_cudnn_rnn: ", what, " ",
               value);
  return static_cast<int>(value);
}

// Finds where the matrix and bias of each gate lie; cuDNN answers with addresses in a buffer.
void add_places(cudnnHandle_t handle, const Settings& settings, Network& network) {
  TensorHandle matrix, bias;
  SCONCE_DNN(cudnnCreateTensorDescriptor(&matrix.value));
  SCONCE_DNN(cudnnCreateTensorDescriptor(&bias.value));
  char* const base = reinterpret_cast<char*>(uintptr_t{4096});
  const auto add = [&](int layer, int part, size_t weight, size_t bias_weight, bool has_bias, int64_t rows,
                       int64_t columns, int64_t gate) {
    void *matrix_at = nullptr, *bias_at = nullptr;
    SCONCE_DNN(cudnnGetRNNWeightParams(handle, network.network.value, layer, network.weight_bytes, base, part,
                                       matrix.value, &matrix_at, bias.value, &bias_at));
    const auto offset = [&](void* at) { return static_cast<size_t>(static_cast<char*>(at) - base); };
    SCONCE_CHECK(matrix_at, kInternal, "cuDNN has no matrix ", part, " of layer ", layer);
    network.places.push_back({weight, gate * rows * columns, rows * columns, offset(matrix_at)});
    if (has_bias && bias_at) network.places.push_back({bias_weight, gate * rows, rows, offset(bias_at)});
  };
  const int64_t gates = settings.gates();
  for (int64_t layer = 0; layer < settings.layers * settings.directions(); ++layer) {
    const auto first = static_cast<size_t>(layer * settings.per_layer);
    const bool first_layer = layer < settings.directions();
    const int64_t input = first_layer ? settings.input : settings.result() * settings.directions();
    for (int64_t gate = 0; gate < gates; ++gate) {
      const int pseudo = static_cast<int>(layer);
      add(pseudo, static_cast<int>(gate), first, first + 2, settings.biases(), settings.hidden, input, gate);
      add(pseudo, static_cast<int>(gates + gate), first + 1, first + 3, settings.biases(), settings.hidden,
          settings.result(), gate);
    }
    if (settings.projection > 0)
      add(static_cast<int>(layer), static_cast<int>(2 * gates), first + static_cast<size_t>(settings.per_layer) - 1, 0,
          false, settings.projection, settings.hidden, 0);
  }
  // Joins neighbours that are adjacent in both buffers into one copy.
  const size_t item = dtype_bytes(settings.dtype);
  std::sort(network.places.begin(), network.places.end(),
            [](const Network::Place& a, const Network::Place& b) { return a.offset < b.offset; });
  std::vector<Network::Place> joined;
  for (const Network::Place& place : network.places) {
    if (!joined.empty()) {
      Network::Place& last = joined.back();
      if (last.weight == place.weight && last.first + last.count == place.first &&
          last.offset + static_cast<size_t>(last.count) * item == place.offset) {
        last.count += place.count;
        continue;
      }
    }
    joined.push_back(place);
  }
  network.places = std::move(joined);
}

std::shared_ptr<Network> make_network(cudnnHandle_t handle, const Settings& settings) {
  auto made = std::make_shared<Network>();
  const DType dtype = settings.dtype;
  SCONCE_DNN(cudnnCreateDropoutDescriptor(&made->dropout.value));
  SCONCE_DNN(cudnnSetDropoutDescriptor(made->dropout.value, handle, 0, nullptr, 0, 0));
  SCONCE_DNN(cudnnCreateRNNDescriptor(&made->network.value));
  const bool half = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
  SCONCE_DNN(cudnnSetRNNDescriptor_v8(
      made->network.value, CUDNN_RNN_ALGO_STANDARD, static_cast<cudnnRNNMode_t>(settings.mode),
      settings.biases() ? CUDNN_RNN_DOUBLE_BIAS : CUDNN_RNN_NO_BIAS,
      settings.bidirectional ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
      dnn_type_of("_cudnn_rnn", dtype), dtype == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      half ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH, narrow_int("input size", settings.input),
      narrow_int("hidden size", settings.hidden), narrow_int("projection", settings.result()),
      narrow_int("number of layers", settings.layers), made->dropout.value,
      settings.packed ? CUDNN_RNN_PADDED_IO_DISABLED : CUDNN_RNN_PADDED_IO_ENABLED));
  SCONCE_DNN(cudnnGetRNNWeightSpaceSize(handle, made->network.value, &made->weight_bytes));
  add_places(handle, settings, *made);
  return made;
}

std::shared_ptr<Network> network_for(int device, const Settings& settings) {
  const cudnnHandle_t handle = dnn_handle(device);
  PlanKey key;
  for (const int64_t value : {int64_t{device}, int64_t{static_cast<int8_t>(settings.dtype)}, settings.mode,
                              settings.input, settings.hidden, settings.projection, settings.layers, settings.per_layer,
                              int64_t{settings.bidirectional}, int64_t{settings.packed}})
    key.add(value);
  constexpr size_t kMost = 256;
  // Never destroyed, because cuDNN may be unloaded before us when the process ends.
  static auto& networks = *new PlanCache<Network>(kMost);
  return networks.get(key, [&] { return make_network(handle, settings); });
}

// Copies the weights of all layers into cuDNN's order.
Tensor pack_weights(const Network& network, const TensorList& weights, DType dtype, Device device) {
  const int64_t item = static_cast<int64_t>(dtype_bytes(dtype));
  const int64_t count = (static_cast<int64_t>(network.weight_bytes) + item - 1) / item;
  Tensor packed = Tensor::empty(IntSpan(&count, 1), dtype, device);
  std::vector<Tensor> kept(weights.size());
  for (const Network::Place& place : network.places) {
    Tensor& from = kept[place.weight];
    if (!from.defined()) from = contiguous(weights[place.weight]);
    SCONCE_CHECK(place.first + place.count <= from.numel(), kInvalidArgument, "_cudnn_rnn: weight ", place.weight, " ",
                 describe(from), " is too small");
    SCONCE_CUDA(cudaMemcpyAsync(static_cast<char*>(packed.data()) + place.offset,
                                static_cast<char*>(from.data()) + place.first * item,
                                static_cast<size_t>(place.count * item), cudaMemcpyDeviceToDevice, current_stream()));
  }
  return packed;
}

void describe_data(DataHandle& handle, const Settings& settings, bool packed, int steps, int64_t width,
                   const std::vector<int>& lengths) {
  SCONCE_DNN(cudnnCreateRNNDataDescriptor(&handle.value));
  SCONCE_DNN(cudnnSetRNNDataDescriptor(
      handle.value, dnn_type_of("_cudnn_rnn", settings.dtype),
      packed ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, steps,
      narrow_int("batch", static_cast<int64_t>(lengths.size())), narrow_int("width", width), lengths.data(), nullptr));
}

// Describes a packed [layers, batch, width].
void describe_state(TensorHandle& handle, DType dtype, int64_t layers, int64_t batch, int64_t width) {
  const int sizes[] = {narrow_int("layers", layers), narrow_int("batch", batch), narrow_int("width", width)};
  const int strides[] = {sizes[1] * sizes[2], sizes[2], 1};
  SCONCE_DNN(cudnnCreateTensorDescriptor(&handle.value));
  SCONCE_DNN(cudnnSetTensorNdDescriptor(handle.value, dnn_type_of("_cudnn_rnn", dtype), 3, sizes, strides));
}

void check_sizes(const char* what, const Tensor& t, std::initializer_list<int64_t> sizes) {
  SCONCE_CHECK(std::equal(sizes.begin(), sizes.end(), t.sizes().begin(), t.sizes().end()), kInvalidArgument,
               "_cudnn_rnn: Expected ", what, " size ", to_string(IntSpan(sizes.begin(), sizes.size())), ", got ",
               to_string(t.sizes()));
}

}  // namespace

std::array<Tensor, 5> _cudnn_rnn(const Tensor& input, TensorList weight, int64_t weight_stride0,
                                 const Tensor* weight_buf, const Tensor& hx, const Tensor* cx, int64_t mode,
                                 int64_t hidden_size, int64_t proj_size, int64_t num_layers, bool batch_first,
                                 double dropout, bool train, bool bidirectional, IntSpan batch_sizes, const Tensor*) {
  require_dnn();
  const char* const name = "_cudnn_rnn";
  SCONCE_CHECK(mode >= CUDNN_RNN_RELU && mode <= CUDNN_GRU, kInvalidArgument, name, ": mode ", mode);
  const bool lstm = mode == CUDNN_LSTM, packed = !batch_sizes.empty();
  SCONCE_CHECK(lstm == (cx != nullptr), kInvalidArgument, name,
               lstm ? ": an LSTM needs cx, the state of its cells" : ": rnn: illegal defined cx for non-LSTM RNN");
  SCONCE_CHECK(dropout == 0 || !train, kUnsupported, name, ": dropout in training is not supported");
  SCONCE_CHECK(input.dim() == (packed ? 2 : 3), kInvalidArgument, name, ": input ", describe(input));
  const int64_t projection = proj_size > 0 ? proj_size : 0;
  SCONCE_CHECK(weight_stride0 == (projection ? 3 : 2) || weight_stride0 == (projection ? 5 : 4), kInvalidArgument, name,
               ": ", weight_stride0, " weights a layer");
  const Settings settings{input.dtype(),  mode,          input.size(input.dim() - 1),
                          hidden_size,    projection,    num_layers,
                          weight_stride0, bidirectional, packed};
  SCONCE_CHECK(static_cast<int64_t>(weight.size()) == num_layers * settings.directions() * weight_stride0,
               kInvalidArgument, name, ": ", weight.size(), " weights for ", num_layers, " layers");
  for (size_t i = 0; i < weight.size(); ++i)
    SCONCE_CHECK(weight[i].dtype() == input.dtype() && weight[i].device() == input.device(), kInvalidArgument, name,
                 ": weight ", i, " ", describe(weight[i]), " does not go with input ", describe(input));
  const DeviceScope scope(input.device());
  const DType dtype = input.dtype();
  const Device device = input.device();

  // cuDNN wants steps in the first dimension.
  const int64_t turn[] = {1, 0, 2};
  const bool turned = batch_first && !packed;
  const Tensor x = contiguous(turned ? permute(input, turn) : input);
  const int64_t steps = packed ? static_cast<int64_t>(batch_sizes.size()) : x.size(0);
  const int64_t batch = packed ? batch_sizes[0] : x.size(1);
  SCONCE_CHECK(steps > 0 && batch > 0, kInvalidArgument, name, ": input ", describe(input), " without elements");
  std::vector<int> lengths(static_cast<size_t>(batch), narrow_int("steps", steps));
  if (packed) {
    int64_t rows = 0;
    for (size_t t = 0; t < batch_sizes.size(); ++t) {
      SCONCE_CHECK(batch_sizes[t] > 0 && batch_sizes[t] <= batch && (t == 0 || batch_sizes[t] <= batch_sizes[t - 1]),
                   kInvalidArgument, name, ": batch sizes ", to_string(batch_sizes), " do not decrease");
      rows += batch_sizes[t];
      for (int64_t b = batch_sizes[t]; t > 0 && b < batch_sizes[t - 1]; ++b)
        lengths[static_cast<size_t>(b)] = static_cast<int>(t);
    }
    SCONCE_CHECK(rows == x.size(0), kInvalidArgument, name, ": ", rows, " elements in batches, input ",
                 describe(input));
  }
  const int64_t directions = settings.directions(), result = settings.result(), layers = num_layers * directions;
  check_sizes("hidden", hx, {layers, batch, result});
  if (cx) check_sizes("cell", *cx, {layers, batch, hidden_size});
  SCONCE_CHECK(hx.dtype() == dtype && (!cx || cx->dtype() == dtype), kInvalidArgument, name,
               ": rnn: hx is not the same dtype as input");

  const std::shared_ptr<Network> network = network_for(device.index, settings);
  const cudnnHandle_t handle = dnn_handle(device.index);
  Tensor weights;
  if (weight_buf) {
    SCONCE_CHECK(weight_buf->dtype() == dtype && weight_buf->bytes() >= network->weight_bytes, kInvalidArgument, name,
                 ": weight_buf ", describe(*weight_buf), " has less than ", network->weight_bytes, " bytes");
    weights = contiguous(*weight_buf);
  } else {
    weights = pack_weights(*network, weight, dtype, device);
  }
  DataHandle x_form, y_form;
  TensorHandle h_form, c_form;
  const int most = narrow_int("steps", steps);
  describe_data(x_form, settings, packed, most, settings.input, lengths);
  describe_data(y_form, settings, packed, most, result * directions, lengths);
  describe_state(h_form, dtype, layers, batch, result);
  describe_state(c_form, dtype, layers, batch, hidden_size);

  const int64_t wide = result * directions;
  Shape out_sizes;
  if (packed)
    out_sizes.push_back(x.size(0));
  else
    for (const int64_t size : {steps, batch}) out_sizes.push_back(size);
  out_sizes.push_back(wide);
  const int64_t h_sizes[] = {layers, batch, result}, c_sizes[] = {layers, batch, hidden_size}, none = 0;
  Tensor y = Tensor::empty(out_sizes, dtype, device), hy = Tensor::empty(h_sizes, dtype, device);
  Tensor cy = lstm ? Tensor::empty(c_sizes, dtype, device) : Tensor::empty(IntSpan(&none, 1), dtype, device);
  const Tensor h = contiguous(hx), c = cx ? contiguous(*cx) : Tensor{};
  const cudnnForwardMode_t forward = train ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
  size_t work_bytes = 0, reserve_bytes = 0;
  SCONCE_DNN(
      cudnnGetRNNTempSpaceSizes(handle, network->network.value, forward, x_form.value, &work_bytes, &reserve_bytes));
  const Tensor work = scratch(work_bytes, device);
  const auto kept = static_cast<int64_t>(train ? reserve_bytes : 0);
  Tensor reserve = Tensor::empty(IntSpan(&kept, 1), DType::kUInt8, device);
  SCONCE_DNN(cudnnRNNForward(handle, network->network.value, forward, nullptr, x_form.value, x.data(), y_form.value,
                             y.data(), h_form.value, h.data(), hy.data(), c_form.value, cx ? c.data() : nullptr,
                             lstm ? cy.data() : nullptr, network->weight_bytes, weights.data(), work_bytes, work.data(),
                             train ? reserve_bytes : 0, train ? reserve.data() : nullptr));
  return {turned ? permute(y, turn) : y, hy, cy, reserve, weights};
}

std::array<Tensor, 3> _thnn_fused_lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                            const Tensor* input_bias, const Tensor* hidden_bias) {
  const char* const name = "_thnn_fused_lstm_cell";
  SCONCE_CHECK(cx.dim() == 2 && input_gates.dim() == 2 && input_gates.size(0) == cx.size(0) &&
                   input_gates.size(1) == 4 * cx.size(1) &&
                   std::equal(input_gates.sizes().begin(), input_gates.sizes().end(), hidden_gates.sizes().begin(),
                              hidden_gates.sizes().end()),
               kInvalidArgument, name, ": gates ", describe(input_gates), " and ", describe(hidden_gates),
               " do not fit the state ", describe(cx));
  SCONCE_CHECK((input_bias == nullptr) == (hidden_bias == nullptr), kInvalidArgument, name,
               ": expected both biases or none");
  for (const Tensor* other : {&hidden_gates, &cx, input_bias, hidden_bias})
    SCONCE_CHECK(!other || other->dtype() == input_gates.dtype(), kInvalidArgument, name, ": expected ",
                 dtype_name(input_gates.dtype()), ", got ", describe(*other));
  for (const Tensor* bias : {input_bias, hidden_bias})
    SCONCE_CHECK(!bias || bias->numel() == input_gates.size(1), kInvalidArgument, name, ": bias ", describe(*bias));
  dnn_type_of(name, input_gates.dtype());  // rejects other dtypes than these four
  const DeviceScope scope(input_gates.device());
  const Tensor from_input = contiguous(input_gates), from_hidden = contiguous(hidden_gates), state = contiguous(cx);
  const Tensor one = input_bias ? contiguous(*input_bias) : Tensor{},
               two = hidden_bias ? contiguous(*hidden_bias) : Tensor{};
  Tensor hy = Tensor::empty(cx.sizes(), cx.dtype(), cx.device()),
         cy = Tensor::empty(cx.sizes(), cx.dtype(), cx.device());
  Tensor kept = Tensor::empty(input_gates.sizes(), cx.dtype(), cx.device());
  launch_lstm_cell({from_input.data(), from_hidden.data(), one.data(), two.data(), state.data(), hy.data(), cy.data(),
                    kept.data(), cx.size(0), cx.size(1)},
                   static_cast<int>(cx.dtype()), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return {hy, cy, kept};
}

}  // namespace sconce::cuda
