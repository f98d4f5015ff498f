// JSON of a package. nlohmann's parser takes any depth, but what walks, copies or prints its values calls itself for
// each level, so depth is bounded before anything is built.
#pragma once

#include <string_view>

#include "package_format/text/json_value.h"

namespace sconce {

constexpr int kMaxJsonDepth = 256;  // PyTorch's own members have about 20 levels

// A discarded value where the text is no JSON. kCorruptPackage, naming `what`, where it is nested deeper than `levels`.
SortedJson parse_json(std::string_view text, std::string_view what, int levels = kMaxJsonDepth);

}  // namespace sconce
