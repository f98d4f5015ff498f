#include "src/tensor/rules/boxes.h"

#include "sconce/check.h"

namespace sconce {

void check_boxes(std::string_view name, const Tensor& dets, const Tensor& scores) {
  SCONCE_CHECK(dets.dim() == 2, kInvalidArgument, name, ": boxes should be a 2d tensor, got ", dets.dim(), "D");
  SCONCE_CHECK(dets.size(1) == 4, kInvalidArgument, name, ": boxes should have 4 elements in dimension 1, got ",
               dets.size(1));
  SCONCE_CHECK(scores.dim() == 1, kInvalidArgument, name, ": scores should be a 1d tensor, got ", scores.dim(), "D");
  SCONCE_CHECK(dets.size(0) == scores.size(0), kInvalidArgument, name,
               ": boxes and scores should have same number of elements in dimension 0, got ", dets.size(0), " and ",
               scores.size(0));
}

}  // namespace sconce
