#include "src/runner/constants/device_memory.h"

#include <memory>
#include <utility>

namespace sconce::runner {

size_t place_on_device(size_t bytes, size_t& total) {
  constexpr size_t kAlignment = 256;
  const size_t offset = total;
  total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

StoragePtr part_of(const StoragePtr& memory, size_t offset, size_t bytes) {
  auto owner = std::make_unique<StoragePtr>(memory);
  auto part = StoragePtr::adopt(new Storage(
      static_cast<std::byte*>(memory->data()) + offset, bytes, memory->device(),
      [](void*, size_t, void* context) noexcept { delete static_cast<StoragePtr*>(context); }, owner.get()));
  owner.release();
  return part;
}

Tensor part_of(const StoragePtr& memory, size_t offset, const Tensor& like) {
  StoragePtr storage = part_of(memory, offset, like.storage()->bytes());
  storage->set_immutable(true);
  return Tensor(std::move(storage), like.dtype(), like.sizes(), like.strides(), like.storage_offset(), like.layout());
}

}  // namespace sconce::runner
