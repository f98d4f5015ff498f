// Which constants and inputs a generated graph writes. Such constants are private to a replica, all others are shared.
#pragma once

#include <string_view>

#include "package_format/wrapper/wrapper_source.h"
#include "sconce/package.h"

namespace sconce {

// Sets ConstantSpec::mutated. `text` is all of the source. `writable`: the compiler placed the weights so that the
// model may write them, which it does just if run_impl writes some; what folds constants may write them all the same. A
// constant is taken for written unless every use of it is known to read. Where run_impl writes but no use of a constant
// is found that does, all but parameters are taken for written. TensorSpec::may_be_written of a CUDA model's inputs
// likewise, by the source alone.
void find_mutated(std::string_view text, const WrapperSource& source, bool writable, ModelSpec& spec);

}  // namespace sconce
