// New weights from Python: arrays and tensors by name, or a file. All need the GIL, which they release for the work.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "python/native/loaded_model.h"
#include "sconce/weights.h"

namespace sconce::python {

// Stages a set: weights is a mapping of names to arrays, or a path of a file.
void stage(LoadedModel& loaded, nb::handle weights, UpdateOptions options);
// The constants of the active set as NumPy arrays (copies) by name; sconce.Tensor for dtypes that NumPy lacks.
nb::dict state_dict(LoadedModel& loaded);

}  // namespace sconce::python
