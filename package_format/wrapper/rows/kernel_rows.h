// Reads how a generated CPU kernel uses its tensors' rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"
#include "package_format/wrapper/rows/syntax.h"

namespace sconce::rows {

// What a call passes for a parameter: a tensor's memory from an element on, an integer, or another number.
struct KernelArgument {
  int storage = -1;
  Polynomial integer;
  bool is_integer = false;
  Dependence from;
};

// Runs a kernel's body, with each loop's iterations taken together: notes what it stores, and mixes tensors that it
// writes not row by row. Returns the text that it does not understand; empty: none. `steps` is what may still be done.
std::string run_kernel(const Syntax& syntax, const std::vector<Parameter>& parameters, Index body,
                       const std::vector<KernelArgument>& arguments, RowState& state, int64_t& steps);

}  // namespace sconce::rows
