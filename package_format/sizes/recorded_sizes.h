// Sizes that sconce.export records beside the model, because generated code lacks them: the declared minimum where the
// recorded one is 2, and sizes computed from others, if only a guard of the export records that (Dim.AUTO) or torch is
// older than 2.13 and writes no expressions.
//
// Metadata "sconce_sizes": {"version": 1, "inputs": [[4, {"size": "s77 // 2", "min": 1, "max": 8}], ...]}, an array
// for each input and a number or an object for each dimension; "min" and "max" may be missing.
#pragma once

#include "sconce/package.h"

namespace sconce {

// Completes the inputs' dimensions by spec.metadata, which must agree with the source. kCorruptPackage if the text is
// not such JSON, or describes other inputs. Another version changes nothing.
void apply_recorded_sizes(ModelSpec& spec);

}  // namespace sconce
