// OutputDifference: how far the answers of two sets of weights to the same requests are apart, for one output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sconce/difference.h"
#include "sconce/tensor.h"

namespace sconce::server {

// Of any number of requests. A row is a vector along the last dimension, unless that is the batch; its argmax is the
// first NaN, or else the first of the largest elements.
struct OutputDifference {
  uint64_t answers = 0;   // requests that both sets answered with this output, in one dtype and shape
  uint64_t reshaped = 0;  // requests that they answered with different ones, or one of them with None
  Difference values;      // a: the active set's, b: the other's
  uint64_t rows = 0;      // of two elements or more whose dtype has an order
  uint64_t rows_of_other_argmax = 0;
  uint64_t answers_of_other_argmax = 0;     // with such a row
  uint64_t answers_with_new_nonfinite = 0;  // NaN or infinite where the active set's element is finite

  // Elements that are NaN or infinite in b alone.
  uint64_t new_nonfinite() const noexcept { return values.elements - values.finite - values.not_finite_a; }
};

// Adds one request. The tensors are on the host; undefined ones are None. batched: their first dimension is the batch.
// to: one for each output. kOutOfMemory for copies of tensors that are not row-major.
void add_answers(std::span<const Tensor> active, std::span<const Tensor> other, bool batched,
                 std::vector<OutputDifference>& to);

}  // namespace sconce::server
