#include "src/cuda/sorting/largest.h"

#include "sconce/device_memory.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/largest_kernels.h"

namespace sconce::cuda {

static_assert(kMaxRanks == kMaxLargest);

void rank_largest(const Tensor& rows, Tensor& ranks, Tensor& kept) {
  const DeviceScope scope(rows.device());
  const LargestCall call{static_cast<int>(rows.dtype()),
                         rows.data(),
                         rows.size(0),
                         rows.stride(0),
                         rows.stride(1),
                         rows.size(1),
                         static_cast<int>(ranks.size(1)),
                         ranks.data_as<uint64_t>()};
  const size_t bytes = largest_scratch(call);
  if (bytes > 0) kept = scratch(bytes, rows.device());
  check(launch_largest(bytes > 0 ? kept.data() : nullptr, call, current_stream()), "last_rows");
}

}  // namespace sconce::cuda
