// Searching. Match aten::searchsorted and bucketize (torch 2.15, CUDA). A sorter's index out of bounds is found when
// the stream has passed, and fails the run.
#include <algorithm>

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/sorting/search_kernels.h"
#include "src/cuda/tensor/filled.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rules/sorting.h"
#include "src/tensor/scalar.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cuda {
namespace {

constexpr int kNote = static_cast<int>(Noted::kIndex);

Tensor search(const Tensor& sequence, const Tensor& values, DType common, bool out_int32, bool right,
              const Tensor* sorter) {
  check_searched(sequence, values, out_int32, sorter);
  for (const Tensor* other : {&values, sorter})
    SCONCE_CHECK(!other || other->device() == sequence.device(), kInvalidArgument,
                 "searchsorted(): boundaries, input value and sorter tensors should have same device type, but got ",
                 describe(sequence), " and ", describe(*other));
  const DeviceScope scope(values.device());
  Tensor out = Tensor::empty(values.sizes(), out_int32 ? DType::kInt32 : DType::kInt64, values.device());
  if (out.numel() == 0) return out;
  // Values are rounded to the common dtype first, then widened.
  const DType wide = searched_dtype(common);
  SCONCE_CHECK(wide == DType::kFloat32 || wide == DType::kFloat64 || wide == DType::kInt32 || wide == DType::kInt64,
               kUnsupported, "searchsorted: not implemented for '", dtype_name(common), "' on CUDA");
  const Tensor elements = cuda::contiguous(converted(converted(sequence, common), wide)),
               sought = cuda::contiguous(converted(converted(values, common), wide)),
               order = sorter ? cuda::contiguous(*sorter) : Tensor();
  SearchCall call{};
  call.dtype = static_cast<int>(wide);
  call.sequence = elements.data();
  call.values = sought.data();
  call.sorter = sorter ? order.data_as<int64_t>() : nullptr;
  call.n = sequence.size(sequence.dim() - 1);
  call.one_row = sequence.dim() == 1;
  call.each = call.one_row ? 1 : values.size(values.dim() - 1);
  call.count = values.numel();
  call.right = right;
  call.narrow = out_int32;
  call.out = out.data();
  call.noted = noted_by_kernels();
  call.note = kNote;
  launch_search(call, current_stream());
  SCONCE_CUDA(cudaGetLastError());
  if (sorter) check_noted();
  return out;
}

}  // namespace

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  return search(sorted_sequence, self, ResultType().add(sorted_sequence).add(self).get(), out_int32,
                right_side(right, side), sorter);
}
Tensor searchsorted_Scalar(const Tensor& sorted_sequence, double self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor* sorter) {
  const DeviceScope scope(sorted_sequence.device());
  return search(sorted_sequence, filled({}, self, DType::kFloat64, sorted_sequence.device()),
                ResultType().add(sorted_sequence).add_number(Scalar(self)).get(), out_int32, right_side(right, side),
                sorter);
}
Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  check_boundaries(boundaries);
  return searchsorted_Tensor(boundaries, self, out_int32, right, std::nullopt, nullptr);
}

}  // namespace sconce::cuda
