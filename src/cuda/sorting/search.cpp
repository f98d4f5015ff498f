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

// The dtype to search in, which holds all values of smaller types.
DType searched_dtype(DType dtype) {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return DType::kFloat32;
  if (dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16) return DType::kInt32;
  SCONCE_CHECK(dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kInt32 || dtype == DType::kInt64,
               kUnsupported, "searchsorted: not implemented for '", dtype_name(dtype), "' on CUDA");
  return dtype;
}

Tensor search(const Tensor& sequence, const Tensor& values, DType common, bool out_int32, bool right,
              const Tensor* sorter) {
  check_searched(sequence, values, out_int32);
  SCONCE_CHECK(!sorter || (sorter->dtype() == DType::kInt64 && sorter->device() == sequence.device() &&
                           std::equal(sorter->sizes().begin(), sorter->sizes().end(), sequence.sizes().begin(),
                                      sequence.sizes().end())),
               kInvalidArgument, "searchsorted(): boundary ", describe(sequence),
               " and sorter must have the same size, the sorter of int64");
  SCONCE_CHECK(sequence.device() == values.device(), kInvalidArgument,
               "searchsorted(): boundaries and input value tensors should have same device type, but got ",
               describe(sequence), " and ", describe(values));
  const DeviceScope scope(values.device());
  Tensor out = Tensor::empty(values.sizes(), out_int32 ? DType::kInt32 : DType::kInt64, values.device());
  if (out.numel() == 0) return out;
  // Values are rounded to the common dtype first, then widened.
  const DType wide = searched_dtype(common);
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
  SCONCE_CHECK(boundaries.dim() == 1, kInvalidArgument,
               "bucketize: boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_Tensor(boundaries, self, out_int32, right, std::nullopt, nullptr);
}

}  // namespace sconce::cuda
