// Matches aten::repeat_interleave.Tensor (torch 2.15, CUDA). Repeats that do not sum to output_size are found when the
// stream has passed, and fail the run.
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/tensor/repeat_kernels.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

// Waits for the sum if output_size is not given.
Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  SCONCE_CHECK(repeats.dim() == 1, kInvalidArgument, "repeat_interleave only accept 1D vector as repeat, got ",
               describe(repeats));
  SCONCE_CHECK(is_integral(repeats.dtype(), false) && repeats.itemsize() <= 8, kInvalidArgument,
               "repeats has to be an integer tensor, got ", dtype_name(repeats.dtype()));
  SCONCE_CHECK(!output_size || *output_size >= 0, kInvalidArgument, "repeat_interleave: output_size ", *output_size);
  const DeviceScope scope(repeats.device());
  const int64_t n = repeats.numel();
  if (n == 0) return Tensor::empty(repeats.sizes(), repeats.dtype(), repeats.device());
  const Tensor sums = cumsum(repeats, 0, DType::kInt64);
  int64_t count = output_size.value_or(0);
  if (!output_size) {
    refuse_capture("results whose size depends on values");
    SCONCE_CUDA(cudaMemcpyAsync(&count, sums.data_as<int64_t>() + n - 1, sizeof count, cudaMemcpyDeviceToHost,
                                current_stream()));
    SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
    SCONCE_CHECK(count >= 0, kInvalidArgument, "repeats can not be negative: they sum to ", count);
  }
  Tensor out = Tensor::empty(IntSpan(&count, 1), repeats.dtype(), repeats.device());
  if (count == 0) return out;
  launch_repeat(sums.data_as<int64_t>(), n, count, static_cast<int>(repeats.itemsize()), out.data(), noted_by_kernels(),
                static_cast<int>(Noted::kIndex), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  check_noted();
  return out;
}

}  // namespace sconce::cuda
