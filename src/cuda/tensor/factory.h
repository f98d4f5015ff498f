// Makes tensors on a device: what the factories of the C ABI and those called by name share, and the latter ones. They
// take complex numbers too. Signatures follow src/tensor/dimensions.h and factory.h; the default device is the lane's
// or self's.
#pragma once

#include <optional>

#include "sconce/tensor.h"
#include "src/tensor/scalar.h"

namespace sconce::cuda {

// Throws kUnsupported for layouts other than strided and for pinned memory.
void check_maker(const char* name, std::optional<int32_t> layout, std::optional<int32_t> pin_memory);
Tensor make_like(const char* name, const Tensor& self, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);

Tensor full(IntSpan size, Scalar value, std::optional<DType> dtype, std::optional<int32_t> layout,
            std::optional<Device> device, std::optional<int32_t> pin_memory);
Tensor full_like(const Tensor& self, Scalar value, std::optional<DType> dtype, std::optional<int32_t> layout,
                 std::optional<Device> device, std::optional<int32_t> pin_memory, std::optional<int32_t> memory_format);
Tensor new_full(const Tensor& self, IntSpan size, Scalar value, std::optional<DType> dtype,
                std::optional<int32_t> layout, std::optional<Device> device, std::optional<int32_t> pin_memory);
// aten::zeros and aten::ones; copy.h has another zeros().
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
