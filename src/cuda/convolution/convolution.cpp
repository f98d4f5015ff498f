// Convolutions by cuDNN graphs. Match aten::convolution and convolution_backward (torch 2.11, CUDA): one to three
// dimensions, groups, dilation, transposed; float32 where cuDNN may use TF32 (PyTorch's default), half types with
// float32 sums. Results are channels-last where ATen's are.
#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "src/cuda/convolution/convolution_sums.h"
#include "src/cuda/cudnn/dnn_lane.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/spatial/convolution_shape.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// Decides by the operands' strides, per number of dimensions, as at::native::cudnn_conv_suggest_memory_format does.
bool is_channels_last(const ConvolutionShape& shape, const Tensor& input, const Tensor& weight) {
  return input.dtype() != DType::kFloat64 && convolution_operands_are_channels_last(shape, input, weight);
}

Tensor packed(const Tensor& t, bool channels_last) {
  Shape strides(t.sizes());
  (channels_last ? channels_last_strides : contiguous_strides)(t.sizes(), strides.data());
  if (std::ranges::equal(t.strides(), IntSpan(strides))) return t;
  Tensor copied = empty_of_format(t.sizes(), t.dtype(), channels_last, t.device());
  copy(t, copied, false);
  return copied;
}

// Sizes and strides of at least the four dimensions that cuDNN requires.
struct Extents {
  int rank;
  std::array<int, 5> sizes, strides;
};
Extents extents_of(const Tensor& t) {
  Extents e{static_cast<int>(std::max<int64_t>(t.dim(), 4)), {}, {}};
  int at = 0;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == 2 && t.dim() == 3) {  // [N, C, L] becomes [N, C, 1, L]
      e.sizes[static_cast<size_t>(at)] = 1;
      e.strides[static_cast<size_t>(at++)] = static_cast<int>(t.stride(2) * t.size(2));
    }
    e.sizes[static_cast<size_t>(at)] = static_cast<int>(t.size(d));
    e.strides[static_cast<size_t>(at++)] = static_cast<int>(t.stride(d));
  }
  return e;
}

void describe_tensor(TensorHandle& handle, const Tensor& t) {
  const Extents e = extents_of(t);
  SCONCE_DNN(cudnnCreateTensorDescriptor(&handle.value));
  SCONCE_DNN(cudnnSetTensorNdDescriptor(handle.value, dnn_type_of("convolution", t.dtype()), e.rank, e.sizes.data(),
                                        e.strides.data()));
}

// One value per channel of a result.
void describe_bias(TensorHandle& handle, const Tensor& out) {
  std::array<int, 5> sizes{1, static_cast<int>(out.size(1)), 1, 1, 1}, strides{sizes[1], 1, 1, 1, 1};
  SCONCE_DNN(cudnnCreateTensorDescriptor(&handle.value));
  SCONCE_DNN(cudnnSetTensorNdDescriptor(handle.value, dnn_type_of("convolution", out.dtype()),
                                        static_cast<int>(std::max<int64_t>(out.dim(), 4)), sizes.data(),
                                        strides.data()));
}

using Pass = DnnGraph::Pass;

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()) % 16 == 0; }

DnnGraph::Id add_tensor(DnnGraph& graph, const Tensor& t) {
  const Extents e = extents_of(t);
  std::array<int64_t, 5> sizes{}, strides{};
  std::copy_n(e.sizes.begin(), e.rank, sizes.begin());
  std::copy_n(e.strides.begin(), e.rank, strides.begin());
  const auto rank = static_cast<size_t>(e.rank);
  return graph.tensor(dnn_type_of("convolution", t.dtype()), std::span(sizes).first(rank),
                      std::span(strides).first(rank), aligned(t) ? 16 : static_cast<int64_t>(t.itemsize()));
}

