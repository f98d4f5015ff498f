// ReducedRows: the reduced dimensions of a tensor as the rows of a packed matrix.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sconce/check.h"
#include "sconce/tensor.h"

namespace sconce {

struct ReducedRows {
  Tensor rows;                 // row-major: kept dimensions, then reduced ones
  int64_t width = 1;           // elements of a row
  std::vector<int64_t> sizes;  // of the result
};

// Reduces all dimensions if dims is empty. kInvalidArgument "NAME: ..." for a dimension out of range or named twice.
// Elements are converted to `dtype`.
ReducedRows reduced_rows(std::string_view name, const Tensor& self, std::optional<IntSpan> dims, bool keepdim,
                         DType dtype);

inline void check_mean(DType dtype) {
  SCONCE_CHECK(is_floating(dtype) || is_complex(dtype), kInvalidArgument,
               "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
               "Got: ",
               dtype_name(dtype));
}

}  // namespace sconce
