// Finds the constants and inputs that a generated graph writes. Each replica has its own copy of such constants; all
// others are shared.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ConstantSpec::mutated. `text` is the whole source. `writable`: the compiler placed the weights so that the model
// may write them, which it does exactly if run_impl writes some; code that folds constants may write them in any case.
// A constant counts as written unless every use of it is known to only read. If run_impl writes but no use is found
// that does, assume_mutated() says what counts as written. Sets TensorSpec::may_be_written of inputs by the source
// alone: an input counts as written unless every use of it is known to only read.
void find_mutated(std::string_view text, const WrapperSource& source, bool writable, ModelSpec& spec);

// Sets ConstantSpec::mutated and assumed of constants of which nothing is known but the type: what PyTorch compiles
// writes buffers and tensor constants, neither parameters nor what oneDNN packed. Of what has only parameters all count
// as written if `some` is.
void assume_mutated(std::span<ConstantSpec* const> constants, bool some);

}  // namespace sconce
