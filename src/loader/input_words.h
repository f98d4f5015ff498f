// What a model's code says about its inputs where its source was left out: the words of the checks that PyTorch
// compiles into it. The checks themselves stay off, as they are in PyTorch: they refuse one row where 2 is the recorded
// minimum.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sconce::loader {

// By input: how many dimensions it has at least, as far as checks of one speak of them.
std::vector<int> least_ranks(std::span<const std::byte> code);

}  // namespace sconce::loader
