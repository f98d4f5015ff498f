// The dtype of a result of several operands. Matches c10::promoteTypes, c10::canCast and at::native::result_type,
// torch 2.15.
#pragma once

#include <optional>

#include "sconce/tensor.h"
#include "src/tensor/scalar.h"

namespace sconce {

// kUnsupported if ATen promotes neither way: float8 and the wide unsigned integers.
DType promote_types(DType a, DType b);
// Whether a result of type `from` may be written to a tensor of type `to`.
bool can_cast(DType from, DType to) noexcept;

// Collects operands. Tensors with dimensions take precedence over 0-d tensors, and these over numbers, unless a later
// kind is of a higher category (float over integer, complex over float).
class ResultType {
 public:
  ResultType& add(const Tensor& tensor);
  // A number of the caller's; Real arguments of the C ABI are of the floating category.
  ResultType& add_number(const Scalar& number);
  DType get() const;

 private:
  std::optional<DType> dims_, zero_dim_, number_;
};

}  // namespace sconce
