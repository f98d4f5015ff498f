// RowAnswers: what a run answered, taken apart into the rows it was asked for, and how two of them are compared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"
#include "server/signature/interface.h"

namespace sconce::server {

struct RowAnswers {
  struct Output {
    bool none = true;  // the model returned None
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;  // without the rows
    size_t row_bytes = 0;
    std::vector<std::byte> bytes;
    std::span<const std::byte> row(size_t index) const {
      return std::span(bytes).subspan(index * row_bytes, row_bytes);
    }
  };
  std::vector<Output> outputs;

  size_t bytes() const;
  // "Rows" are blocks of `block` rows of the model. Returns what is wrong with the outputs; empty: nothing.
  std::string take(std::span<const Tensor> from, int64_t rows, int64_t block, const TensorNames& names);
};

// How far an answer may be from what is expected of it. Each output of each row has a bound of its own.
struct RowTolerance {
  double of_largest = 0;  // times the largest of the row's own finite elements
  double of_nudge = 0;    // times what nudging the row's inputs by a unit in the last place changes there
  bool integers = false;  // integers may differ where nudging changes them, too
  bool garbage = false;   // what is not finite alone may be anything
};

// A row's answers by itself: nudged are those to its nudged inputs.
struct RowAlone {
  RowAnswers answers;
  std::vector<RowAnswers> nudged;
};

// Whether row `where` of `got` is row `at` of `expected`. What is finite stays finite, what is not stays not.
bool row_agrees(const RowAnswers& expected, size_t at, const RowAnswers& got, size_t where, const RowAlone& alone,
                const RowTolerance& tolerance);
// Whether nudging leaves so much of the row's answers that row_agrees() means something.
bool row_is_steady(const RowAlone& alone, const RowTolerance& tolerance);

// Half a unit in the last place of 1; 0 for dtypes that are not floating-point or have 8 bits.
double rounding_unit(DType dtype) noexcept;

}  // namespace sconce::server
