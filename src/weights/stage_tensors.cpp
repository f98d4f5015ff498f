#include <utility>
#include <vector>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/weight_sources.h"
#include "src/device/tensor_source.h"
#include "src/support/excerpt.h"

namespace sconce {
namespace {

Tensor as_bytes(const Tensor& values) {
  return values.view_as(DType::kUInt8, values.sizes(), values.strides(), values.storage_offset());
}

// Row-major memory of an update as a tensor.
Tensor over(std::span<std::byte> memory, const Tensor& like) {
  std::vector<int64_t> strides(like.sizes().size());
  contiguous_strides(like.sizes(), strides.data());
  return Tensor::from_blob(memory.data(), like.sizes(), strides, like.dtype());
}

}  // namespace

void stage_tensors(WeightUpdate& update, std::span<const NamedTensor> tensors, size_t first) {
  std::vector<WeightEntry> entries;
  entries.reserve(tensors.size());
  for (const auto& [name, values] : tensors) {
    SCONCE_CHECK(values.defined() && values.layout() == Layout::kStrided, kInvalidArgument, "constant '", excerpt(name),
                 "': not a strided tensor");
    entries.push_back({name, values.dtype(), {values.sizes().begin(), values.sizes().end()}});
  }
  update.declare(entries);

  const auto* const taker = dynamic_cast<TensorTaker*>(&update);
  std::vector<TensorPart> taken;
  std::vector<size_t> others;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (taker && taker->takes(first + i, tensors[i].tensor))
      taken.push_back({first + i, tensors[i].tensor});
    else
      others.push_back(i);
  }
  if (!taken.empty()) dynamic_cast<TensorTaker&>(update).take(taken);
  for (const size_t i : others) {
    const Tensor& values = tensors[i].tensor;
    const std::span<std::byte> memory = update.memory(first + i);
    SCONCE_CHECK(memory.size() == values.bytes(), kInternal,
                 "memory of an update has not the size of its entry: ", excerpt(tensors[i].name));
    if (!memory.empty()) {
      Tensor place = over(memory, values);
      // Any bit pattern of a bool becomes 0 or 1.
      transfer(values.dtype() == DType::kBool ? as_bytes(values) : values, place);
    }
    update.complete(first + i);
  }
}

}  // namespace sconce
