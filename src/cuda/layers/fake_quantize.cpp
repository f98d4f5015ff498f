// Fake quantisation to grids that follow the data. Match aten::_fused_moving_avg_obs_fq_helper and its functional form
// (torch 2.15, CUDA). Ranges, grids and flags stay on the device, so nothing waits.

#include "src/cuda/layers/fake_quantize_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/rules/moving_average.h"

namespace sconce::cuda {
namespace {

// A flag of one element, as int64.
Tensor flag(const Tensor& given) {
  SCONCE_CHECK(given.numel() == 1, kInvalidArgument,
               "_fused_moving_avg_obs_fq_helper: observer_on and fake_quant_on must have 1 element");
  return cuda::contiguous(converted(given, DType::kInt64));
}

}  // namespace

std::array<Tensor, 2> _fused_moving_avg_obs_fq_helper(const Tensor& self, const Tensor& observer_on,
                                                      const Tensor& fake_quant_on, Tensor& running_min,
                                                      Tensor& running_max, Tensor& scale, Tensor& zero_point,
                                                      double averaging_const, int64_t quant_min, int64_t quant_max,
                                                      int64_t ch_axis, bool per_row_fake_quant, bool symmetric_quant) {
  const FakeQuantisedRows rows = check_moving_average(self, running_min, running_max, scale, zero_point, quant_min,
                                                      quant_max, ch_axis, per_row_fake_quant);
  const DeviceScope scope(self.device());
  const Tensor observe = flag(observer_on), quantise = flag(fake_quant_on), in = cuda::contiguous(self);
  FakeQuantisation call{};
  call.outer = rows.outer;
  call.channels = rows.channels;
  call.inner = rows.inner;
  call.observe = observe.data_as<int64_t>();
  call.quantise = quantise.data_as<int64_t>();
  call.low = running_min.data_as<float>();
  call.high = running_max.data_as<float>();
  call.scale = scale.data_as<float>();
  call.zero_point = zero_point.data_as<int32_t>();
  call.averaging = static_cast<float>(averaging_const);
  call.least = quant_min;
  call.most = quant_max;
  call.symmetric = symmetric_quant;
  Tensor rounded = Tensor::empty(self.sizes(), DType::kFloat32, self.device()),
         kept = Tensor::empty(self.sizes(), DType::kBool, self.device());
  const int64_t ranges = range_parts(call) * rows.channels * 2;
  launch_observe(call, in.data_as<float>(),
                 Tensor::empty(IntSpan(&ranges, 1), DType::kFloat32, self.device()).data_as<float>(), current_stream());
  launch_quantise(call, in.data_as<float>(), rounded.data_as<float>(), kept.data_as<bool>(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  if (self.is_contiguous()) return {rounded, kept};
  Tensor out = sconce::empty_like(self), mask = sconce::empty_like(self, DType::kBool);
  cuda::copy(rounded, out, false);
  cuda::copy(kept, mask, false);
  return {out, mask};
}

std::array<Tensor, 6> _fused_moving_avg_obs_fq_helper_functional(const Tensor& self, const Tensor& observer_on,
                                                                 const Tensor& fake_quant_on, const Tensor& running_min,
                                                                 const Tensor& running_max, const Tensor& scale,
                                                                 const Tensor& zero_point, double averaging_const,
                                                                 int64_t quant_min, int64_t quant_max, int64_t ch_axis,
                                                                 bool per_row_fake_quant, bool symmetric_quant) {
  Tensor low = sconce::clone(running_min), high = sconce::clone(running_max), step = sconce::clone(scale),
         zero = sconce::clone(zero_point);
  auto [out, mask] =
      _fused_moving_avg_obs_fq_helper(self, observer_on, fake_quant_on, low, high, step, zero, averaging_const,
                                      quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant);
  return {std::move(out), std::move(mask), std::move(low), std::move(high), std::move(step), std::move(zero)};
}

}  // namespace sconce::cuda
