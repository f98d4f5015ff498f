#include "src/cpu/indexing/index_select.h"

#include <vector>

#include "sconce/check.h"
#include "src/cpu/indexing/index.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/view.h"

namespace sconce::cpu {

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  SCONCE_CHECK(index.dim() <= 1, kInvalidArgument, "index_select: Index is supposed to be a vector, got ",
               describe(index));
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, kInvalidArgument,
               "index_select: Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()));
  const auto at = static_cast<size_t>(wrap_dim("index_select", dim, self.dim()));
  const Tensor wide = contiguous(to_dtype(index, DType::kInt64));
  const int64_t size = self.dim() ? self.size(static_cast<int64_t>(at)) : 1;
  for (int64_t i = 0; i < wide.numel(); ++i)
    SCONCE_CHECK(wide.data_as<int64_t>()[i] >= 0 && wide.data_as<int64_t>()[i] < size, kInvalidArgument,
                 "index_select: index out of range in self: ", wide.data_as<int64_t>()[i], " of ", size);
  const int64_t count = wide.numel();
  const Tensor positions = reshape(wide, IntSpan(&count, 1));
  if (self.dim() == 0) {
    SCONCE_CHECK(count == 1, kInvalidArgument, "index_select: Index to scalar can have only 1 value, got ", count);
    return clone(self);
  }
  std::vector<const Tensor*> tensors(at + 1, nullptr);
  tensors[at] = &positions;
  std::vector<const Tensor* const*> handles;
  for (const Tensor* const& tensor : tensors) handles.push_back(&tensor);
  return contiguous(index_Tensor(self, OptTensorList(handles.data(), handles.size())));
}

}  // namespace sconce::cpu
