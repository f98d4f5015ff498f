#include "src/cpu/convolution/direct/convolution_operands.h"

#include "sconce/check.h"
#include "src/cpu/onednn/mkldnn_weight.h"

namespace sconce {

ActivationView activation_view(const Tensor& tensor) {
  ActivationView view;
  view.data = tensor.data();
  view.dtype = tensor.dtype();
  view.batch = tensor.stride(0);
  view.channel = tensor.stride(1);
  const int64_t spatial = tensor.dim() - 2;
  for (int64_t d = 0; d < spatial; ++d) view.pixel[static_cast<size_t>(3 - spatial + d)] = tensor.stride(2 + d);
  return view;
}

WeightView weight_view(const ConvolutionShape& shape, const Tensor& weight) {
  WeightView view;
  view.data = weight.data();
  view.dtype = weight.dtype();
  if (shape.transposed) {
    view.in = weight.stride(0);
    view.out = weight.stride(1);
    view.group = shape.in_group() * view.in;
  } else {
    view.out = weight.stride(0);
    view.in = weight.stride(1);
    view.group = shape.out_group() * view.out;
  }
  for (int d = 0; d < shape.spatial; ++d)
    view.kernel[static_cast<size_t>(3 - shape.spatial + d)] = weight.stride(2 + d);
  return view;
}

ActivationView fusion_view(std::string_view name, const ConvolutionShape& shape, const Tensor& other) {
  ActivationView view;
  view.data = other.data();
  view.dtype = other.dtype();
  const int64_t rank = shape.spatial + 2;
  SCONCE_CHECK(other.dim() <= rank, kInvalidArgument, name, ": other of size ", to_string(other.sizes()),
               " has more dimensions than the output");
  for (int64_t d = 0; d < other.dim(); ++d) {
    const int64_t at = rank - other.dim() + d;  // dimension of the output
    const auto axis = static_cast<size_t>(3 - shape.spatial + at - 2);
    const int64_t size = at == 0 ? shape.batch : at == 1 ? shape.out_channels : shape.output[axis];
    SCONCE_CHECK(other.size(d) == size || other.size(d) == 1, kInvalidArgument, name, ": other of size ",
                 to_string(other.sizes()), " does not broadcast to the output's ", size, " at dimension ", at);
    const int64_t stride = other.size(d) == 1 ? 0 : other.stride(d);
    (at == 0 ? view.batch : at == 1 ? view.channel : view.pixel[axis]) = stride;
  }
  return view;
}

WeightView blocked_view(const ConvolutionShape& shape, const BlockedWeight& blocked, const void* data) {
  const Dims3& kernel = shape.kernel;
  const int64_t taps = shape.taps(), in = shape.in_group();
  return {&blocked,
          data,
          blocked.dtype,
          shape.out_group() * in * taps,
          in * taps,
          taps,
          {kernel[1] * kernel[2], kernel[2], 1}};
}

WeightView float_weight(const ConvolutionShape& shape, const WeightView& weight, Tensor& keep) {
  if (weight.dtype == DType::kFloat32 && !weight.blocked) return weight;
  const Dims3& kernel = shape.kernel;
  const int64_t taps = shape.taps(), in = shape.in_group(), out = shape.out_group();
  const int64_t elems = shape.groups * out * in * taps;
  keep = Tensor::empty({&elems, 1}, DType::kFloat32);
  auto* to = keep.data_as<float>();
  WeightView view = weight;
  view.blocked = nullptr;
  view.data = to;
  view.dtype = DType::kFloat32;
  if (weight.blocked) {
    weight.blocked->to_floats(weight.data, to);
    return view;
  }
  const int64_t last = (shape.groups - 1) * weight.group + (out - 1) * weight.out + (in - 1) * weight.in +
                       (kernel[0] - 1) * weight.kernel[0] + (kernel[1] - 1) * weight.kernel[1] +
                       (kernel[2] - 1) * weight.kernel[2];
  if (last + 1 == elems) {  // no gaps: the order of memory can stay
    gather_floats(weight.dtype, weight.data, 1, to, elems);
    return view;
  }
  const auto itemsize = static_cast<int64_t>(dtype_bytes(weight.dtype));
  view.group = out * in * taps;
  view.out = in * taps;
  view.in = taps;
  view.kernel = {kernel[1] * kernel[2], kernel[2], 1};
  for (int64_t g = 0; g < shape.groups; ++g)
    for (int64_t o = 0; o < out; ++o)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t d = 0; d < kernel[0]; ++d)
          for (int64_t h = 0; h < kernel[1]; ++h, to += kernel[2])
            gather_floats(
                weight.dtype,
                static_cast<const std::byte*>(weight.data) +
                    (g * weight.group + o * weight.out + i * weight.in + d * weight.kernel[0] + h * weight.kernel[1]) *
                        itemsize,
                weight.kernel[2], to, kernel[2]);
  return view;
}

}  // namespace sconce