// Runs take x, w and y, in this order.
std::shared_ptr<DnnGraph> make_graph(cudnnHandle_t handle, Pass pass, const ConvolutionShape& shape, const Tensor& x,
                                     const Tensor& w, const Tensor& y) {
  auto graph = std::make_shared<DnnGraph>();
  const auto ids = std::array{add_tensor(*graph, x), add_tensor(*graph, w), add_tensor(*graph, y)};
  const size_t count = std::max<size_t>(static_cast<size_t>(shape.spatial), 2);
  const auto last = [&](const Dims3& dims) { return std::span(dims).last(count); };
  graph->convolution(pass,
                     {x.dtype() == DType::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, last(shape.padding),
                      last(shape.stride), last(shape.dilation)},
                     ids[0], ids[1], ids[2]);
  graph->plan(handle);
  return graph;
}

// Applies a pass of the convolution of `in` with w to `out`: kForward and kData write `out`, kFilter writes w.
cudnnStatus_t apply(Pass pass, const ConvolutionShape& shape, const Tensor& in, const Tensor& w, const Tensor& out,
                    bool channels_last) {
  const Tensor &x = pass == Pass::kData ? out : in, &y = pass == Pass::kData ? in : out;
  PlanKey key;
  key.add(static_cast<int8_t>(x.dtype()));
  key.add(int64_t{channels_last} | int64_t{static_cast<int>(pass)} << 1 | int64_t{aligned(x)} << 3 |
          int64_t{aligned(w)} << 4 | int64_t{aligned(y)} << 5 | x.dim() << 6);
  for (const IntSpan list : {x.sizes(), w.sizes(), y.sizes()}) key.add(list);
  for (const Dims3* dims : {&shape.padding, &shape.stride, &shape.dilation}) key.add(IntSpan(*dims));
  DnnLane& lane = dnn_lane(x.device().index);
  const std::shared_ptr<DnnGraph> graph =
      lane.graphs().get(key, [&] { return make_graph(lane.handle(), pass, shape, x, w, y); });
  keep_for_graph(graph);
  void* const memory[] = {x.data(), w.data(), y.data()};
  return run_graph(lane, *graph, x.device(), memory);
}

// The factor 1 in the type that cuDNN expects for a dtype.
struct Factors {
  double one64 = 1;
  float one32 = 1;
  bool wide;
  explicit Factors(DType dtype) : wide(dtype == DType::kFloat64) {}
  const void* one() const { return wide ? static_cast<const void*>(&one64) : &one32; }
};

