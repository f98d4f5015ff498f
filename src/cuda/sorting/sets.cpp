// Distinct elements and their counts. Match aten::_unique2 and bincount (torch 2.15, CUDA). Sizes of results depend on
// values, so the host waits to read them.
#include "src/cuda/sorting/sets.h"

#include "src/cuda/elementwise/elementwise.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/search_kernels.h"
#include "src/operators/cpu_ops.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/rules/sorting.h"

namespace sconce::cuda {
namespace {

Tensor integers(int64_t count, Device device) { return Tensor::empty(IntSpan(&count, 1), DType::kInt64, device); }

Tensor at_places(const Tensor& self, const Tensor& places) {
  const Tensor* const index = &places;
  const Tensor* const* const indices = &index;
  return index_Tensor(self, {&indices, 1});
}
// Puts values at `places` of `zeros`; with `sums`, adds those of the same place.
Tensor placed(const Tensor& zeros, const Tensor& places, const Tensor& values, bool sums) {
  const Tensor* const index = &places;
  const Tensor* const* const indices = &index;
  return index_put(zeros, {&indices, 1}, values, sums);
}

}  // namespace

std::array<Tensor, 3> _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  const DeviceScope scope(self.device());
  const int64_t count = self.numel();
  Tensor inverse =
             return_inverse ? Tensor::empty(self.sizes(), DType::kInt64, self.device()) : integers(0, self.device()),
         counts = integers(0, self.device());
  const Tensor flat = reshape(contiguous(self), IntSpan(&count, 1));
  if (count == 0) return {flat, inverse, counts};
  const auto [sorted, order] = sort_stable(flat, true, 0, false);
  Tensor starts = Tensor::empty(IntSpan(&count, 1), DType::kBool, self.device());
  check_launch(
      "unique",
      launch_starts(sorted.data(), static_cast<int>(sorted.dtype()), count, starts.data_as<bool>(), current_stream()),
      sorted.dtype());
  const Tensor firsts = cpu::select(nonzero(starts), 1, 0);
  if (return_inverse) {
    const Tensor numbers = add_number(cumsum(starts, 0, DType::kInt64), int64_t{-1}, int64_t{1});
    inverse =
        reshape(placed(zeros(IntSpan(&count, 1), DType::kInt64, self.device()), order, numbers, false), self.sizes());
  }
  if (return_counts || self.dtype() == DType::kBool) {  // ATen always counts bool
    const int64_t found = firsts.numel();
    Tensor ends = integers(found, self.device());
    if (found > 1) {
      Tensor inner = narrow(ends, 0, 0, found - 1);
      copy(narrow(firsts, 0, 1, found - 1), inner, false);
    }
    Tensor last = narrow(ends, 0, found - 1, 1);
    cuda::fill(last, &count);
    counts = subtract(ends, firsts, int64_t{1});
  }
  return {at_places(sorted, firsts), inverse, counts};
}

Tensor bincount(const Tensor& self, const Tensor* weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  const DeviceScope scope(self.device());
  const bool single = weights && weights->dtype() == DType::kFloat32;
  const DType dtype = !weights ? DType::kInt64 : single ? DType::kFloat32 : DType::kFloat64;
  if (self.numel() == 0) return zeros(IntSpan(&minlength, 1), DType::kInt64, self.device());
  const Tensor places = contiguous(converted(self, DType::kInt64)), sorted = sort_stable(places, true, 0, false)[0];
  Tensor ends = Tensor::empty({}, DType::kInt64);
  copy(cpu::select(sorted, 0, 0), ends, true);
  SCONCE_CHECK(*ends.data_as<int64_t>() >= 0, kInvalidArgument,
               "bincount: only supports 1-d non-negative integral inputs, got ", *ends.data_as<int64_t>());
  copy(cpu::select(sorted, 0, sorted.numel() - 1), ends, true);
  const int64_t bins = std::max(*ends.data_as<int64_t>() + 1, minlength);
  Tensor ones = Tensor::empty(places.sizes(), dtype, self.device());
  if (!weights) cpu::fill__Scalar(ones, 1);
  return placed(zeros(IntSpan(&bins, 1), dtype, self.device()), places, weights ? converted(*weights, dtype) : ones,
                true);
}

}  // namespace sconce::cuda
