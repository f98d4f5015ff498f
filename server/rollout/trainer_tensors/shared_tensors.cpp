#include "server/rollout/trainer_tensors/shared_tensors.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "sconce/check.h"
#include "server/rollout/trainer_tensors/torch_objects.h"
#include "server/support/failure.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

std::string_view plain_uuid(std::string_view uuid) {
  if (uuid.starts_with("GPU-")) uuid.remove_prefix(4);
  return uuid;
}

// Devices that may own the memory: the one with the trainer's UUID or, without a UUID, all devices, beginning with the
// trainer's index. That index may denote another device here, if the trainer sees other devices than this process.
std::vector<Device> candidates(const TrainerMemory& memory) {
  std::vector<Device> devices = visible_devices(DeviceType::kCuda);
  SCONCE_CHECK(!devices.empty(), kInvalidArgument, "it is in memory of a GPU, and this server sees none");
  if (!memory.uuid.empty()) {
    std::erase_if(devices, [&](Device device) { return device_uuid(device) != plain_uuid(memory.uuid); });
    SCONCE_CHECK(!devices.empty(), kInvalidArgument, "this server sees no GPU of UUID '", excerpt(memory.uuid), "'");
  }
  std::stable_partition(devices.begin(), devices.end(), [&](Device device) { return device.index == memory.index; });
  return devices;
}

// Host memory of `bytes` bytes, aligned for any dtype.
StoragePtr host_memory_of(uint64_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  return Tensor::empty({&size, 1}, DType::kUInt8).storage();
}

// Part of another storage, to which it holds a reference.
StoragePtr part_of(const StoragePtr& whole, uint64_t offset, uint64_t bytes) {
  auto owner = std::make_unique<StoragePtr>(whole);
  auto part = StoragePtr::adopt(new Storage(
      static_cast<std::byte*>(whole->data()) + offset, static_cast<size_t>(bytes), whole->device(),
      [](void*, size_t, void* context) noexcept { delete static_cast<StoragePtr*>(context); }, owner.get()));
  owner.release();
  return part;
}

bool is_row_major(const TrainerTensor& tensor) {
  int64_t expected = 1;
  for (size_t d = tensor.sizes.size(); d-- > 0;) {
    if (tensor.sizes[d] == 0) return true;
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.sizes[d];
  }
  return true;
}

}  // namespace

TrainerMemoryRelease::~TrainerMemoryRelease() {
  for (const TrainerMemory& memory : tensors_.memories) {
    if (!memory.counter.empty()) release_torch_counter(memory.counter, memory.counter_place);
    if (!memory.object.empty()) release_torch_object(memory.object);
  }
}

std::vector<std::string> visible_uuids() {
  std::vector<std::string> uuids;
  for (const Device device : visible_devices(DeviceType::kCuda)) uuids.push_back(device_uuid(device));
  return uuids;
}

SharedTensors::SharedTensors(const TrainerTensors& described) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Opened> opened(described.memories.size());
  tensors_.reserve(described.tensors.size());
  for (const TrainerTensor& tensor : described.tensors) {
    const std::string where = "tensor '" + excerpt(tensor.name) + "'";
    const ErrorContext context(where);
    Opened& memory = opened[tensor.memory];
    if (!memory.storage) memory = open(described.memories[tensor.memory]);
    const uint64_t item = dtype_bytes(tensor.dtype), at = memory.offset + tensor.offset;
    StoragePtr storage = memory.storage;
    int64_t offset = 0;
    if (at % item == 0) {
      offset = static_cast<int64_t>(at / item);
    } else {
      const uint64_t needed = storage_bytes_needed(tensor.sizes, tensor.strides, 0, item);
      SCONCE_CHECK(is_row_major(tensor), kInvalidArgument, "its elements are not aligned: they begin at byte ", at);
      if (storage->device().type == DeviceType::kCpu) {
        const StoragePtr moved = host_memory_of(needed);
        if (needed > 0) std::memcpy(moved->data(), static_cast<const std::byte*>(storage->data()) + at, needed);
        storage = moved;
      } else {
        storage = part_of(storage, at, needed);
      }
    }
    tensors_.push_back({tensor.name, Tensor(std::move(storage), tensor.dtype, tensor.sizes, tensor.strides, offset)});
  }
  opening_ = std::chrono::steady_clock::now() - begin;
}

uint64_t SharedTensors::bytes() const noexcept {
  uint64_t bytes = 0;
  for (const NamedTensor& tensor : tensors_) bytes += tensor.tensor.bytes();
  return bytes;
}

SharedTensors::Opened SharedTensors::open(const TrainerMemory& memory) {
  switch (memory.where) {
    case TrainerMemory::Where::kNowhere:
      break;
    case TrainerMemory::Where::kDevice:
      return open_device(memory);
    case TrainerMemory::Where::kBytes: {
      const StoragePtr copy = host_memory_of(memory.content.size());
      if (!memory.content.empty()) std::memcpy(copy->data(), memory.content.data(), memory.content.size());
      return {copy, 0};
    }
    case TrainerMemory::Where::kObject: {
      const TorchObject object(memory.object, memory.bytes);  // checks the size
      const StoragePtr copy = host_memory_of(memory.bytes);
      object.read({static_cast<std::byte*>(copy->data()), static_cast<size_t>(memory.bytes)});
      return {copy, 0};
    }
  }
  return {host_memory_of(0), 0};
}

SharedTensors::Opened SharedTensors::open_device(const TrainerMemory& memory) {
  const std::string handle(reinterpret_cast<const char*>(memory.handle.data()), memory.handle.size());
  const std::string device = memory.uuid.empty() ? std::to_string(memory.index) : memory.uuid;
  StoragePtr& known = allocations_[{handle, device}];
  if (!known) {
    const std::vector<Device> devices = candidates(memory);
    for (size_t i = 0; i < devices.size() && !known; ++i) {
      const bool last = i + 1 == devices.size();
      const auto attempt = [&] { known = open_device_memory(memory.handle, devices[i]); };
      if (last)
        attempt();
      else
        succeeds(attempt);
    }
  }
  SCONCE_CHECK(memory.offset <= known->bytes() && memory.bytes <= known->bytes() - memory.offset, kInvalidArgument,
               memory.bytes, " bytes at ", memory.offset, " are beyond the ", known->bytes(), " that the handle opens");
  if (memory.event) wait_for_device_event(*memory.event, known->device());
  return {known, memory.offset};
}

}  // namespace sconce::server::rollout
