// Convolutions by cuDNN. Matches aten::convolution (torch 2.11, CUDA): one to three dimensions, groups, dilation,
// transposed; float32 without TF32, half types with sums in float32. Results are channels-last where ATen's are.
#include <cudnn.h>

#include <array>
#include <memory>
#include <mutex>

#include "src/cuda/copy.h"
#include "src/cuda/error.h"
#include "src/cuda/handle.h"
#include "src/cuda/ops.h"
#include "src/cuda/stream.h"
#include "src/device/lazy_library.h"
#include "src/ops/convolution_shape.h"
#include "src/ops/strided_loop.h"

SCONCE_LAZY_LIBRARY(cudnn);

namespace sconce::cuda {
namespace {

void check_dnn(cudnnStatus_t status, const char* expression) {
  SCONCE_CHECK(status != CUDNN_STATUS_NOT_SUPPORTED, kUnsupported, expression, ": cuDNN does not support it");
  SCONCE_CHECK(status == CUDNN_STATUS_SUCCESS, kDevice, expression, ": cuDNN error ", static_cast<int>(status));
}
#define SCONCE_DNN(expression) check_dnn((expression), #expression)

using TensorHandle = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;

// A handle works for one stream at a time: one per thread and device.
cudnnHandle_t handle_of(int device) {
  static thread_local std::array<Handle<cudnnHandle_t, cudnnDestroy>, 64> handles;
  auto& handle = handles[static_cast<size_t>(device) % handles.size()].value;
  if (!handle) SCONCE_DNN(cudnnCreate(&handle));
  SCONCE_DNN(cudnnSetStream(handle, current_stream()));
  return handle;
}

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDNN_DATA_FLOAT;
    case DType::kFloat64:
      return CUDNN_DATA_DOUBLE;
    case DType::kFloat16:
      return CUDNN_DATA_HALF;
    case DType::kBFloat16:
      return CUDNN_DATA_BFLOAT16;
    default:
      SCONCE_FAIL(kUnsupported, "convolution: not implemented for '", dtype_name(dtype), "' on CUDA");
  }
}

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
  SCONCE_DNN(cudnnSetTensorNdDescriptor(handle.value, type_of(t.dtype()), e.rank, e.sizes.data(), e.strides.data()));
}

// Of the last `rank - 2` dimensions.
std::array<int, 3> settings(const Dims3& dims, int count) {
  std::array<int, 3> result{};
  for (int i = 0; i < count; ++i)
    result[static_cast<size_t>(i)] = static_cast<int>(dims[static_cast<size_t>(3 - count + i)]);
  return result;
}

Tensor workspace_of(size_t bytes, Device device) {
  const auto count = static_cast<int64_t>(std::max<size_t>(bytes, 1));
  return Tensor::empty(IntSpan(&count, 1), DType::kUInt8, device);
}

}  // namespace

