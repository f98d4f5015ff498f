// Makes tensors on a device: the part shared by the factories of the C ABI and those called by name, and the latter.
// They take complex numbers too. Signatures follow src/tensor/dimensions.h and factory.h; the default device is the
// current stream's or self's.
#pragma once

#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::cuda {

// Throws kUnsupported for layouts other than strided and for pinned memory.
void check_maker(const char* name, OptEnum layout, OptEnum pin_memory);
Tensor make_like(const char* name, const Tensor& self, OptType dtype, OptEnum layout, OptDevice device,
                 OptEnum pin_memory, OptEnum memory_format);

Tensor full(IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor full_like(const Tensor& self, Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format);
Tensor new_full(const Tensor& self, IntSpan size, Scalar value, OptType dtype, OptEnum layout, OptDevice device,
                OptEnum pin_memory);
// aten::zeros and aten::ones; copy.h has another zeros().
Tensor made_zeros(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor made_ones(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor zeros_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                  OptEnum memory_format);
Tensor ones_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                 OptEnum memory_format);
Tensor new_zeros(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor new_ones(const Tensor& self, IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);
Tensor scalar_tensor(Scalar value, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory);

}  // namespace sconce::cuda
