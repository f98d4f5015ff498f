// Convolutions by cuDNN. Match aten::convolution and convolution_backward (torch 2.11, CUDA): one to three dimensions,
// groups, dilation, transposed; float32 with TF32 where cuDNN likes it, as PyTorch has it by default, half types with
// sums in float32. Results are channels-last where ATen's are.
#include <array>
#include <memory>

#include "src/cuda/copy.h"
#include "src/cuda/cudnn_library.h"
#include "src/cuda/error.h"
#include "src/cuda/ops.h"
#include "src/cuda/plan_cache.h"
#include "src/cuda/scratch.h"
#include "src/cuda/stream.h"
#include "src/ops/convolution_shape.h"
#include "src/ops/strided_loop.h"

namespace sconce::cuda {
namespace {

// Row-major, or with channels last.
Shape packed_strides(IntSpan sizes, bool channels_last) {
  Shape strides(sizes);
  if (!channels_last) {
    contiguous_strides(sizes, strides.data());
    return strides;
  }
  const int rank = strides.rank();
  int64_t at = sizes[1];
  strides[1] = 1;
  for (int d = rank - 1; d >= 2; --d) {
    strides[d] = at;
    at *= sizes[static_cast<size_t>(d)];
  }
  strides[0] = at;
  return strides;
}

Tensor packed(const Tensor& t, bool channels_last) {
  const Shape strides = packed_strides(t.sizes(), channels_last);
  if (std::equal(t.strides().begin(), t.strides().end(), IntSpan(strides).begin())) return t;
  Tensor copied = Tensor::empty_strided(t.sizes(), strides, t.dtype(), t.device());
  copy(t, copied, false);
  return copied;
}

// cuDNN takes four dimensions at least.
struct Extents {
  int rank;
  std::array<int, 5> sizes, strides;
};
Extents extents_of(const Tensor& t) {
  Extents e{static_cast<int>(std::max<int64_t>(t.dim(), 4)), {}, {}};
  int at = 0;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (d == 2 && t.dim() == 3) {  // [N, C, L] is [N, C, 1, L]
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

// A value for each channel of a result.
void describe_bias(TensorHandle& handle, const Tensor& out) {
  std::array<int, 5> sizes{1, static_cast<int>(out.size(1)), 1, 1, 1}, strides{sizes[1], 1, 1, 1, 1};
  SCONCE_DNN(cudnnCreateTensorDescriptor(&handle.value));
  SCONCE_DNN(cudnnSetTensorNdDescriptor(handle.value, dnn_type_of("convolution", out.dtype()),
                                        static_cast<int>(std::max<int64_t>(out.dim(), 4)), sizes.data(),
                                        strides.data()));
}

// Of the last `rank - 2` dimensions.
std::array<int, 3> settings(const Dims3& dims, int count) {
  std::array<int, 3> result{};
  for (int i = 0; i < count; ++i)
    result[static_cast<size_t>(i)] = static_cast<int>(dims[static_cast<size_t>(3 - count + i)]);
  return result;
}

enum class Pass { kForward, kData, kFilter };

// Descriptions and the algorithm of a convolution: asking cuDNN for them takes longer than a small convolution.
struct Plan {
  TensorHandle x, y;
  Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor> w;
  Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor> convolution;
  cudnnConvolutionFwdAlgo_t forward{};
  cudnnConvolutionBwdDataAlgo_t data{};
  cudnnConvolutionBwdFilterAlgo_t filter{};
  size_t workspace = 0;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;  // of finding an algorithm
};

std::shared_ptr<Plan> make_plan(cudnnHandle_t handle, const ConvolutionShape& shape, const Tensor& x, const Tensor& w,
                                const Tensor& out, bool channels_last, Pass pass, int64_t groups) {
  auto plan = std::make_shared<Plan>();
  describe_tensor(plan->x, x);
  describe_tensor(plan->y, out);
  const Extents filter = extents_of(w);
  SCONCE_DNN(cudnnCreateFilterDescriptor(&plan->w.value));
  SCONCE_DNN(cudnnSetFilterNdDescriptor(plan->w.value, dnn_type_of("convolution", w.dtype()),
                                        channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, filter.rank,
                                        filter.sizes.data()));
  SCONCE_DNN(cudnnCreateConvolutionDescriptor(&plan->convolution.value));
  const cudnnConvolutionDescriptor_t convolution = plan->convolution.value;
  const int spatial = filter.rank - 2;
  const auto pads = settings(shape.padding, spatial), steps = settings(shape.stride, spatial),
             gaps = settings(shape.dilation, spatial);
  const bool wide = x.dtype() == DType::kFloat64;
  SCONCE_DNN(cudnnSetConvolutionNdDescriptor(convolution, spatial, pads.data(), steps.data(), gaps.data(),
                                             CUDNN_CROSS_CORRELATION, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  SCONCE_DNN(cudnnSetConvolutionGroupCount(convolution, static_cast<int>(groups)));
  const bool half = x.dtype() == DType::kFloat16 || x.dtype() == DType::kBFloat16;
  SCONCE_DNN(cudnnSetConvolutionMathType(convolution, half ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH));
  int found = 0;
  const auto take = [&](const auto& best, auto& algorithm) {
    plan->status = found > 0 ? best.status : CUDNN_STATUS_NOT_SUPPORTED;
    algorithm = best.algo;
    plan->workspace = best.memory;
  };
  if (pass == Pass::kData) {
    cudnnConvolutionBwdDataAlgoPerf_t best{};
    SCONCE_DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, plan->w.value, plan->x.value, convolution,
                                                           plan->y.value, 1, &found, &best));
    take(best, plan->data);
  } else if (pass == Pass::kFilter) {
    cudnnConvolutionBwdFilterAlgoPerf_t best{};
    SCONCE_DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, plan->x.value, plan->y.value, convolution,
                                                             plan->w.value, 1, &found, &best));
    take(best, plan->filter);
  } else {
    cudnnConvolutionFwdAlgoPerf_t best{};
    SCONCE_DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, plan->x.value, plan->w.value, convolution, plan->y.value,
                                                      1, &found, &best));
    take(best, plan->forward);
  }
  return plan;
}

