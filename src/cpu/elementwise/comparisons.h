// Order among elements: comparisons, extrema of two, limits, signs. Operands broadcast and are promoted as by
// at::TensorIterator; complex numbers only if said so. Any strides. Match aten's of the same names, torch 2.15.
#pragma once

#include <optional>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

// Results bool.
Tensor lt(const Tensor& self, const Tensor& other);
Tensor lt_number(const Tensor& self, Scalar other);
Tensor le(const Tensor& self, const Tensor& other);
Tensor le_number(const Tensor& self, Scalar other);
Tensor gt(const Tensor& self, const Tensor& other);
Tensor gt_number(const Tensor& self, Scalar other);
Tensor ge(const Tensor& self, const Tensor& other);
Tensor ge_number(const Tensor& self, Scalar other);
Tensor isposinf(const Tensor& self);
Tensor isneginf(const Tensor& self);
Tensor signbit(const Tensor& self);
// Whether an element is, or is not, among those of the other.
Tensor isin(const Tensor& elements, const Tensor& test_elements, bool assume_unique, bool invert);
Tensor isin_number(const Tensor& elements, Scalar test_element, bool assume_unique, bool invert);
Tensor isin_of_number(Scalar element, const Tensor& test_elements, bool assume_unique, bool invert);

// NaN wins; in fmax and fmin it loses.
Tensor maximum(const Tensor& self, const Tensor& other);
Tensor minimum(const Tensor& self, const Tensor& other);
Tensor fmax(const Tensor& self, const Tensor& other);
Tensor fmin(const Tensor& self, const Tensor& other);
// No bool between two limits. NaN stays, a limit that is NaN wins; if the limits cross, the upper one wins.
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max);
Tensor clamp_tensor(const Tensor& self, const Tensor* min, const Tensor* max);
Tensor clamp_min(const Tensor& self, Scalar min);
Tensor clamp_max(const Tensor& self, Scalar max);
Tensor clamp_min_tensor(const Tensor& self, const Tensor& min);
Tensor clamp_max_tensor(const Tensor& self, const Tensor& max);

Tensor sign(const Tensor& self);
Tensor heaviside(const Tensor& self, const Tensor& values);  // of one dtype
// Replaces NaN by `nan` (0), infinities by the others (the largest numbers). Complex numbers by their parts.
Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf);

}  // namespace sconce::cpu
