// Makes rows for trial runs of a model: values that requests could hold, including extreme ones.
#pragma once

#include <cstdint>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::server::scheduling {

// Kinds of floating-point rows. Integers and booleans are 0 and 1, which are valid indices of most tables; the kinds
// differ in the share of ones.
enum class RowKind : int8_t {
  kOrdinary,
  kSmall,       // a thousandth of ordinary ones
  kConstant,    // the same value in all elements
  kZeros,       // only 0
  kLargeUp,     // a thousand times ordinary ones, positive
  kLargeDown,   // the same, negative
  kNotANumber,  // all NaN
  kInfinite,    // infinities of both signs among ordinary numbers
};

struct ProbeRow {
  RowKind kind = RowKind::kOrdinary;
  uint32_t seed = 0;
  // Not 0: a seed for nudging each float up or down by RowStyle::unit, or not at all.
  uint32_t nudge = 0;
};

struct RowStyle {
  bool unsigned_values = false;  // ordinary numbers are from 0 to 1, for models that reject others
  double scale = 1;              // of ordinary numbers
  double unit = 0;               // relative size of a nudge
};

// Fills rows `first` to `first` + `count` - 1 of an input. A row has the same elements at every position. Rows are
// contiguous. Returns false for unsupported dtypes. If `bounds` limit the model's inputs, numbers lie within them: the
// largest are the bounds themselves, and none is NaN or infinite.
bool fill_rows(const Tensor& input, size_t ordinal, int64_t first, int64_t count, const ProbeRow& row,
               const RowStyle& style, const ValueBounds& bounds);

}  // namespace sconce::server::scheduling