// `out` [N, O, ...] is what a convolution makes of x; with kData, x is what it makes of `out`.
std::shared_ptr<const Plan> plan_for(cudnnHandle_t handle, const ConvolutionShape& shape, const Tensor& x,
                                     const Tensor& w, const Tensor& out, bool channels_last, Pass pass,
                                     int64_t groups) {
  PlanKey key;
  for (const int64_t value : {int64_t{x.device().index}, int64_t{static_cast<int8_t>(x.dtype())},
                              int64_t{channels_last}, int64_t{static_cast<int>(pass)}, groups, x.dim()})
    key.add(value);
  for (const IntSpan list : {x.sizes(), w.sizes(), out.sizes()}) key.add(list);
  for (const Dims3* dims : {&shape.padding, &shape.stride, &shape.dilation})
    for (const int64_t value : *dims) key.add(value);
  constexpr size_t kMost = 4096;  // shapes that keep changing must not fill the memory
  // Never destroyed: cuDNN may go before us when the process ends.
  static auto& plans = *new PlanCache<Plan>(kMost);
  return plans.get(key, [&] { return make_plan(handle, shape, x, w, out, channels_last, pass, groups); });
}

// The factors 1 and 0 of a dtype, as cuDNN takes them.
struct Factors {
  double one64 = 1, none64 = 0;
  float one32 = 1, none32 = 0;
  bool wide;
  explicit Factors(DType dtype) : wide(dtype == DType::kFloat64) {}
  const void* one() const { return wide ? static_cast<const void*>(&one64) : &one32; }
  const void* none() const { return wide ? static_cast<const void*>(&none64) : &none32; }
};

// kForward and kData make `out` of `in` and w; kFilter makes w, where a convolution takes `in` to `out`.
cudnnStatus_t apply(Pass pass, const ConvolutionShape& shape, const Tensor& in, const Tensor& w, const Tensor& out,
                    bool channels_last, int64_t groups) {
  const cudnnHandle_t handle = dnn_handle(in.device().index);
  const Factors factors(in.dtype());
  const auto plan = plan_for(handle, shape, in, w, out, channels_last, pass, groups);
  if (plan->status != CUDNN_STATUS_SUCCESS) return plan->status;
  const Tensor workspace = scratch(plan->workspace, in.device());
  const cudnnConvolutionDescriptor_t form = plan->convolution.value;
  switch (pass) {
    case Pass::kForward:
      return cudnnConvolutionForward(handle, factors.one(), plan->x.value, in.data(), plan->w.value, w.data(), form,
                                     plan->forward, workspace.data(), plan->workspace, factors.none(), plan->y.value,
                                     out.data());
    case Pass::kData:
      return cudnnConvolutionBackwardData(handle, factors.one(), plan->w.value, w.data(), plan->x.value, in.data(),
                                          form, plan->data, workspace.data(), plan->workspace, factors.none(),
                                          plan->y.value, out.data());
    case Pass::kFilter:
      break;
  }
  return cudnnConvolutionBackwardFilter(handle, factors.one(), plan->x.value, in.data(), plan->y.value, out.data(),
                                        form, plan->filter, workspace.data(), plan->workspace, factors.none(),
                                        plan->w.value, w.data());
}

