// Rules for operators that generated code calls by name: where results have the batch, given where arguments have it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"

namespace sconce::rows {

// An argument as the call spells it.
struct OperatorArgument {
  const View* tensor = nullptr;
  std::optional<int64_t> integer;
  std::vector<int64_t> list;  // of integers that are known
  bool output = false;        // the address of a handle for a result
};

struct OperatorResult {
  BatchPlace place;
  std::vector<Polynomial> sizes;  // of a dense tensor with the batch outermost; empty: not known by the rule
};

struct OperatorResults {
  bool known = false;                // whether there is a rule
  int written = -1;                  // the argument that is the result, for operators that write it
  std::vector<OperatorResult> list;  // of the outputs in order, or of the written argument
};

// `name` is without "aoti_torch_" and device: "addmm_out", "topk".
OperatorResults operator_rows(std::string_view name, const std::vector<OperatorArgument>& arguments, RowState& state);

}  // namespace sconce::rows
