#include "src/tensor/rules/masked.h"

#include "sconce/check.h"

namespace sconce {

void check_masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  SCONCE_CHECK(self.dtype() == source.dtype(), kInvalidArgument,
               "masked_scatter: expected self and source to have same dtypes but got ", dtype_name(self.dtype()),
               " and ", dtype_name(source.dtype()));
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument,
               "masked_scatter_ only supports boolean masks, but got mask with dtype ", dtype_name(mask.dtype()));
}

}  // namespace sconce