// Row-major, in float32.
Tensor widened(const Tensor& t) {
  Tensor wide = Tensor::empty(t.sizes(), DType::kFloat32, t.device());
  copy(t, wide, false);
  return wide;
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

// The same whatever cuDNN lacks for half types and channels-last (gradients of depthwise convolutions): in float32
// then.
void run(Pass pass, const ConvolutionShape& shape, const Tensor& in, const Tensor& w, const Tensor& out,
         bool channels_last, int64_t groups) {
  const cudnnStatus_t status = apply(pass, shape, in, w, out, channels_last, groups);
  if (status == CUDNN_STATUS_SUCCESS) return;
  const bool refused = is_unsupported(status) || status / 1000 * 1000 == CUDNN_STATUS_BAD_PARAM;
  if (!refused || !(channels_last || is_half(in.dtype())))
    check_dnn(status, pass == Pass::kForward ? "convolution" : "gradient of a convolution");
  const Tensor wide[] = {widened(in), widened(w), widened(out)};
  SCONCE_DNN(apply(pass, shape, wide[0], wide[1], wide[2], false, groups));
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
  const bool wide = input.dtype() == DType::kFloat64;
  const bool channels_last = !wide && input.dim() > 3 && convolution_is_channels_last(shape, input, weight);
  Shape sizes;
  sizes.push_back(shape.batch);
  sizes.push_back(shape.out_channels);
  for (int i = 0; i < shape.spatial; ++i) sizes.push_back(shape.output[static_cast<size_t>(3 - shape.spatial + i)]);
  Tensor out = Tensor::empty_strided(sizes, packed_strides(sizes, channels_last), input.dtype(), input.device());
  if (out.numel() == 0) return out;
  const Factors factors(input.dtype());
  if (input.numel() == 0) {
    fill_zero(out);
  } else {
    run(transposed ? Pass::kData : Pass::kForward, shape, packed(input, channels_last), packed(weight, channels_last),
        out, channels_last, groups);
  }
  if (bias) {
    Tensor row = *bias;
    if (row.dtype() != out.dtype()) {
      row = Tensor::empty(bias->sizes(), out.dtype(), out.device());
      copy(*bias, row, false);
    }
    row = contiguous(row);
    TensorHandle row_form, form;
    describe_bias(row_form, out);
    describe_tensor(form, out);
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
  const bool channels_last =
      dtype != DType::kFloat64 && input.dim() > 3 && convolution_backend_is_channels_last(shape, input, weight);
  const auto empty = [&](IntSpan sizes) {
    return Tensor::empty_strided(sizes, packed_strides(sizes, channels_last), dtype, input.device());
  };
  std::array<Tensor, 3> results;
  const int64_t channels = shape.out_channels;
  if (output_mask[0]) results[0] = empty(input.sizes());
  if (output_mask[1]) results[1] = empty(weight.sizes());
  if (output_mask[2]) results[2] = Tensor::empty(IntSpan(&channels, 1), dtype, input.device());
  if (input.numel() == 0 || grad_output.numel() == 0 || weight.numel() == 0) {
    for (Tensor& result : results)
      if (result.defined()) fill_zero(result);
    return results;
  }
  const Tensor grad = packed(grad_output, channels_last), w = packed(weight, channels_last),
               x = packed(input, channels_last);
  // A transposed convolution is the gradient of a plain one from its output to its input.
  if (output_mask[0]) run(transposed ? Pass::kForward : Pass::kData, shape, grad, w, results[0], channels_last, groups);
  if (output_mask[1])
    run(Pass::kFilter, shape, transposed ? grad : x, results[1], transposed ? x : grad, channels_last, groups);
  if (output_mask[2]) {
    // cuDNN has no sum of bfloat16.
    const bool widen = dtype == DType::kBFloat16;
    const Tensor from = widen ? widened(grad) : grad, to = widen ? widened(results[2]) : results[2];
    TensorHandle of_grad, of_bias;
    describe_tensor(of_grad, from);
    describe_bias(of_bias, from);
    const Factors factors(dtype);
    SCONCE_DNN(cudnnConvolutionBackwardBias(dnn_handle(input.device().index), factors.one(), of_grad.value, from.data(),
                                            factors.none(), of_bias.value, to.data()));
    if (widen) copy(to, results[2], false);
  }
  return results;
}

}  // namespace sconce::cuda
