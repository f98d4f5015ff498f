// Constant sets on devices: one piece of memory each, filled from wherever the values are.
#include <algorithm>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/constants/device_memory.h"

namespace sconce::runner {

const std::vector<Tensor>& ConstantSet::on(Device device, const ConstantTable& table, const ConstantSet* before) const {
  if (device.type == DeviceType::kCpu &&
      std::all_of(tensors_.begin(), tensors_.end(), [](const Tensor& t) { return !t.defined() || t.is_cpu(); }))
    return tensors_;
  const MutexLock lock(devices_mutex_);
  for (const auto& made : devices_)
    if (made->device == device) return made->tensors;
  if (device.type == DeviceType::kCpu) {
    auto made = std::make_unique<OnDevice>(OnDevice{device, tensors_});
    for (Tensor& tensor : made->tensors)
      if (tensor.defined()) tensor = on_host(tensor);
    devices_.push_back(std::move(made));
    return devices_.back()->tensors;
  }
  const std::vector<Tensor>* shared = before && before != this ? &before->on(device, table, nullptr) : nullptr;

  auto made = std::make_unique<OnDevice>();
  made->device = device;
  made->tensors.resize(tensors_.size());
  struct Piece {
    const Storage* from;
    size_t offset;
  };
  std::vector<Piece> pieces;  // each storage once, because aliases share memory
  size_t total = 0;
  const auto wanted = [&](size_t i) {
    return tensors_[i].defined() && table.stored()[i].spec.device.value_or(Device{}).type == device.type;
  };
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    if (!wanted(i) || tensor.device() == device) {
      made->tensors[i] = tensor;  // constants that the model keeps on the CPU, or that were read straight to the device
    } else if (shared && before->tensors()[i].defined() && before->tensors()[i].storage() == tensor.storage()) {
      made->tensors[i] = (*shared)[i];
    } else if (std::none_of(pieces.begin(), pieces.end(),
                            [&](const Piece& piece) { return piece.from == tensor.storage().get(); })) {
      pieces.push_back({tensor.storage().get(), place_on_device(tensor.storage()->bytes(), total)});
    }
  }
  if (pieces.empty()) {
    devices_.push_back(std::move(made));
    return devices_.back()->tensors;
  }
  DeviceBackend& backend = device_backend(device);
  const StoragePtr memory = backend.allocate_lasting(total, device);
  std::vector<Upload> uploads;
  for (const Piece& piece : pieces)
    if (piece.from->device().type == DeviceType::kCpu)
      uploads.push_back({static_cast<const std::byte*>(piece.from->data()), piece.from->bytes(),
                         static_cast<std::byte*>(memory->data()) + piece.offset});
  backend.upload(uploads, device);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (made->tensors[i].defined() || !wanted(i)) continue;
    const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const Piece& p) { return p.from == tensors_[i].storage().get(); });
    made->tensors[i] = part_of(memory, piece->offset, tensors_[i]);
    if (!tensors_[i].is_cpu()) backend.copy(tensors_[i], made->tensors[i]);  // read straight to another device
  }
  devices_.push_back(std::move(made));
  return devices_.back()->tensors;
}

std::shared_ptr<const ConstantSet> ConstantSet::without_host(Device device,
                                                             const std::function<bool(const Tensor&)>& gone) const {
  const MutexLock lock(devices_mutex_);
  const auto there = std::find_if(devices_.begin(), devices_.end(), [&](const auto& d) { return d->device == device; });
  if (there == devices_.end()) return nullptr;
  std::vector<Tensor> tensors = tensors_;
  bool any = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& copy = (*there)->tensors[i];
    if (!tensors[i].defined() || !tensors[i].is_cpu() || !copy.defined() || copy.is_cpu() || !gone(tensors[i]))
      continue;
    tensors[i] = copy;
    any = true;
  }
  if (!any) return nullptr;
  auto set = std::make_shared<ConstantSet>(std::move(tensors));
  set->keep_blocks(blocks_);
  const MutexLock own(set->devices_mutex_);
  set->devices_ = devices_;
  return set;
}

Tensor on_host(const Tensor& tensor) {
  if (tensor.is_cpu()) return tensor;
  Tensor host = Tensor::empty_strided(tensor.sizes(), tensor.strides(), tensor.dtype());
  device_backend(tensor.device()).copy(tensor, host);
  return host;
}

}  // namespace sconce::runner
