// Compares a tensor with the one that a case records. The answer is empty where they agree, else what differs.
#pragma once

#include <span>
#include <string>

#include "sconce/tensor.h"
#include "tests/conformance/case.h"

namespace sconce::conformance {

// dtype, shape and strides.
std::string compare_meta(const Tensor& got, const TensorCase& want);
// Elements: |got - want| <= atol + rtol * |want|, NaN equals NaN; integers and bools exactly. `storage` is the wanted
// tensor's. Both in main memory; shapes are equal.
std::string compare_values(const Tensor& got, const TensorCase& want, std::span<const std::byte> storage, double rtol,
                           double atol);
// Elements bit by bit.
std::string compare_bits(const Tensor& got, const TensorCase& want, std::span<const std::byte> storage);

}  // namespace sconce::conformance
