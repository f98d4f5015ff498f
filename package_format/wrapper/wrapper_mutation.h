// Finds the constants and inputs that a generated graph writes. Each replica has its own copy of such constants; all
// others are shared.
#pragma once

#include <span>
#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ConstantSpec::mutated. `text` is the whole source. `writable`: the compiler placed the weights in writable
// memory, which it does exactly if run_impl writes some of them; code that folds constants may write them in any case.
// A constant counts as written unless every use of it is known to be a read. If run_impl writes but no write is found,
// assume_mutated() decides which constants count as written. Sets TensorSpec::may_be_written of inputs by the source
// alone: an input counts as written unless every use of it is known to be a read.
void find_mutated(std::string_view text, const WrapperSource& source, bool writable, ModelSpec& spec);

// Sets ConstantSpec::mutated and assumed for constants of which only the type is known. PyTorch's generated code
// writes buffers and tensor constants, but neither parameters nor constants packed by oneDNN. If all constants are
// parameters, all of them count as written if `some` is true.
void assume_mutated(std::span<ConstantSpec* const> constants, bool some);

}  // namespace sconce
