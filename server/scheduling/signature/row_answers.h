// RowAnswers: the outputs of a run split into rows, and the comparison of two such results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/tensor.h"
#include "server/scheduling/signature/model_signature.h"

namespace sconce::server::scheduling {

struct RowAnswers {
  struct Output {
    bool none = true;  // the model returned None
    DType dtype = DType::kFloat32;
    std::vector<int64_t> shape;  // without the row dimension
    size_t row_bytes = 0;
    std::vector<std::byte> bytes;
    std::span<const std::byte> row(size_t index) const {
      return std::span(bytes).subspan(index * row_bytes, row_bytes);
    }
  };
  std::vector<Output> outputs;

  size_t bytes() const;
  // Here a row is a block of `block` rows of the model. Returns the defect of the outputs, or "".
  std::string take(std::span<const Tensor> from, int64_t rows, int64_t block, const TensorNames& names);
};

// How far an answer may differ from the expected one. Each output of each row has its own bound.
struct RowTolerance {
  double of_largest = 0;  // times the largest finite element of the row's output
  double of_nudge = 0;    // times its change when the row's inputs are nudged by one unit in the last place
  bool integers = false;  // integers may differ if nudging changes them too
  bool garbage = false;   // an element that is not finite when run alone may become anything
};

// A row's answers when run alone, and those to its nudged inputs.
struct RowAlone {
  RowAnswers answers;
  std::vector<RowAnswers> nudged;
};

// Whether row `where` of `got` matches row `at` of `expected`. Finite elements must stay finite, and others not finite.
bool row_agrees(const RowAnswers& expected, size_t at, const RowAnswers& got, size_t where, const RowAlone& alone,
                const RowTolerance& tolerance);
// Whether enough of the row's answers is stable under nudging for row_agrees() to be meaningful.
bool row_is_steady(const RowAlone& alone, const RowTolerance& tolerance);

// Half a unit in the last place of 1; 0 for dtypes that are not floating-point or have 8 bits.
double rounding_unit(DType dtype) noexcept;

}  // namespace sconce::server::scheduling
