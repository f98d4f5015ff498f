// Finds how a generated CPU kernel uses its tensors' rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"
#include "package_format/wrapper/rows/syntax.h"

namespace sconce::rows {

// An argument of a call: a tensor's memory from an element on, an integer, or another number.
struct KernelArgument {
  int storage = -1;
  Polynomial integer;
  bool is_integer = false;
  Dependence from;
};

// Evaluates a kernel's body, with all iterations of a loop taken together: records its stores, and marks tensors that
// it does not write row by row as mixed. Returns the text that it does not understand; empty if there is none. `steps`
// is the remaining budget.
std::string run_kernel(const Syntax& syntax, const std::vector<Parameter>& parameters, Index body,
                       const std::vector<KernelArgument>& arguments, RowState& state, int64_t& steps);

}  // namespace sconce::rows
