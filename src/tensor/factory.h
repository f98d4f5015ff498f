// Shared arguments of operators that make tensors: dtype, layout, device, pin_memory and memory_format. Matches
// at::empty and at::empty_like, torch 2.15.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/operators/arguments.h"

namespace sconce {

// c10::MemoryFormat
enum class MemoryFormat : int32_t { kContiguous = 0, kPreserve = 1, kChannelsLast = 2, kChannelsLast3d = 3 };
constexpr DType kDefaultDType = DType::kFloat32;

// kUnsupported "NAME: ..." for another layout than strided, another device than the CPU, or pinned memory.
void check_factory(std::string_view name, OptEnum layout, OptDevice device, OptEnum pin_memory);
// kInvalidArgument "NAME: ..." for an unknown number.
MemoryFormat memory_format_in(std::string_view name, OptEnum number, MemoryFormat otherwise);

// Uninitialised, row-major. kInvalidArgument "NAME: ..." for negative sizes.
Tensor empty_checked(std::string_view name, IntSpan sizes, DType dtype);
// Strides of `sizes` in a format; kPreserve counts as contiguous. kInvalidArgument for a wrong rank.
void format_strides(std::string_view name, IntSpan sizes, MemoryFormat format, int64_t* strides);
// Uninitialised; kPreserve counts as contiguous.
Tensor empty_in_format(std::string_view name, IntSpan sizes, DType dtype, MemoryFormat format, Device device = {});
// Uninitialised, with the sizes and device of `self`; kPreserve as in empty_like of copy.h.
Tensor empty_in_format(std::string_view name, const Tensor& self, DType dtype, MemoryFormat format);
// The dtype of the parts of a complex dtype; other dtypes unchanged.
DType value_dtype(DType dtype) noexcept;

// Row-major or channels-last, as at::Tensor::suggest_memory_format decides for rank 4 and 5.
bool is_channels_last(const Tensor& tensor) noexcept;     // rank 4, every stride matches (size-1 dims are free)
bool is_channels_last_3d(const Tensor& tensor) noexcept;  // rank 5
MemoryFormat suggested_format(const Tensor& tensor) noexcept;

}  // namespace sconce
