// Compares an output with the recorded output. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sconce/tensor.h"

namespace sconce::server::weights {

struct GoldenTolerance {
  // A floating-point or complex element passes if |got - expected| <= atol + rtol * |expected|, an integer if
  // |got - expected| <= atol. Infinities, booleans and packed elements must be equal; NaN passes where NaN is expected.
  double rtol = 1e-3, atol = 1e-5;
  // An output passes if, along its last dimension, its largest elements are at the same positions as in the recorded
  // output. NaN counts as the largest, as in PyTorch. Outputs that are not ordered, or have one element in that
  // dimension, are compared by tolerance.
  bool argmax = false;
};

struct GoldenMismatch {
  std::string problem;  // "element [0, 3] is 2.5, expected 1.5 (17 of 640 differ)"
  std::string at, got,
      expected;  // of the first element or row that fails: "[0, 3]"; empty if the problem is not about an element
  uint64_t wrong = 0, compared = 0;  // elements; with argmax, rows
};

// Both are in host memory, with any strides; `got` is undefined if the model returned None. Returns nullopt if the
// output passes.
std::optional<GoldenMismatch> compare_golden(const Tensor& expected, const Tensor& got,
                                             const GoldenTolerance& tolerance);

}  // namespace sconce::server::weights
