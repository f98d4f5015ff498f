// Tracks the elements of a kernel's local arrays that were written since a row's computation began.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"
#include "package_format/wrapper/rows/syntax.h"

namespace sconce::rows {

// Kernels keep intermediate results of one row in an array that all rows use one after the other. A read gets values
// of the same row if it reads only elements that an earlier loop, or the same iteration, has written.
class WrittenElements {
 public:
  // `certain`: the statement runs in every iteration.
  void write(Name array, const Polynomial& element, const Dependence& value, bool certain, RowState& state);
  // nullopt if the elements may be unwritten. `open`: the variables of the enclosing loops.
  std::optional<Dependence> read(Name array, const Polynomial& element, const std::vector<Atom>& open,
                                 const RowState& state) const;
  void forget(Name array);
  void clear() { writes_.clear(); }

 private:
  struct Write {
    Name array;
    Polynomial element;
    Dependence value;
  };
  std::vector<Write> writes_;
};

}  // namespace sconce::rows
