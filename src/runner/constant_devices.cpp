// Constant sets on devices: one piece of memory each, filled from where the values lie.
#include <algorithm>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constant_set.h"

namespace sconce {
namespace {

constexpr size_t kAlignment = 256;

// A tensor over part of a piece of device memory, which it keeps.
Tensor part_of(const StoragePtr& memory, size_t offset, const Tensor& like) {
  auto storage = StoragePtr::adopt(new Storage(
      static_cast<std::byte*>(memory->data()) + offset, like.storage()->bytes(), memory->device(),
      [](void*, size_t, void* context) noexcept { delete static_cast<StoragePtr*>(context); }, new StoragePtr(memory)));
  storage->set_immutable(true);
  return Tensor(std::move(storage), like.dtype(), like.sizes(), like.strides(), like.storage_offset(), like.layout());
}

}  // namespace

const std::vector<Tensor>& ConstantSet::on(Device device, const ConstantTable& table, const ConstantSet* before) const {
  if (device.type == DeviceType::kCpu) return tensors_;
  const std::lock_guard lock(devices_mutex_);
  for (const auto& made : devices_)
    if (made->device == device) return made->tensors;
  const std::vector<Tensor>* shared = before && before != this ? &before->on(device, table, nullptr) : nullptr;

  auto made = std::make_unique<OnDevice>();
  made->device = device;
  made->tensors.resize(tensors_.size());
  struct Piece {
    const Storage* from;
    size_t offset;
  };
  std::vector<Piece> pieces;  // each storage once, as aliases share memory
  size_t total = 0;
  const auto wanted = [&](size_t i) {
    return tensors_[i].defined() && table.stored()[i].spec.device.value_or(Device{}).type == device.type;
  };
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (!wanted(i)) {
      made->tensors[i] = tensor;  // constants that the model keeps on the CPU
    } else if (shared && before->tensors()[i].defined() && before->tensors()[i].storage() == tensor.storage()) {
      made->tensors[i] = (*shared)[i];
    } else if (std::none_of(pieces.begin(), pieces.end(),
                            [&](const Piece& piece) { return piece.from == tensor.storage().get(); })) {
      pieces.push_back({tensor.storage().get(), total});
      total += (tensor.storage()->bytes() + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  DeviceBackend& backend = device_backend(device);
  const std::unique_ptr<DeviceLane> lane = backend.make_lane(device);
  const DeviceLane::Scope scope(lane.get());
  const StoragePtr memory = backend.allocate(std::max<size_t>(total, 1), device);
  std::vector<Upload> uploads;
  for (const Piece& piece : pieces)
    uploads.push_back({{static_cast<const std::byte*>(piece.from->data()), piece.from->bytes()},
                       static_cast<std::byte*>(memory->data()) + piece.offset});
  backend.upload(uploads, device);
  lane->synchronize();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (made->tensors[i].defined() || !wanted(i)) continue;
    const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const Piece& p) { return p.from == tensors_[i].storage().get(); });
    made->tensors[i] = part_of(memory, piece->offset, tensors_[i]);
  }
  devices_.push_back(std::move(made));
  return devices_.back()->tensors;
}

}  // namespace sconce
