#include "src/tensor/rows/slices.h"

#include <algorithm>

#include "src/device/threads.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

Tensor move_last(const Tensor& tensor, int64_t dim) {
  Shape sizes, strides;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (d != dim) {
      sizes.push_back(tensor.size(d));
      strides.push_back(tensor.stride(d));
    }
  sizes.push_back(tensor.size(dim));
  strides.push_back(tensor.stride(dim));
  return tensor.as_strided(sizes, strides, tensor.storage_offset());
}

int64_t slice_parts(int64_t count, int64_t work_per_slice) {
  constexpr int64_t kWorkPerThread = 8 << 10;
  const int64_t wanted = count * work_per_slice / kWorkPerThread;
  return std::clamp<int64_t>(std::min(count, wanted), 1, kernel_threads());
}

}  // namespace sconce
