// Tensors made on a device: what makers of the C ABI and by name have in common, and those that are called by name for
// complex numbers. Signatures as src/tensor/dimensions.h and factory.h have them; without a device, that of the lane or
// of self.
#pragma once

#include <optional>

#include "sconce/tensor.h"
#include "src/tensor/scalar.h"

namespace sconce::cuda {

// kUnsupported for layouts other than the strided one, and for pinned memory.
void check_maker(const char* name, std::optional<int32_t> layout, std::optional<int32_t> pin_memory);
Tensor make_like(const char* name, const Tensor& self, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);

Tensor full(IntSpan size, Scalar value, std::optional<DType> dtype, std::optional<int32_t> layout,
            std::optional<Device> device, std::optional<int32_t> pin_memory);
Tensor full_like(const Tensor& self, Scalar value, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);
Tensor new_full(const Tensor& self, IntSpan size, Scalar value, std::optional<DType> dtype,
                std::optional<int32_t> layout, std::optional<Device> device, std::optional<int32_t> pin_memory);
// 0 and 1; no constants.
Tensor made_zeros(IntSpan size, std::optional<DType> dtype, std::optional<int32_t> layout, std::optional<Device> device,
                  std::optional<int32_t> pin_memory);
Tensor made_ones(IntSpan size, std::optional<DType> dtype, std::optional<int32_t> layout, std::optional<Device> device,
                 std::optional<int32_t> pin_memory);
Tensor zeros_like(const Tensor& self, std::optional<DType> dtype, std::optional<int32_t> layout,
                  std::optional<Device> device, std::optional<int32_t> pin_memory,
                  std::optional<int32_t> memory_format);
Tensor ones_like(const Tensor& self, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);
Tensor new_zeros(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory);
Tensor new_ones(const Tensor& self, IntSpan size, std::optional<DType> dtype, std::optional<int32_t> layout,
                std::optional<Device> device, std::optional<int32_t> pin_memory);
Tensor scalar_tensor(Scalar value, std::optional<DType> dtype, std::optional<int32_t> layout,
                     std::optional<Device> device, std::optional<int32_t> pin_memory);

}  // namespace sconce::cuda
