// Matches aten::histc (torch 2.15, CUDA).
#include <limits>

#include "src/cuda/reduction/histogram_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

Tensor histc(const Tensor& self, int64_t bins, double min, double max) {
  SCONCE_CHECK(bins > 0, kInvalidArgument, "histc: bins must be > 0, got ", bins);
  SCONCE_CHECK(min <= max && max - min < std::numeric_limits<double>::infinity(), kInvalidArgument, "histc: range of [",
               min, ", ", max, "] is not finite, or its ends are swapped");
  const DeviceScope scope(self.device());
  const DType dtype = self.dtype();
  Tensor counts = Tensor::empty(IntSpan(&bins, 1), DType::kInt64, self.device());
  const int64_t zero = 0, two = 2;
  fill(counts, &zero);
  if (self.numel() > 0) {
    const Tensor packed = cuda::contiguous(self);
    Tensor range = Tensor::empty(IntSpan(&two, 1), DType::kFloat64, self.device());
    if (min == max) {
      check_launch("histc",
                   launch_range(static_cast<int>(dtype), packed.data(), packed.numel(), range.data_as<double>(),
                                current_stream()),
                   dtype);
    } else {
      const int64_t none = 1;
      Tensor low = range.as_strided({}, {}, 0), high = range.as_strided({}, {}, none);
      fill(low, &min);
      fill(high, &max);
    }
    check_launch("histc",
                 launch_count_bins(static_cast<int>(dtype), packed.data(), packed.numel(), bins,
                                   range.data_as<double>(), counts.data_as<unsigned long long>(), current_stream()),
                 dtype);
  }
  return converted(counts, dtype);
}

}  // namespace sconce::cuda
