// Difference: how far the elements of two tensors are apart. Two sets of weights are judged by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/weight_sources.h"

namespace sconce {

// Of a and b, which have one dtype and the same number of elements. Sums are over elements that are finite in both. The
// parts of complex numbers count as two elements, the halves of a float4_e2m1fn_x2 as well.
struct Difference {
  uint64_t elements = 0;
  uint64_t changed = 0;                         // whose values differ; NaN equals NaN, 0 equals -0
  uint64_t not_finite_a = 0, not_finite_b = 0;  // NaN or infinite
  uint64_t finite = 0;                          // finite in both
  double largest = 0;                           // of |b - a|
  uint64_t largest_at = 0;                      // the first element with it, row-major
  double sum = 0;                               // of |b - a|
  double squares_a = 0, squares_b = 0;          // sums of a * a and b * b
  double squares = 0;                           // sum of (b - a) * (b - a)
  double products = 0;                          // sum of a * b

  double mean() const noexcept;      // of |b - a|; 0 if there are no such elements
  double relative() const noexcept;  // ||b - a|| / ||a||; infinite if only a is zero, 0 if both are
  double cosine() const noexcept;    // a.b / (||a|| ||b||); 1 if both are zero, 0 if one is
};

// Adds the elements of both, row-major and little endian, behind those that were added before. a and b have whole
// elements and one size; any alignment.
void add_difference(Difference& difference, DType dtype, std::span<const std::byte> a, std::span<const std::byte> b);

// A tensor of two files or sets.
struct TensorDifference {
  enum class Kind : int8_t {
    kSame,      // equal values
    kChanged,   // as `difference` says
    kReshaped,  // another dtype or shape: values are not compared
    kOnlyA,
    kOnlyB,
  };
  std::string name;
  Kind kind = Kind::kSame;
  WeightEntry a, b;  // dtype and shape; empty names where a side lacks it
  Difference difference;
};

// Compares two files of weights, of any formats that WeightFile::open takes, in the byte order of the tensors' names.
// Neither is read into memory as a whole. Errors of WeightFile; kInvalidArgument for a name that a file has twice.
std::vector<TensorDifference> compare_weights(WeightFile& a, WeightFile& b);

}  // namespace sconce
