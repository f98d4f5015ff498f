// Sorting and the largest elements. Match aten::sort, sort.stable and topk (torch 2.15, CPU). NaN counts as greatest,
// -0.0 equals 0.0. Integers, bool, float, double, half, bfloat16; no complex numbers.
#pragma once

#include <array>
#include <optional>

#include "sconce/tensor.h"

namespace sconce::cpu {

// Values and int64 positions along dim, of self's sizes, gapless in the order of self's memory. Where stable is not
// asked for, equal elements come in the order that ATen gives them, which is that of std::sort.
std::array<Tensor, 2> sort(const Tensor& self, int64_t dim, bool descending);
std::array<Tensor, 2> sort_stable(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending);

// The k largest (or smallest) along dim and their int64 positions, row-major. Among equal values the ones that ATen
// takes, in ATen's order (it is that of std::partial_sort or std::nth_element over the slice).
std::array<Tensor, 2> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted);

}  // namespace sconce::cpu
