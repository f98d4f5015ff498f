#include "src/tensor/spatial/pool_axes.h"

#include <limits>

#include "sconce/check.h"

namespace sconce {
namespace {

// "NAME: kernel_size must ..." One number applies to all dimensions.
int64_t setting(std::string_view name, const char* what, IntSpan values, int dims, int i) {
  SCONCE_CHECK(values.size() == 1 || values.size() == static_cast<size_t>(dims), kInvalidArgument, name, ": ", what,
               " must be a single int or ", dims, " ints, got ", values.size());
  const int64_t value = values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
  SCONCE_CHECK(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max(),
               kInvalidArgument, name, ": ", what, " ", value, " does not fit 32 bits");
  return value;
}

PoolAxis pool_axis(std::string_view name, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                   int64_t dilation, bool ceil_mode) {
  SCONCE_CHECK(kernel > 0, kInvalidArgument, name, ": kernel size should be greater than zero, but got ", kernel);
  SCONCE_CHECK(stride > 0, kInvalidArgument, name, ": stride should be greater than zero, but got ", stride);
  SCONCE_CHECK(dilation > 0, kInvalidArgument, name, ": dilation should be greater than zero, but got ", dilation);
  SCONCE_CHECK(padding >= 0, kInvalidArgument, name, ": pad must be non-negative, but got pad: ", padding);
  SCONCE_CHECK(padding <= kernel / 2, kInvalidArgument, name,
               ": pad should be at most half of kernel size, but got pad=", padding, ", kernel_size=", kernel);
  PoolAxis axis{.input = input, .kernel = kernel, .stride = stride, .padding = padding, .dilation = dilation};
  const int64_t reach = input + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
  axis.output = (reach >= 0 ? reach / stride : -((-reach + stride - 1) / stride)) + 1;
  // The last window starts inside the input or its left padding.
  if (ceil_mode && (axis.output - 1) * stride >= input + padding) --axis.output;
  SCONCE_CHECK(axis.output >= 1, kInvalidArgument, name, ": Output size is too small: an input of size ", input,
               " gives ", axis.output);
  return axis;
}

// From dimension `first` on, no dimension may be empty.
void check_sizes(std::string_view name, const Tensor& self, int dims, int64_t first) {
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": Expected ", dims + 1,
               "D or ", dims + 2, "D tensor for input, but got: ", to_string(self.sizes()));
  for (int64_t d = first; d < self.dim(); ++d)
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, name,
                 ": Expected input to have non-zero size for non-batch dimensions, but input has sizes ",
                 to_string(self.sizes()), " with dimension ", d, " being empty");
}

}  // namespace

std::array<PoolAxis, 3> pool_axes(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size,
                                  IntSpan stride, IntSpan padding, IntSpan dilation, bool ceil_mode) {
  check_sizes(name, self, dims, self.dim() - dims - 1);
  std::array<PoolAxis, 3> axes;
  for (int i = 0; i < dims; ++i) {
    const int64_t kernel = setting(name, "kernel_size", kernel_size, dims, i);
    axes[static_cast<size_t>(3 - dims + i)] =
        pool_axis(name, self.size(self.dim() - dims + i), kernel,
                  stride.empty() ? kernel : setting(name, "stride", stride, dims, i),
                  setting(name, "padding", padding, dims, i), setting(name, "dilation", dilation, dims, i), ceil_mode);
  }
  return axes;
}

std::array<PoolAxis, 3> adaptive_axes(std::string_view name, const Tensor& self, int dims, IntSpan output_size,
                                      bool channels_may_be_empty) {
  // Like ATen, does not check the first dimension, whether it is the batch or the channels.
  check_sizes(name, self, dims, channels_may_be_empty ? self.dim() - dims : 1);
  SCONCE_CHECK(output_size.size() == static_cast<size_t>(dims), kInvalidArgument, name, ": output_size must hold ",
               dims, " numbers, got ", output_size.size());
  std::array<PoolAxis, 3> axes;
  for (int i = 0; i < dims; ++i) {
    const int64_t input = self.size(self.dim() - dims + i), output = output_size[static_cast<size_t>(i)];
    SCONCE_CHECK(output >= 0, kInvalidArgument, name,
                 ": elements of output_size must be greater than or equal to 0 but received ", to_string(output_size));
    PoolAxis& axis = axes[static_cast<size_t>(3 - dims + i)];
    axis = {.input = input, .output = output, .adaptive = true};
    if (output > 0) axis.kernel = axis.stride = std::max<int64_t>(input / output, 1);
  }
  return axes;
}

