// NumPy's C API, imported once (numpy_arrays.cpp). Python.h comes first: nanobind chooses its limits.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL sconce_numpy_api
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#ifndef SCONCE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
