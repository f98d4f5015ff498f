// Rules for operators that generated code calls by name: the batch dimension of the results, given that of the
// arguments.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"

namespace sconce::rows {

// An argument as written in the call.
struct OperatorArgument {
  const View* tensor = nullptr;
  std::optional<int64_t> integer;
  std::vector<int64_t> list;  // for known integers
  bool output = false;        // the address of a handle for a result
};

struct OperatorResult {
  BatchPlace place;
  // for a dense tensor with the batch outermost; empty: the rule does not determine them
  std::vector<Polynomial> sizes;
};

struct OperatorResults {
  bool known = false;                // whether there is a rule
  int written = -1;                  // index of the argument that is the result, for operators that write it
  std::vector<OperatorResult> list;  // for the outputs in order, or for the written argument
};

// `name` is without "aoti_torch_" and device: "addmm_out", "topk".
OperatorResults operator_rows(std::string_view name, const std::vector<OperatorArgument>& arguments, RowState& state);

}  // namespace sconce::rows