// A row-major float32 copy.
Tensor widened(const Tensor& t) {
  Tensor wide = Tensor::empty(t.sizes(), DType::kFloat32, t.device());
  copy(t, wide, false);
  return wide;
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// Runs a pass, in float32 if cuDNN lacks it for half types and channels-last (gradients of depthwise convolutions).
void run(Pass pass, const ConvolutionShape& shape, const Tensor& in, const Tensor& w, const Tensor& out,
         bool channels_last) {
  const cudnnStatus_t status = apply(pass, shape, in, w, out, channels_last);
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool refused = is_unsupported(status) || status / 1000 * 1000 == CUDNN_STATUS_BAD_PARAM;
  if (!refused || !(channels_last || is_half(in.dtype())))
    check_dnn(status, pass == Pass::kForward ? "convolution" : "gradient of a convolution");
  const Tensor wide[] = {widened(in), widened(w), widened(out)};
  SCONCE_DNN(apply(pass, shape, wide[0], wide[1], wide[2], false));
  Tensor result = pass == Pass::kFilter ? w : out;
  copy(wide[pass == Pass::kFilter ? 1 : 2], result, false);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor* bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups) {
  require_dnn();
  const ConvolutionShape shape =
      convolution_shape({"convolution", stride, padding, dilation, output_padding, transposed, groups}, input.sizes(),
                        weight.sizes(), bias);
  SCONCE_CHECK(!input.is_cpu() && input.device() == weight.device() && input.dtype() == weight.dtype(),
               kInvalidArgument, "convolution: input ", describe(input), " and weight ", describe(weight),
               " must have one dtype and CUDA device");
  const DeviceScope scope(input.device());
  const bool channels_last = is_channels_last(shape, input, weight);
  Tensor out = convolution_output(shape, input.dtype(), channels_last, input.device());
  if (out.numel() == 0) return out;
  const Factors factors(input.dtype());
  if (input.numel() == 0) {
    fill_zero(out);
  } else {
    run(transposed ? Pass::kData : Pass::kForward, shape, packed(input, channels_last), packed(weight, channels_last),
        out, channels_last);
  }
  if (bias) {
    const Tensor row = contiguous(converted(*bias, out.dtype()));
    // cuDNN adds biases to volumes in row-major order only. So we merge depth and height, which are contiguous in both
    // orders.
    const bool volume = out.dim() == 5;
    const int64_t flat_sizes[] = {out.size(0), out.size(1), volume ? out.size(2) * out.size(3) : 0,
                                  out.size(out.dim() - 1)};
    const int64_t flat_strides[] = {out.stride(0), out.stride(1), volume ? out.stride(3) : 0,
                                    out.stride(out.dim() - 1)};
    const Tensor flat = volume ? out.as_strided(flat_sizes, flat_strides, out.storage_offset()) : out;
    TensorHandle row_form, form;
    describe_bias(row_form, flat);
    describe_tensor(form, flat);
    SCONCE_DNN(cudnnAddTensor(dnn_handle(input.device().index), factors.one(), row_form.value, row.data(),
                              factors.one(), form.value, out.data()));
  }
  return out;
}

std::array<Tensor, 3> convolution_backward(const Tensor& grad_output, const Tensor& input, const Tensor& weight,
                                           std::optional<IntSpan>, IntSpan stride, IntSpan padding, IntSpan dilation,
                                           bool transposed, IntSpan output_padding, int64_t groups,
                                           std::span<const int32_t> output_mask) {
  require_dnn();
  const char* const name = "convolution_backward";
  const ConvolutionShape shape = convolution_shape(
      {name, stride, padding, dilation, output_padding, transposed, groups}, input.sizes(), weight.sizes(), nullptr);
  SCONCE_CHECK(output_mask.size() == 3, kInvalidArgument, name, ": output_mask must hold 3 flags");
  bool fits = grad_output.dim() == input.dim() && grad_output.size(0) == shape.batch &&
              grad_output.size(1) == shape.out_channels;
  for (int i = 0; fits && i < shape.spatial; ++i)
    fits = grad_output.size(2 + i) == shape.output[static_cast<size_t>(3 - shape.spatial + i)];
  for (const Tensor* t : {&weight, &grad_output})
    fits &= t->dtype() == input.dtype() && t->device() == input.device() && !t->is_cpu();
  SCONCE_CHECK(fits, kInvalidArgument, name, ": input ", describe(input), ", weight ", describe(weight),
               " and grad_output ", describe(grad_output), " do not fit");
  const DeviceScope scope(input.device());
  const DType dtype = input.dtype();
  const bool channels_last = is_channels_last(shape, input, weight);
  std::array<Tensor, 3> results;
  const int64_t channels = shape.out_channels;
  if (output_mask[0]) results[0] = empty_of_format(input.sizes(), dtype, channels_last, input.device());
  if (output_mask[1]) results[1] = empty_of_format(weight.sizes(), dtype, channels_last, input.device());
  if (output_mask[2]) results[2] = Tensor::empty(IntSpan(&channels, 1), dtype, input.device());
  if (input.numel() == 0 || grad_output.numel() == 0 || weight.numel() == 0) {
    for (Tensor& result : results)
      if (result.defined()) fill_zero(result);
    return results;
  }
  const Tensor grad = packed(grad_output, channels_last), w = packed(weight, channels_last),
               x = packed(input, channels_last);
  // A transposed convolution is the gradient of a plain one with respect to its input.
  if (output_mask[0]) run(transposed ? Pass::kForward : Pass::kData, shape, grad, w, results[0], channels_last);
  if (output_mask[1])
    run(Pass::kFilter, shape, transposed ? grad : x, results[1], transposed ? x : grad, channels_last);
  if (output_mask[2]) {
    const ChannelSums sums{
        grad.data(),   results[2].data(),      shape.batch, channels, grad.numel() / shape.batch / channels,
        channels_last, static_cast<int>(dtype)};
    check_launch(name,
                 launch_channel_sums(sums, scratch(channel_sum_bytes(sums), input.device()).data(), current_stream()),
                 dtype);
  }
  return results;
}

}  // namespace sconce::cuda
