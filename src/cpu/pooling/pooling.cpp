// Pooling over the last two or three dimensions of [N, C, (D,) H, W], N optional.
//
// Any strides; the result is channels-last where ATen's is. Indices are int64 offsets into an input plane; of equal
// maxima the first is taken, of NaNs the last. Half and bfloat16 are computed in float.
// kernel_size, stride and padding may hold one number for all dimensions; an empty stride is the kernel size.
// kInvalidArgument for shapes and settings that ATen refuses, kUnsupported for dtypes. Matches ATen's CPU kernels,
// torch 2.15.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "sconce/check.h"
#include "src/cpu/pooling/pooling_plan.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"

namespace sconce {
namespace {

bool computed_in_float(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
DType compute_dtype(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16 ? DType::kInt32
                                                                                   : summed_dtype(dtype);
}

std::array<Tensor, 2> run_max(std::string_view name, const Tensor& self, const std::array<PoolAxis, 3>& axes, int dims,
                              PoolFormat format = PoolFormat::kSuggested) {
  const PoolPlan plan = plan_pooling(name, self, axes, dims, format, compute_dtype(self.dtype()));
  Tensor out = plan.empty_result(plan.input.dtype()), indices = plan.empty_result(DType::kInt64);
  if (out.numel() > 0)
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kInt32>(
        plan.input.dtype(), name,
        [&]<class T>() -> void { max_pool<T>(plan, out.data_as<T>(), indices.data_as<int64_t>()); });
  // An empty window gives the least number of its own dtype, not of the one in which it was computed.
  const DType dtype = self.dtype();
  if (dtype == DType::kInt8 || dtype == DType::kInt16) {
    const int32_t least = dtype == DType::kInt8 ? INT8_MIN : INT16_MIN;
    for (int32_t& value : std::span(out.data_as<int32_t>(), static_cast<size_t>(out.numel())))
      value = std::max(value, least);
  }
  return {to_dtype(out, self.dtype()), std::move(indices)};
}

Tensor run_average(std::string_view name, const Tensor& self, const std::array<PoolAxis, 3>& axes, int dims,
                   PoolFormat format, bool include_padding, int64_t divisor) {
  const PoolPlan plan = plan_pooling(name, self, axes, dims, format, compute_dtype(self.dtype()));
  Tensor out = plan.empty_result(plan.input.dtype());
  if (out.numel() > 0)
    detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kInt64>(
        plan.input.dtype(), name,
        [&]<class T>() -> void { average_pool<T>(plan, out.data_as<T>(), include_padding, divisor); });
  return to_dtype(out, self.dtype());
}

std::array<Tensor, 2> maximum(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size, IntSpan stride,
                              IntSpan padding, IntSpan dilation, bool ceil_mode) {
  const DType dtype = self.dtype();
  if (!is_floating(dtype) &&
      (!is_integral(dtype, false) || dtype == DType::kUInt16 || dtype == DType::kUInt32 || dtype == DType::kUInt64))
    fail_dispatch(dtype, name);
  return run_max(name, self, pool_axes(name, self, dims, kernel_size, stride, padding, dilation, ceil_mode), dims);
}

std::array<PoolAxis, 3> floating_adaptive_axes(std::string_view name, const Tensor& self, int dims, IntSpan output_size,
                                               bool channels_may_be_empty) {
  const auto axes = adaptive_axes(name, self, dims, output_size, channels_may_be_empty);
  if (!is_floating(self.dtype())) fail_dispatch(self.dtype(), name);
  return axes;
}

Tensor average(std::string_view name, const Tensor& self, int dims, IntSpan kernel_size, IntSpan stride,
               IntSpan padding, bool ceil_mode, bool include_padding, std::optional<int64_t> divisor_override) {
  const auto axes = average_axes(name, self, dims, kernel_size, stride, padding, ceil_mode, divisor_override);
  const DType dtype = self.dtype();
  if ((!is_floating(dtype) && dtype != DType::kInt64) || (dims == 3 && computed_in_float(dtype)))
    fail_dispatch(dtype, name);
  if (dims == 3)
    for (const PoolAxis& axis : axes)
      SCONCE_CHECK(axis.input >= axis.kernel, kInvalidArgument, name, ": input image of size ", axis.input,
                   " is smaller than kernel size ", axis.kernel);
  return run_average(name, self, axes, dims, dims == 2 ? PoolFormat::kSuggested : PoolFormat::kRowMajor,
                     include_padding, divisor_override.value_or(0));
}

}  // namespace

PoolPlan plan_pooling(std::string_view name, const Tensor& self, const std::array<PoolAxis, 3>& axes, int dims,
                      PoolFormat format, DType dtype) {
  const bool batched = self.dim() == dims + 2;
  PoolPlan plan;
  plan.axes = axes;
  plan.batch = batched ? self.size(0) : 1;
  plan.channels = self.size(batched ? 1 : 0);
  const int64_t table_bytes =
      (axes[0].output + axes[1].output + axes[2].output) * static_cast<int64_t>(sizeof(PoolAxis::Window));
  plan.window_table = Tensor::empty(IntSpan(&table_bytes, 1), DType::kUInt8);
  auto* window = static_cast<PoolAxis::Window*>(plan.window_table.data());
  for (const PoolAxis& axis : axes)
    for (int64_t o = 0; o < axis.output; ++o) *window++ = axis.window(o);
  plan.sizes = pooled_sizes(self, axes, dims);
  const MemoryFormat last = dims == 2 ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
  if (format == PoolFormat::kSuggested) {
    if (batched) {
      plan.channels_last = suggested_format(self) == last;
    } else if (dims == 3) {
      SCONCE_CHECK(suggested_format(self) == MemoryFormat::kContiguous, kUnsupported, name,
                   ": Unsupported memory format. Supports only ChannelsLast3d, Contiguous");
      // A single image of a channels-last batch stays channels-last.
      Shape sizes, strides;
      sizes.push_back(1);
      strides.push_back(self.numel());
      for (int64_t d = 0; d < self.dim(); ++d) {
        sizes.push_back(self.size(d));
        strides.push_back(self.stride(d));
      }
      plan.channels_last =
          !self.is_contiguous() && is_channels_last_3d(self.as_strided(sizes, strides, self.storage_offset()));
    }
  }
  if (plan.channels_last && batched) {
    format_strides(name, plan.sizes, last, plan.strides);
    if (self.dtype() == dtype && (dims == 2 ? is_channels_last(self) : is_channels_last_3d(self))) {
      plan.input = self;
    } else {
      plan.input = empty_in_format(name, self, dtype, last);
      copy(self, plan.input);
    }
  } else if (plan.channels_last) {
    plan.input = to_dtype(self, dtype);
    const Shape& s = plan.sizes;
    const int64_t strides[] = {1, s[2] * s[3] * s[0], s[3] * s[0], s[0]};
    std::copy_n(strides, 4, plan.strides);
  } else {
    contiguous_strides(plan.sizes, plan.strides);
    if (self.dtype() == dtype) {
      plan.input = contiguous(self);
    } else {
      plan.input = Tensor::empty(self.sizes(), dtype);
      copy(self, plan.input);
    }
  }
  return plan;
}

namespace cpu {

// Real dtypes. Output and indices.
std::array<Tensor, 2> max_pool2d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maximum("max_pool2d", self, 2, kernel_size, stride, padding, dilation, ceil_mode);
}
std::array<Tensor, 2> max_pool3d_with_indices(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                              IntSpan dilation, bool ceil_mode) {
  return maximum("max_pool3d", self, 3, kernel_size, stride, padding, dilation, ceil_mode);
}
// Floats and int64; avg_pool3d without half and bfloat16.
Tensor avg_pool2d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return average("avg_pool2d", self, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
Tensor avg_pool3d(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding, bool ceil_mode,
                  bool count_include_pad, std::optional<int64_t> divisor_override) {
  return average("avg_pool3d", self, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}

// Floats. Windows that tile the input, as even in size as they can be.
Tensor _adaptive_avg_pool2d(const Tensor& self, IntSpan output_size) {
  const auto axes = floating_adaptive_axes("adaptive_avg_pool2d", self, 2, output_size, true);
  return run_average("adaptive_avg_pool2d", self, axes, 2, PoolFormat::kSuggested, false, 0);
}
Tensor _adaptive_avg_pool3d(const Tensor& self, IntSpan output_size) {
  const auto axes = floating_adaptive_axes("adaptive_avg_pool3d", self, 3, output_size, false);
  if (!computed_in_float(self.dtype()))
    return run_average("adaptive_avg_pool3d", self, axes, 3, PoolFormat::kRowMajor, false, 0);
  const PoolPlan plan = plan_pooling("adaptive_avg_pool3d", self, axes, 3, PoolFormat::kRowMajor, self.dtype());
  Tensor out = plan.empty_result(self.dtype());
  if (out.numel() == 0) return out;
  if (self.dtype() == DType::kFloat16)
    average_pool_rounded(plan, out.data_as<Half>());
  else
    average_pool_rounded(plan, out.data_as<BFloat16>());
  return out;
}
std::array<Tensor, 2> adaptive_max_pool2d(const Tensor& self, IntSpan output_size) {
  const auto axes = floating_adaptive_axes("adaptive_max_pool2d", self, 2, output_size, false);
  return run_max("adaptive_max_pool2d", self, axes, 2);
}
std::array<Tensor, 2> adaptive_max_pool3d(const Tensor& self, IntSpan output_size) {
  const auto axes = floating_adaptive_axes("adaptive_max_pool3d", self, 3, output_size, false);
  return run_max("adaptive_max_pool3d", self, axes, 3, PoolFormat::kRowMajor);
}

}  // namespace cpu
}  // namespace sconce
