// Packages from what Python has: a path, bytes, or a file object.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "sconce/package.h"

namespace sconce::python {

namespace nb = nanobind;

// Needs the GIL, which it releases while it reads. Errors of Package::open; kInvalidArgument for other objects.
std::shared_ptr<const Package> open_package(nb::handle source);
// The path of a str or os.PathLike; empty if the object is neither.
std::string path_of(nb::handle source);

}  // namespace sconce::python