std::array<PoolAxis, 3> average_axes(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size,
                                     IntSpan stride, IntSpan padding, bool ceil_mode, std::optional<int64_t> divisor) {
  SCONCE_CHECK(!divisor || *divisor != 0, kInvalidArgument, name, ": divisor must be not zero");
  const int64_t one = 1;
  return pool_axes(name, self, dims, kernel_size, stride, padding, IntSpan(&one, 1), ceil_mode);
}

std::array<PoolAxis, 3> adaptive_gradient_axes(std::string_view name, const Tensor& grad_output, const Tensor& self,
                                               int dims) {
  SCONCE_CHECK(grad_output.dim() == self.dim() && self.dim() > dims, kInvalidArgument, name, ": Expected ", dims + 1,
               "D or ", dims + 2, "D tensor, but got ", to_string(self.sizes()), " and grad_output ",
               to_string(grad_output.sizes()));
  for (const int64_t size : grad_output.sizes().subspan(1))
    SCONCE_CHECK(size > 0, kInvalidArgument, name,
                 ": Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes ",
                 to_string(grad_output.sizes()));
  return adaptive_axes(name, self, dims, grad_output.sizes().last(static_cast<size_t>(dims)), true);
}

Shape pooled_sizes(const Tensor& self, const std::array<PoolAxis, 3>& axes, int dims) {
  Shape sizes(self.sizes());
  for (int i = 0; i < dims; ++i) sizes[sizes.rank() - dims + i] = axes[static_cast<size_t>(3 - dims + i)].output;
  return sizes;
}

void check_pool_gradient(std::string_view name, const Tensor& grad_output, const Tensor& self,
                         const std::array<PoolAxis, 3>& axes, int dims) {
  SCONCE_CHECK(grad_output.dtype() == self.dtype(), kInvalidArgument, name, ": expected dtype ",
               dtype_name(self.dtype()), " for `grad_output` but got dtype ", dtype_name(grad_output.dtype()));
  SCONCE_CHECK(std::ranges::equal(grad_output.sizes(), IntSpan(pooled_sizes(self, axes, dims))), kInvalidArgument, name,
               ": grad_output of sizes ", to_string(grad_output.sizes()), " does not fit an input of ",
               to_string(self.sizes()));
}

void check_pool_indices(std::string_view name, const Tensor& indices, const Tensor& grad_output) {
  SCONCE_CHECK(indices.dtype() == DType::kInt64, kInvalidArgument, name,
               ": expected dtype int64 for `indices` but got ", dtype_name(indices.dtype()));
  SCONCE_CHECK(std::ranges::equal(indices.sizes(), grad_output.sizes()), kInvalidArgument, name, ": indices of sizes ",
               to_string(indices.sizes()), " beside a gradient of ", to_string(grad_output.sizes()));
}

Shape unpooled_sizes(std::string_view name, const Tensor& self, const Tensor& indices, IntSpan output_size, int dims) {
  SCONCE_CHECK(indices.dtype() == DType::kInt64, kInvalidArgument, name,
               ": elements in indices should be type int64 but got: ", dtype_name(indices.dtype()));
  SCONCE_CHECK(output_size.size() == static_cast<size_t>(dims), kInvalidArgument, name, ": There should be exactly ",
               dims, " elements in output_size, but got ", output_size.size());
  SCONCE_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, kInvalidArgument, name, ": Input should be a ",
               dims + 1, "d or ", dims + 2, "d Tensor, but got ", to_string(self.sizes()));
  SCONCE_CHECK(std::ranges::equal(self.sizes(), indices.sizes()), kInvalidArgument, name,
               ": Expected shape of indices to be same as that of the input tensor (", to_string(self.sizes()),
               ") but got indices tensor with shape: ", to_string(indices.sizes()));
  Shape sizes(self.sizes());
  for (int64_t d = 1; d < self.dim(); ++d)
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, name,
                 ": Expected input to have non-zero size for non-batch dimensions, but got ", to_string(self.sizes()));
  for (int d = 0; d < dims; ++d) {
    SCONCE_CHECK(output_size[static_cast<size_t>(d)] >= 0, kInvalidArgument, name, ": output_size ",
                 to_string(output_size), " is negative");
    sizes[sizes.rank() - dims + d] = output_size[static_cast<size_t>(d)];
  }
  return sizes;
}

void check_unpool3d(IntSpan stride, IntSpan padding) {
  SCONCE_CHECK(stride.size() == 3 && padding.size() == 3, kInvalidArgument,
               "max_unpool3d: There should be exactly three elements (depth, height, width) in stride and padding");
  for (const int64_t s : stride)
    SCONCE_CHECK(s > 0, kInvalidArgument, "max_unpool3d: strides should be greater than zero, but got ",
                 to_string(stride));
}

}  // namespace sconce
