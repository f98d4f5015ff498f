// Parses the JSON of a package. nlohmann's parser accepts any depth, but code that walks, copies or prints its values
// recurses. So the depth is limited before any value is built.
#pragma once

#include <string_view>

#include "package_format/text/json_value.h"

namespace sconce {

constexpr int kMaxJsonDepth = 256;  // PyTorch's own members have about 20 levels

// Returns a discarded value if the text is not JSON. kCorruptPackage, naming `what`, if it is nested deeper than
// `levels`.
SortedJson parse_json(std::string_view text, std::string_view what, int levels = kMaxJsonDepth);

}  // namespace sconce
