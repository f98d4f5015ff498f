#include "src/tensor/rules/sorting.h"

#include "sconce/check.h"

namespace sconce {

bool right_side(bool right, std::optional<std::string_view> side) {
  if (!side) return right;
  SCONCE_CHECK(*side == "left" || *side == "right", kInvalidArgument,
               "searchsorted(): side can only be 'left' or 'right' but got ", *side);
  SCONCE_CHECK(*side == "right" || !right, kInvalidArgument,
               "searchsorted(): side and right can't be set to opposites, got side of left while right was True");
  return *side == "right";
}

Shape without_dim(const Tensor& self, int64_t dim, bool keepdim) {
  Shape shape;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim)
      shape.push_back(self.size(d));
    else if (keepdim)
      shape.push_back(1);
  return shape;
}

void check_dim_not_empty(std::string_view name, const Tensor& self, int64_t dim) {
  SCONCE_CHECK(self.dim() == 0 || self.size(dim) > 0, kInvalidArgument, name, "(): Expected reduction dim ", dim,
               " to have non-zero size.");
}

void check_bincount(const Tensor& self, const Tensor* weights, int64_t minlength) {
  SCONCE_CHECK(minlength >= 0, kInvalidArgument, "bincount: minlength should be >= 0, got ", minlength);
  if (self.dim() == 1 && self.numel() == 0) return;
  SCONCE_CHECK(!is_floating(self.dtype()) && !is_complex(self.dtype()) && self.dtype() != DType::kBool, kUnsupported,
               "bincount: not implemented for '", dtype_name(self.dtype()), "'");
  SCONCE_CHECK(self.dim() == 1, kInvalidArgument, "bincount: only supports 1-d non-negative integral inputs, got ",
               describe(self));
  SCONCE_CHECK(!weights || (weights->dim() == 1 && weights->size(0) == self.size(0)), kInvalidArgument,
               "bincount: weights should be 1-d and have the same length as input, got ", describe(*weights));
}

}  // namespace sconce
