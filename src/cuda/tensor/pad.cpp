// Padding: the CPU's, whose copies and fills know devices, except that packed tensors get a constant border in one
// launch.
#include <algorithm>
#include <cstddef>

#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/tensor/pad_kernels.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// Whether launch_pad() takes it: it grows at up to three last dimensions.
bool grows_packed(const Tensor& self, IntSpan pad) {
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  if (pad.size() % 2 != 0 || dims == 0 || dims > 3 || dims > self.dim() || self.numel() == 0 || !self.is_contiguous() ||
      suggested_format(self) != MemoryFormat::kContiguous)
    return false;
  // In double, which does not overflow.
  double count = static_cast<double>(self.numel());
  for (int64_t i = 0; i < dims; ++i) {
    const auto pair = static_cast<size_t>(2 * i);
    if (pad[pair] < 0 || pad[pair + 1] < 0) return false;
    const auto size = static_cast<double>(self.size(self.dim() - 1 - i));
    count *= (size + static_cast<double>(pad[pair]) + static_cast<double>(pad[pair + 1])) / size;
  }
  return count < INT32_MAX / 2 && std::any_of(pad.begin(), pad.end(), [](int64_t p) { return p > 0; });
}

}  // namespace

Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  if (mode != "constant" || !grows_packed(self, pad)) return cpu::pad(self, pad, mode, value);
  const DeviceScope scope(self.device());
  Shape sizes(self.sizes());
  PaddedPlanes planes{self.numel(), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i);
    planes.in[2 - i] = self.size(dim);
    planes.before[2 - i] = pad[2 * i];
    planes.out[2 - i] = sizes[static_cast<int>(dim)] = self.size(dim) + pad[2 * i] + pad[2 * i + 1];
    planes.planes /= self.size(dim);
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  alignas(16) std::byte element[16];
  scalar_bytes(value.value_or(0), self.dtype(), element);
  launch_pad(planes, static_cast<int>(self.itemsize()), self.data(), element, out.data(), current_stream());
  SCONCE_CUDA(cudaGetLastError());
  return out;
}

}  // namespace sconce::cuda
