// What packages and models say about themselves, as plain dicts for sconce/_description.py.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "sconce/package.h"
#include "sconce/weights.h"

namespace sconce::python {

namespace nb = nanobind;

nb::dict describe(const ModelSpec& spec);
nb::list describe(const std::vector<ConstantSpec>& constants);
nb::list describe(const std::vector<WeightSetInfo>& sets);

}  // namespace sconce::python
