// Follows the rows of a batch through a generated graph.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/wrapper/rows/parsed_code.h"
#include "sconce/package.h"

namespace sconce::rows {

// Returns "" if every statement of run_impl is understood and each row of every output is computed from one row of the
// batch alone; else the reason why this is unknown. `batch` is the symbol of the inputs' first dimension.
std::string why_not_independent(ParsedCode& code, std::string_view batch, const ModelSpec& spec);

// The smallest value of each symbol of the inputs' sizes: 0, 1 or a recorded minimum.
using LeastSizes = std::map<std::string, int64_t, std::less<>>;

// Known facts about accesses, for all sizes from given minima on.
struct Accesses {
  std::string problem;            // why they may leave their tensors; empty: they are proved not to
  bool leave = false;             // an access is known to leave its tensor, for the smallest of these sizes
  std::vector<AccessBound> open;  // the bounds to check for given sizes
};

enum class LookAt : uint8_t {
  kSmallSizes,  // assumes that the code is correct if all sizes are 2 or more
  kAllSizes,
};

// They are known if every statement of run_impl is understood.
Accesses look_at_accesses(ParsedCode& code, const LeastSizes& least, const ModelSpec& spec, LookAt look);

}  // namespace sconce::rows
