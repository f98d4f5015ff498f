#include "src/tensor/spatial/convolution_shape.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce {
namespace {

// One value for each dimension, from a list of that many or of one.
void expand(const ConvolutionArguments& a, IntSpan values, std::string_view what, int dims, int64_t least,
            std::string_view complaint, Dims3& out) {
  SCONCE_CHECK(values.size() == 1 || values.size() == static_cast<size_t>(dims), kInvalidArgument, a.name,
               ": expected ", what, " to be a single integer value or a list of ", dims,
               " values to match the convolution dimensions, but got ", what, "=", to_string(values));
  for (int d = 0; d < dims; ++d) {
    const int64_t value = values[values.size() == 1 ? 0 : static_cast<size_t>(d)];
    SCONCE_CHECK(value >= least, kInvalidArgument, a.name, ": ", complaint, " is not supported: ", value);
    out[static_cast<size_t>(3 - dims + d)] = value;
  }
}

// a * b + c, checked for overflow: shapes come from packages, which are not trusted.
int64_t multiply_add(const ConvolutionArguments& a, int64_t x, int64_t y, int64_t z) {
  int64_t r;
  const bool overflow = __builtin_mul_overflow(x, y, &r) || __builtin_add_overflow(r, z, &r);
  SCONCE_CHECK(!overflow, kInvalidArgument, a.name, ": the size of the output overflows");
  return r;
}

}  // namespace

ConvolutionShape convolution_shape(const ConvolutionArguments& a, IntSpan input, IntSpan weight, const Tensor* bias) {
  const int rank = static_cast<int>(weight.size());
  SCONCE_CHECK(rank >= 3, kInvalidArgument, a.name, ": weight should have at least three dimensions, but is ",
               to_string(weight));
  SCONCE_CHECK(rank <= 5, kInvalidArgument, a.name, ": convolution over ", rank - 2, " dimensions is not supported");
  SCONCE_CHECK(a.groups > 0, kInvalidArgument, a.name, ": non-positive groups is not supported: ", a.groups);

  ConvolutionShape s;
  s.spatial = rank - 2;
  s.groups = a.groups;
  s.transposed = a.transposed;
  expand(a, a.stride, "stride", s.spatial, 1, "non-positive stride", s.stride);
  expand(a, a.padding, "padding", s.spatial, 0, "negative padding", s.padding);
  expand(a, a.dilation, "dilation", s.spatial, 1, "non-positive dilation", s.dilation);
  if (!a.output_padding.empty())
    expand(a, a.output_padding, "output_padding", s.spatial, 0, "negative output_padding", s.output_padding);
  if (!s.transposed) s.output_padding = {0, 0, 0};

  SCONCE_CHECK(static_cast<int>(input.size()) == rank, kInvalidArgument, a.name, ": expected ", rank,
               "-dimensional input for ", rank, "-dimensional weight ", to_string(weight), ", but got input of size ",
               to_string(input));
  SCONCE_CHECK(weight[0] >= s.groups, kInvalidArgument, a.name, ": given groups=", s.groups,
               ", expected weight to be at least ", s.groups, " at dimension 0, but got weight of size ",
               to_string(weight));
  SCONCE_CHECK(weight[0] % s.groups == 0, kInvalidArgument, a.name, ": given groups=", s.groups,
               ", expected weight to be divisible by ", s.groups, " at dimension 0, but got weight of size ",
               to_string(weight));
  s.batch = input[0];
  s.in_channels = input[1];
  const int64_t wanted = s.transposed ? weight[0] : multiply_add(a, weight[1], s.groups, 0);
  SCONCE_CHECK(s.in_channels == wanted, kInvalidArgument, a.name, ": given groups=", s.groups,
               s.transposed ? ", transposed=1" : "", ", weight of size ", to_string(weight), ", expected input ",
               to_string(input), " to have ", wanted, " channels, but got ", s.in_channels, " channels instead");
  s.out_channels = s.transposed ? multiply_add(a, weight[1], s.groups, 0) : weight[0];
  if (bias)
    SCONCE_CHECK(bias->dim() == 1 && bias->size(0) == s.out_channels, kInvalidArgument, a.name,
                 ": given weight of size ", to_string(weight), ", expected bias to be 1-dimensional with ",
                 s.out_channels, " elements, but got bias of size ", to_string(bias->sizes()));

  for (int d = 0; d < s.spatial; ++d) {
    const auto i = static_cast<size_t>(3 - s.spatial + d);
    s.input[i] = input[static_cast<size_t>(2 + d)];
    s.kernel[i] = weight[static_cast<size_t>(2 + d)];
    const int64_t reach = multiply_add(a, s.dilation[i], s.kernel[i] - 1, 1);
    if (s.transposed) {
      SCONCE_CHECK(s.output_padding[i] < std::max(s.stride[i], s.dilation[i]), kInvalidArgument, a.name,
                   ": output padding must be smaller than either stride or dilation, but got output padding ",
                   s.output_padding[i], ", stride ", s.stride[i], ", dilation ", s.dilation[i]);
      s.output[i] = multiply_add(a, s.input[i] - 1, s.stride[i],
                                 reach + s.output_padding[i] - multiply_add(a, 2, s.padding[i], 0));
      SCONCE_CHECK(s.output[i] >= 0, kInvalidArgument, a.name, ": given input size per channel ", s.input[i],
                   ", calculated output size per channel ", s.output[i], " is too small");
    } else {
      const int64_t padded = multiply_add(a, 2, s.padding[i], s.input[i]);
      SCONCE_CHECK(padded >= reach, kInvalidArgument, a.name, ": calculated padded input size ", padded,
                   " of dimension ", d, " is less than the kernel's ", reach,
                   ": Kernel size can't be greater than actual input size");
      s.output[i] = (padded - reach) / s.stride[i] + 1;
    }
  }
  const bool empty = s.batch == 0 || s.in_channels == 0;
  SCONCE_CHECK(empty || s.input[0] * s.input[1] * s.input[2] != 0, kInvalidArgument, a.name,
               ": only zero batch or zero channel inputs are supported, but got input of size ", to_string(input));
  SCONCE_CHECK(empty || (s.taps() != 0 && s.out_channels != 0), kInvalidArgument, a.name, ": weight of size ",
               to_string(weight), " has no elements");
  // As ATen: no channels in, none out.
  if (s.in_channels == 0) s.out_channels = 0;
  return s;
}

