// Opens memory that a trainer shares: device memory by IPC handles, PyTorch's shared-memory objects, bytes in the
// request.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sconce/tensor_files.h"
#include "server/rollout/trainer_tensors/trainer_tensors.h"

namespace sconce::server::rollout {

// PyTorch counts the users of shared memory, and frees the memory when the count is 0. The destructor releases all
// references that were read. Construct this object before tensors are read, so that the trainer gets its memory back
// also after errors.
class TrainerMemoryRelease {
 public:
  explicit TrainerMemoryRelease(const TrainerTensors& tensors) noexcept : tensors_(tensors) {}
  ~TrainerMemoryRelease();
  TrainerMemoryRelease(const TrainerMemoryRelease&) = delete;
  TrainerMemoryRelease& operator=(const TrainerMemoryRelease&) = delete;

 private:
  const TrainerTensors& tensors_;
};

class SharedTensors {
 public:
  // Waits for the trainer's work on the values. kInvalidArgument names the tensor: an invalid handle, a device that
  // this process does not see, memory that is too small.
  explicit SharedTensors(const TrainerTensors& tensors);

  std::span<const NamedTensor> tensors() const noexcept { return tensors_; }
  uint64_t bytes() const noexcept;
  // Time for opening the memory and waiting for the trainer's work.
  std::chrono::steady_clock::duration opening() const noexcept { return opening_; }

 private:
  struct Opened {
    StoragePtr storage;   // the whole allocation
    uint64_t offset = 0;  // of the memory in the allocation
  };
  Opened open(const TrainerMemory& memory);
  Opened open_device(const TrainerMemory& memory);

  std::map<std::pair<std::string, std::string>, StoragePtr> allocations_;  // by handle and device
  std::vector<NamedTensor> tensors_;
  std::chrono::steady_clock::duration opening_{};
};

// UUIDs of the CUDA devices that this process sees.
std::vector<std::string> visible_uuids();

}  // namespace sconce::server::rollout
