// Tensors made of numbers alone: evenly spaced ones, the identity, positions of triangles. Match aten::arange, range,
// linspace, logspace, eye, tril_indices and triu_indices (torch 2.15, CPU). kInvalidArgument where ATen refuses.
#pragma once

#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::cpu {

// From start in steps up to, but without, end; int64 for whole numbers if no dtype is given, else float32.
Tensor arange(Scalar start, Scalar end, Scalar step, OptType dtype, OptEnum layout, OptDevice device,
              OptEnum pin_memory);
// Includes end.
Tensor range(Scalar start, Scalar end, Scalar step, OptType dtype, OptEnum layout, OptDevice device,
             OptEnum pin_memory);
// `steps` numbers from start to end, both included; float32 (complex64) if no dtype is given.
Tensor linspace(Scalar start, Scalar end, int64_t steps, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory);
Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory);  // base to those powers

Tensor eye(int64_t n, int64_t m, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
// [2, count]: rows and columns.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, OptType dtype, OptEnum layout, OptDevice device,
                    OptEnum pin_memory);

}  // namespace sconce::cpu