bool is_channels_last(IntSpan sizes, IntSpan strides) noexcept {
  const size_t rank = sizes.size();
  if (rank != 4 && rank != 5) return false;
  if (strides[1] == 0) return false;
  // Channels, width, height, depth, batch: each stride at least the span of those inside it. Ties of size-1 dimensions
  // count as row-major.
  int64_t least = 0;
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = i == 0 ? 1 : i + 1 == rank ? 0 : rank - i;
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

void channels_last_strides(IntSpan sizes, int64_t* strides) {
  int64_t stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t d = i == 0 ? 1 : i + 1 == sizes.size() ? 0 : sizes.size() - i;
    strides[d] = stride;
    stride *= sizes[d];
  }
}

bool convolution_operands_are_channels_last(const ConvolutionShape& s, const Tensor& input, const Tensor& weight) {
  if (s.batch == 0 || s.in_channels == 0) return false;
  if (s.spatial == 1) {
    // Treats lines as images of height 1. The input is made contiguous first; a tensor that is contiguous except for
    // the strides of dimensions of one element stays as it is.
    const auto as_image = [](const Tensor& t) {
      const int64_t sizes[4] = {t.size(0), t.size(1), 1, t.size(2)};
      const int64_t strides[4] = {t.stride(0), t.stride(1), t.size(2) * t.stride(2), t.stride(2)};
      return is_channels_last(sizes, strides);
    };
    return as_image(weight) || (input.is_contiguous() && as_image(input));
  }
  return is_channels_last(input.sizes(), input.strides()) || is_channels_last(weight.sizes(), weight.strides());
}

Tensor empty_of_format(IntSpan sizes, DType dtype, bool channels_last, Device device) {
  if (!channels_last) return Tensor::empty(sizes, dtype, device);
  int64_t strides[5];
  channels_last_strides(sizes, strides);
  return Tensor::empty_strided(sizes, {strides, sizes.size()}, dtype, device);
}

Tensor convolution_output(const ConvolutionShape& s, DType dtype, bool channels_last, Device device) {
  int64_t sizes[5] = {s.batch, s.out_channels};
  const auto rank = static_cast<size_t>(s.spatial + 2);
  for (int d = 0; d < s.spatial; ++d) sizes[2 + d] = s.output[static_cast<size_t>(3 - s.spatial + d)];
  return empty_of_format({sizes, rank}, dtype, channels_last, device);
}

}  // namespace sconce
