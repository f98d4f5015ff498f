// OutputDifference: the difference of one output between two weight sets that answered the same requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/difference.h"
#include "sconce/tensor.h"

namespace sconce::server::weights {

// Sums over any number of requests. A row is a vector along the last dimension, unless that is the batch; its argmax is
// the first NaN, or else the first of the largest elements.
struct OutputDifference {
  uint64_t answers = 0;   // requests for which both sets returned this output with the same dtype and shape
  uint64_t reshaped = 0;  // requests for which dtype or shape differ, or one set returned None
  Difference values;      // a: the active set; b: the other set
  uint64_t rows = 0;      // rows of two elements or more whose dtype is ordered
  uint64_t rows_of_other_argmax = 0;
  uint64_t answers_of_other_argmax = 0;     // with at least one such row
  uint64_t answers_with_new_nonfinite = 0;  // NaN or infinite where the active set's element is finite

  // Elements that are NaN or infinite only in b.
  uint64_t new_nonfinite() const noexcept { return values.elements - values.finite - values.not_finite_a; }
};

// Adds one request. The tensors are on the host; undefined tensors are None. batched: their first dimension is the
// batch. to: one element for each output. kOutOfMemory for copies of tensors that are not row-major.
void add_answers(std::span<const Tensor> active, std::span<const Tensor> other, bool batched,
                 std::vector<OutputDifference>& to);

}  // namespace sconce::server::weights
