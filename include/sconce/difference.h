// Difference: the distance between the elements of two tensors. Checks of new weights compare it with limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/weight_sources.h"

namespace sconce {

// Compares a and b, which have the same dtype and number of elements. Sums cover the elements that are finite in both.
// Real and imaginary part of a complex number count as two elements, and so do the two halves of a float4_e2m1fn_x2.
struct Difference {
  uint64_t elements = 0;
  uint64_t changed = 0;                         // elements whose values differ; NaN equals NaN, 0 equals -0
  uint64_t not_finite_a = 0, not_finite_b = 0;  // NaN or infinite
  uint64_t finite = 0;                          // finite in both
  double largest = 0;                           // of |b - a|
  uint64_t largest_at = 0;                      // the first element with this difference, row-major
  double sum = 0;                               // of |b - a|
  double squares_a = 0, squares_b = 0;          // sums of a * a and b * b
  double squares = 0;                           // sum of (b - a) * (b - a)
  double products = 0;                          // sum of a * b

  double mean() const noexcept;      // of |b - a|; 0 if there are no such elements
  double relative() const noexcept;  // ||b - a|| / ||a||; infinite if only a is zero, 0 if both are
  double cosine() const noexcept;    // a.b / (||a|| ||b||); 1 if both are zero, 0 if one is
};

// Adds the elements of both, row-major and little endian; they follow those of earlier calls. a and b have the same
// size, which is a multiple of the element size. Any alignment.
void add_difference(Difference& difference, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

// The difference of one tensor between two files or sets.
struct TensorDifference {
  enum class Kind : int8_t {
    kSame,      // equal values
    kChanged,   // see `difference`
    kReshaped,  // another dtype or shape: values are not compared
    kOnlyA,
    kOnlyB,
  };
  std::string name;
  Kind kind = Kind::kSame;
  WeightEntry a, b;  // dtype and shape; the name is empty on the side that lacks the tensor
  Difference difference;
};

// Compares two weight files in any format of WeightFile::open, in byte order of the tensors' names. Reads them in
// pieces, never as a whole. Throws the errors of WeightFile, and kInvalidArgument if a file has the same name twice.
std::vector<TensorDifference> compare_weights(WeightFile& a, WeightFile& b);

}  // namespace sconce