Tensor convolution(const Tensor& input, const Tensor& weight, const Tensor* bias, IntSpan stride, IntSpan padding,
                   IntSpan dilation, bool transposed, IntSpan output_padding, int64_t groups) {
  require_library(sconce_lazy_cudnn);
  const ConvolutionShape shape =
      convolution_shape({"convolution", stride, padding, dilation, output_padding, transposed, groups}, input.sizes(),
                        weight.sizes(), bias);
  SCONCE_CHECK(!input.is_cpu() && input.device() == weight.device() && input.dtype() == weight.dtype(),
               kInvalidArgument, "convolution: input ", describe(input), " and weight ", describe(weight),
               " must have one dtype and CUDA device");
  const DeviceScope scope(input.device());
  const bool channels_last = input.dim() > 3 && convolution_is_channels_last(shape, input, weight);
  Shape sizes;
  sizes.push_back(shape.batch);
  sizes.push_back(shape.out_channels);
  for (int i = 0; i < shape.spatial; ++i) sizes.push_back(shape.output[static_cast<size_t>(3 - shape.spatial + i)]);
  Tensor out = Tensor::empty_strided(sizes, packed_strides(sizes, channels_last), input.dtype(), input.device());
  if (out.numel() == 0) return out;
  if (input.numel() == 0) {
    const unsigned char zero[16] = {};
    fill(out, zero);
  } else {
    const Tensor x = packed(input, channels_last), w = packed(weight, channels_last);
    const cudnnHandle_t handle = handle_of(input.device().index);
    TensorHandle x_form, y_form;
    describe_tensor(x_form, x);
    describe_tensor(y_form, out);
    Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor> w_form;
    const Extents filter = extents_of(w);
    SCONCE_DNN(cudnnCreateFilterDescriptor(&w_form.value));
    SCONCE_DNN(cudnnSetFilterNdDescriptor(w_form.value, type_of(w.dtype()),
                                          channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, filter.rank,
                                          filter.sizes.data()));
    Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor> convolution;
    SCONCE_DNN(cudnnCreateConvolutionDescriptor(&convolution.value));
    const int spatial = filter.rank - 2;
    const auto pads = settings(shape.padding, spatial), steps = settings(shape.stride, spatial),
               gaps = settings(shape.dilation, spatial);
    const bool wide = input.dtype() == DType::kFloat64;
    SCONCE_DNN(cudnnSetConvolutionNdDescriptor(convolution.value, spatial, pads.data(), steps.data(), gaps.data(),
                                               CUDNN_CROSS_CORRELATION, wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
    SCONCE_DNN(cudnnSetConvolutionGroupCount(convolution.value, static_cast<int>(groups)));
    const bool half = input.dtype() == DType::kFloat16 || input.dtype() == DType::kBFloat16;
    SCONCE_DNN(cudnnSetConvolutionMathType(convolution.value, half ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    const void* one = wide ? static_cast<const void*>(&one64) : &one32;
    const void* zero = wide ? static_cast<const void*>(&zero64) : &zero32;
    int found = 0;
    if (transposed) {
      cudnnConvolutionBwdDataAlgoPerf_t best{};
      SCONCE_DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_form.value, x_form.value, convolution.value,
                                                             y_form.value, 1, &found, &best));
      SCONCE_CHECK(found > 0 && best.status == CUDNN_STATUS_SUCCESS, kUnsupported,
                   "convolution: cuDNN has no algorithm for ", describe(input), " and ", describe(weight));
      const Tensor workspace = workspace_of(best.memory, input.device());
      SCONCE_DNN(cudnnConvolutionBackwardData(handle, one, w_form.value, w.data(), x_form.value, x.data(),
                                              convolution.value, best.algo, workspace.data(), best.memory, zero,
                                              y_form.value, out.data()));
    } else {
      cudnnConvolutionFwdAlgoPerf_t best{};
      SCONCE_DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, x_form.value, w_form.value, convolution.value,
                                                        y_form.value, 1, &found, &best));
      SCONCE_CHECK(found > 0 && best.status == CUDNN_STATUS_SUCCESS, kUnsupported,
                   "convolution: cuDNN has no algorithm for ", describe(input), " and ", describe(weight));
      const Tensor workspace = workspace_of(best.memory, input.device());
      SCONCE_DNN(cudnnConvolutionForward(handle, one, x_form.value, x.data(), w_form.value, w.data(), convolution.value,
                                         best.algo, workspace.data(), best.memory, zero, y_form.value, out.data()));
    }
  }
  if (bias) {
    Tensor row = *bias;
    if (row.dtype() != out.dtype()) {
      row = Tensor::empty(bias->sizes(), out.dtype(), out.device());
      copy(*bias, row, false);
    }
    row = contiguous(row);
    Shape ones;
    for (int64_t d = 0; d < out.dim(); ++d) ones.push_back(d == 1 ? row.size(0) : 1);
    Shape strides;
    contiguous_strides(ones, (strides = ones).data());
    TensorHandle bias_form, y_form;
    describe_tensor(bias_form, row.as_strided(ones, strides, row.storage_offset()));
    describe_tensor(y_form, out);
    const bool wide = input.dtype() == DType::kFloat64;
    const double one64 = 1;
    const float one32 = 1;
    const void* one = wide ? static_cast<const void*>(&one64) : &one32;
    SCONCE_DNN(cudnnAddTensor(handle_of(input.device().index), one, bias_form.value, row.data(), one, y_form.value,
                              out.data()));
  }
  return out;
}

}  // namespace sconce::cuda
