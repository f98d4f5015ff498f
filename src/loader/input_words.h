// What the code of a model without source says about its inputs: PyTorch compiles the texts of input checks into it.
// The checks themselves stay off, as in PyTorch, because they refuse one row if the recorded minimum is 2.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sconce::loader {

// For each input, how many dimensions it has at least, according to texts that mention one.
std::vector<int> least_ranks(std::span<const std::byte> code);

}  // namespace sconce::loader
