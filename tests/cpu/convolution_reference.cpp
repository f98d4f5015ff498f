#include "tests/cpu/convolution_reference.h"

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce::testing {
namespace {

int64_t offset_of(const Tensor& tensor, const Ints& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * tensor.stride(static_cast<int64_t>(d));
  return offset;
}

}  // namespace

double element(const Tensor& tensor, const Ints& index) {
  return dispatch_real(tensor.dtype(), "element", [&]<class T>() {
    return static_cast<double>(static_cast<ComputeType<T>>(tensor.data_as<T>()[offset_of(tensor, index)]));
  });
}

void set_element(Tensor& tensor, const Ints& index, double value) {
  dispatch_real(tensor.dtype(), "set_element", [&]<class T>() {
    tensor.data_as<T>()[offset_of(tensor, index)] = static_cast<T>(static_cast<ComputeType<T>>(value));
  });
}

void each_index(IntSpan sizes, const std::function<void(const Ints&)>& f) {
  Ints index(sizes.size(), 0);
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

Tensor sample(IntSpan sizes, DType dtype, uint64_t seed) {
  Tensor tensor = Tensor::empty(sizes, dtype);
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  each_index(sizes, [&](const Ints& index) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const double value = static_cast<double>(static_cast<int64_t>(state >> 33) % 33 - 16);
    set_element(tensor, index, is_floating(dtype) ? value / 8 : std::trunc(value / 4));
  });
  return tensor;
}

Tensor channels_last(const Tensor& tensor) {
  Ints sizes(tensor.sizes().begin(), tensor.sizes().end()), strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t d = i == 0 ? 1 : i + 1 == sizes.size() ? 0 : sizes.size() - i;
    strides[d] = stride;
    stride *= sizes[d];
  }
  Tensor result = Tensor::empty_strided(sizes, strides, tensor.dtype());
  each_index(sizes, [&](const Ints& index) { set_element(result, index, element(tensor, index)); });
  return result;
}

Tensor with_gaps(const Tensor& tensor) {
  Ints sizes(tensor.sizes().begin(), tensor.sizes().end()), strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  for (int64_t& stride : strides) stride *= 2;
  Tensor result = Tensor::empty_strided(sizes, strides, tensor.dtype());
  each_index(sizes, [&](const Ints& index) { set_element(result, index, element(tensor, index)); });
  return result;
}

Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::empty(tensor.sizes(), dtype);
  each_index(tensor.sizes(), [&](const Ints& index) { set_element(result, index, element(tensor, index)); });
  return result;
}

Reference reference_convolution(const Tensor& input, const Tensor& weight, const Tensor* bias,
                                const ReferenceConvolution& c) {
  const size_t dims = c.stride.size();
  const int64_t out_channels = c.transposed ? weight.size(1) * c.groups : weight.size(0);
  const int64_t in_group = input.size(1) / c.groups, out_group = out_channels / c.groups;
  Ints sizes{input.size(0), out_channels}, kernel;
  for (size_t d = 0; d < dims; ++d) {
    const auto at = static_cast<int64_t>(d) + 2;
    kernel.push_back(weight.size(at));
    const int64_t reach = c.dilation[d] * (kernel[d] - 1) + 1;
    sizes.push_back(c.transposed ? (input.size(at) - 1) * c.stride[d] - 2 * c.padding[d] + reach +
                                       (c.output_padding.empty() ? 0 : c.output_padding[d])
                                 : (input.size(at) + 2 * c.padding[d] - reach) / c.stride[d] + 1);
  }
  Reference r{Tensor::empty(sizes, DType::kFloat64), Tensor::empty(sizes, DType::kFloat64)};
  each_index(sizes, [&](const Ints& o) {
    const int64_t group = o[1] / out_group;
    double sum = bias ? element(*bias, {o[1]}) : 0, magnitude = std::abs(sum);
    each_index(kernel, [&](const Ints& k) {
      Ints i{o[0], 0}, w(2 + dims);
      for (size_t d = 0; d < dims; ++d) {
        int64_t at;
        if (c.transposed) {
          at = o[d + 2] + c.padding[d] - k[d] * c.dilation[d];
          if (at < 0 || at % c.stride[d] != 0) return;
          at /= c.stride[d];
        } else {
          at = o[d + 2] * c.stride[d] - c.padding[d] + k[d] * c.dilation[d];
        }
        if (at < 0 || at >= input.size(static_cast<int64_t>(d) + 2)) return;
        i.push_back(at);
        w[d + 2] = k[d];
      }
      for (int64_t channel = 0; channel < in_group; ++channel) {
        i[1] = group * in_group + channel;
        w[0] = c.transposed ? i[1] : o[1];
        w[1] = c.transposed ? o[1] - group * out_group : channel;
        const double product = element(input, i) * element(weight, w);
        sum += product;
        magnitude += std::abs(product);
      }
    });
    set_element(r.value, o, sum);
    set_element(r.magnitude, o, magnitude + 1e-30);
  });
  return r;
}

double worst_error(const Tensor& got, const Reference& want) {
  double worst = 0;
  SCONCE_CHECK(to_string(got.sizes()) == to_string(want.value.sizes()), kInternal, "sizes ", to_string(got.sizes()),
               " are not ", to_string(want.value.sizes()));
  each_index(got.sizes(), [&](const Ints& index) {
    const double error = std::abs(element(got, index) - element(want.value, index)) / element(want.magnitude, index);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  });
  return worst;
}

}  // namespace sconce::testing
