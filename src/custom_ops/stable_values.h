// StableIValue: values of PyTorch's stable ABI, 64 bits each, typed by the schema. ABI: torch/csrc/stable, torch 2.9 to
// 2.15; the same in all of them.
//
//   Tensor            owning AtenTensorHandle
//   int, float, bool  the bits, low bytes first; dtype, layout, memory format: int32
//   Device            index in the low half, type in the high half
//   T?                0, or a pointer to a StableIValue made by new
//   T[]               std::vector<StableIValue>*
//   str               std::string*
//   Generator         a pointer, not owning
#pragma once

#include <cstdint>
#include <vector>

#include "src/custom_ops/operator/schema.h"

namespace sconce::custom_ops {

using StableIValue = uint64_t;
using StableList = std::vector<StableIValue>;

// The receiver owns the object that the result points to. Throws kUnsupported for types that the stable ABI lacks.
StableIValue to_stable(const Type& type, const Value& value);
// Takes ownership of the object that `stable` points to, even if it throws.
Value from_stable(const Type& type, StableIValue stable);

}  // namespace sconce::custom_ops
