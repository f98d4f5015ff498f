// Makes rows for a model: what requests could hold, as hostile as a neighbour can be.
#pragma once

#include <cstdint>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::server {

// Kinds of floating-point rows. Integers and booleans are 0 and 1, which index most tables; kinds differ in how many
// are 1.
enum class RowKind : int8_t {
  kOrdinary,
  kSmall,       // a thousandth of ordinary ones
  kConstant,    // one value throughout
  kZeros,       // nothing but 0
  kLargeUp,     // a thousand times ordinary ones, positive
  kLargeDown,   // the same, negative
  kNotANumber,  // all NaN
  kInfinite,    // infinities of both signs among ordinary numbers
};

struct ProbeRow {
  RowKind kind = RowKind::kOrdinary;
  uint32_t seed = 0;
  // Not 0: a seed that makes each float larger or smaller by RowStyle::unit, or leaves it.
  uint32_t nudge = 0;
};

struct RowStyle {
  bool unsigned_values = false;  // ordinary numbers are from 0 to 1, for models that refuse others
  double scale = 1;              // of ordinary numbers
  double unit = 0;               // relative size of a nudge
};

// Fills `count` rows of an input from row `first` on. A row has the same elements wherever it stands. Rows are stored
// one after the other. Returns false for unsupported dtypes. Where `bounds` tell what the model takes, numbers lie
// within them: the largest are the bounds themselves, and none is NaN or infinite.
bool fill_rows(const Tensor& input, size_t ordinal, int64_t first, int64_t count, const ProbeRow& row,
               const RowStyle& style, const ValueBounds& bounds);

}  // namespace sconce::server
