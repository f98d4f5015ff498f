// Facts about the inputs of a model without source: PyTorch compiles the texts of input checks into the code. The
// checks themselves stay off, as in PyTorch, because they refuse one row if the recorded minimum is 2.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sconce::loader {

// The minimum rank of each input, according to texts that mention a dimension.
std::vector<int> least_ranks(std::span<const std::byte> code);

}  // namespace sconce::loader
