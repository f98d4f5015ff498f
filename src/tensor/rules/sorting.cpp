#include "src/tensor/rules/sorting.h"

#include <algorithm>
#include <cstdint>

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

void check_searched(const Tensor& sequence, const Tensor& values, bool out_int32, const Tensor* sorter) {
  SCONCE_CHECK(values.dim() > 0 || sequence.dim() == 1, kInvalidArgument,
               "searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
               "boundaries tensor dim(",
               sequence.dim(), ") and input value's dim(0) numel(1)");
  SCONCE_CHECK(sequence.dim() > 0, kInvalidArgument,
               "searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
  bool matched = sequence.dim() == 1 || sequence.dim() == values.dim();
  for (int64_t d = 0; matched && sequence.dim() > 1 && d + 1 < sequence.dim(); ++d)
    matched = sequence.size(d) == values.size(d);
  SCONCE_CHECK(matched, kInvalidArgument,
               "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
               "tensor and input value tensor must match, but we got boundaries tensor ",
               to_string(sequence.sizes()), " and input value tensor ", to_string(values.sizes()));
  const int64_t n = sequence.size(sequence.dim() - 1);
  SCONCE_CHECK(!out_int32 || n < INT32_MAX, kInvalidArgument,
               "searchsorted(): the size of boundaries' last dimension should be less than 2147483647, but we got ", n);
  if (!sorter) return;
  SCONCE_CHECK(std::ranges::equal(sorter->sizes(), sequence.sizes()), kInvalidArgument,
               "searchsorted(): boundary and sorter must have the same size, but got boundary tensor ",
               to_string(sequence.sizes()), " and got sorter tensor ", to_string(sorter->sizes()));
  SCONCE_CHECK(sorter->dtype() == DType::kInt64, kInvalidArgument,
               "searchsorted(): sorter must be a tensor of long dtype but got dtype ", dtype_name(sorter->dtype()));
}

void check_boundaries(const Tensor& boundaries) {
  SCONCE_CHECK(boundaries.dim() == 1, kInvalidArgument,
               "bucketize: boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

DType searched_dtype(DType dtype) noexcept {
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return DType::kFloat32;
  if (dtype == DType::kUInt8 || dtype == DType::kInt8 || dtype == DType::kInt16) return DType::kInt32;
  return dtype;
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
