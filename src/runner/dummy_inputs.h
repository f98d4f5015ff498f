// Inputs that fit a package's signature, for runs that nobody gave inputs for. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce {

// Sizes of the dimensions that are not fixed. Expressions of symbols ("2*s17") follow from these.
struct DummySizes {
  // By symbol, or by expression, which then says its symbol; used even if the package's range does not have them.
  std::map<std::string, int64_t> chosen = {};
  // Every other symbol is at least `others`. The n-th one, counted from 0 and with `chosen` before it, has
  // `shift + n * step` more. Ranges limit both.
  int64_t others = 16;
  int64_t shift = 0, step = 0;
  int64_t most_elements = int64_t{1} << 24;  // of all inputs together
  std::span<const AccessBound> bounds = {};  // ModelSpec::bounds: each access then lies within its tensor
};

// One tensor of zeros, or of the nearest value that TensorSpec::values allows, in host memory for each input, with its
// dtype and in the strides that strides_for() gives; gaps between elements are zero. kUnsupported if the package does
// not describe an input in full, if no sizes were found that fit its relations, or if there would be too many elements.
// names: what errors call the inputs, one for each; empty: by the names in the specs.
std::vector<Tensor> dummy_inputs(std::span<const TensorSpec> specs, DummySizes sizes = {},
                                 std::span<const std::string> names = {});

}  // namespace sconce
