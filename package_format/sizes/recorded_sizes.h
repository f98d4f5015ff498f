// Sizes that sconce.export records beside the model, because generated code does not say them: what was declared for a
// minimum of 2, and which sizes are computed from others where only a guard of the export says so (Dim.AUTO), or where
// torch is older than 2.13 and writes no expressions.
//
// Metadata "sconce_sizes": {"version": 1, "inputs": [[4, {"size": "s77 // 2", "min": 1, "max": 8}], ...]}, an array for
// each input and a number or an object for each dimension; "min" and "max" may be missing.
#pragma once

#include "sconce/package.h"

namespace sconce {

// Completes the inputs' dimensions by spec.metadata. What the source says of them must agree: kCorruptPackage if the
// text is no such JSON, or describes other inputs. Another version changes nothing.
void apply_recorded_sizes(ModelSpec& spec);

}  // namespace sconce
