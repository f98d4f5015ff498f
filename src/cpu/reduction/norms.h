// Norms and further sums over dimensions; over all of them if none is named. Floats of every width and complex
// numbers, summed in double; any strides; row-major results. Match aten's of the same names (torch 2.15, CPU).
#pragma once

#include <array>
#include <optional>

#include "src/tensor/scalar.h"

namespace sconce::cpu {

// Of the absolute values: the largest for an order of infinity, the smallest for -infinity, the number of non-zero
// ones for 0.
Tensor linalg_vector_norm(const Tensor& self, Scalar ord, std::optional<IntSpan> dim, bool keepdim,
                          std::optional<DType> dtype);
Tensor linalg__powsum(const Tensor& self, Scalar ord, std::optional<IntSpan> dim, bool keepdim,
                      std::optional<DType> dtype);               // the sum of their powers
Tensor dist(const Tensor& self, const Tensor& other, Scalar p);  // the norm of the difference

Tensor logsumexp(const Tensor& self, IntSpan dim, bool keepdim);  // integers as float32
// NaN counts as 0; integers and bool as by sum.
Tensor nansum(const Tensor& self, std::optional<IntSpan> dim, bool keepdim, std::optional<DType> dtype);
Tensor count_nonzero(const Tensor& self, std::optional<IntSpan> dim);  // int64, of any dtype
std::array<Tensor, 2> std_mean(const Tensor& self, std::optional<IntSpan> dim, std::optional<Scalar> correction,
                               bool keepdim);

// The exclusive or of the elements as 64 bits: floats as double, integers extended by their sign. uint64.
Tensor hash_tensor(const Tensor& self, IntSpan dim, bool keepdim, int64_t mode);

}  // namespace sconce::cpu
