#include "src/tensor/rules/row_sets.h"

#include "sconce/check.h"

namespace sconce {

void check_row_sets(std::string_view name, const Tensor& x1, const Tensor& x2) {
  SCONCE_CHECK(x1.dim() >= 2, kInvalidArgument, name, ": only supports at least 2D tensors, X1 got: ", x1.dim(), "D");
  SCONCE_CHECK(x2.dim() >= 2, kInvalidArgument, name, ": only supports at least 2D tensors, X2 got: ", x2.dim(), "D");
  SCONCE_CHECK(x1.size(x1.dim() - 1) == x2.size(x2.dim() - 1), kInvalidArgument, name,
               ": X1 and X2 must have the same number of columns. X1: ", x1.size(x1.dim() - 1),
               " X2: ", x2.size(x2.dim() - 1));
  SCONCE_CHECK(x1.dtype() == x2.dtype(), kInvalidArgument, name, ": X1 is ", dtype_name(x1.dtype()), ", X2 ",
               dtype_name(x2.dtype()));
}

}  // namespace sconce
