// Tensors that a trainer describes: the location of their memory and their layout in it. Nothing is opened here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/device_memory.h"
#include "sconce/dtype.h"
#include "server/rollout/trainer_tensors/pickle_reader.h"
#include "server/support/json_cursor.h"

namespace sconce::server::rollout {

// A storage in PyTorch's terms.
struct TrainerMemory {
  enum class Where : int8_t {
    kNowhere,  // empty
    kDevice,   // shared by CUDA IPC
    kBytes,    // sent with the request
    kObject,   // one of PyTorch's POSIX shared-memory objects
  };
  Where where = Where::kNowhere;
  uint64_t bytes = 0;

  // On a device: the allocation's handle, and the offset of the memory in the allocation.
  std::array<std::byte, kDeviceMemoryHandleBytes> handle{};
  uint64_t offset = 0;
  std::string uuid;    // of the device; empty: only the index is known
  int64_t index = -1;  // the trainer's index of the device; -1: unknown
  std::optional<std::array<std::byte, kDeviceEventHandleBytes>> event;  // completes when the values are ready
  // PyTorch's reference counter of the memory: a POSIX object and an index in it. Empty: not counted.
  std::string counter;
  uint64_t counter_place = 0;

  std::string_view content;  // for kBytes
  std::string object;        // for kObject: its name
};

struct TrainerTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> sizes, strides;  // in elements
  uint64_t offset = 0;                  // in bytes, from the beginning of the memory
  size_t memory = 0;                    // index in memories
};

struct TrainerTensors {
  std::vector<TrainerMemory> memories;
  std::vector<TrainerTensor> tensors;
  std::deque<Pickle> pickles;  // `content` may be a view of these
  // Storages in pickles that were read: a storage that several tensors view is one memory, with one reference.
  struct Storage {
    size_t memory = 0;
    std::optional<DType> dtype;
  };
  std::map<std::pair<const Pickle*, Pickle::Value>, Storage> storages;
  Pickle::Left left;

  const Pickle& read(std::string_view pickle) { return pickles.emplace_back(pickle, left); }
  // Adds a tensor in a memory that was added before. kInvalidArgument if the tensor exceeds the memory.
  void add(TrainerTensor tensor);
};

// kInvalidArgument if sizes are negative, too many or overflow.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& sizes);

// The array "tensors" of POST .../weights (docs/trainers.md). Appends to `to`. kInvalidArgument.
void read_tensor_handles(JsonCursor& json, TrainerTensors& to);

}  // namespace sconce::server::rollout
