// Compares an output with the recorded one. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sconce/tensor.h"

namespace sconce::server {

struct GoldenTolerance {
  // A floating-point or complex element passes if |got - expected| <= atol + rtol * |expected|, an integer if
  // |got - expected| <= atol. Infinities, booleans and packed elements must be equal; NaN passes where NaN is expected.
  double rtol = 1e-3, atol = 1e-5;
  // An output passes if, along its last dimension, its largest elements are where those of the recorded one are. NaN
  // counts as the largest, as in PyTorch. Outputs that have no order, or one element in that dimension, are compared by
  // tolerance.
  bool argmax = false;
};

struct GoldenMismatch {
  std::string problem;               // "element [0, 3] is 2.5, expected 1.5 (17 of 640 differ)"
  std::string at, got, expected;     // of the first element or row that fails: "[0, 3]"; empty: it is not about one
  uint64_t wrong = 0, compared = 0;  // elements, or rows with argmax
};

// Both are in the host's memory, in any strides; `got` is undefined if the model returned None. Nothing if it passes.
std::optional<GoldenMismatch> compare_golden(const Tensor& expected, const Tensor& got,
                                             const GoldenTolerance& tolerance);

}  // namespace sconce::server
