// Staging: values that are copied from device memory.
#include <algorithm>
#include <cstdint>
#include <functional>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constants/device_memory.h"
#include "src/runner/constants/staging.h"

namespace sconce::runner {
namespace {

// Compiled kernels read constants at addresses of this alignment.
constexpr size_t kAlignment = 64;
// PyTorch's allocator leaves less than this between tensors. So little is copied too where that makes one copy of two.
constexpr size_t kMaxGap = 512;

constexpr int64_t kOneByte = 1;

// Bytes of a device as a tensor that does not own them.
Tensor bytes_at(std::byte* data, size_t bytes, Device device) {
  const auto size = static_cast<int64_t>(bytes);
  return Tensor::from_blob(data, {&size, 1}, {&kOneByte, 1}, DType::kUInt8, device);
}

// Elements that are converted on the way, as bytes: any bit pattern of a bool becomes 0 or 1.
Tensor as_bytes_of_bool(const Tensor& values) {
  return values.view_as(DType::kUInt8, values.sizes(), values.strides(), values.storage_offset());
}

}  // namespace

// True if nothing on the host must look at the values.
bool Staging::takes(size_t index, const Tensor& values) const {
  if (!rules_.device || !rules_.keep || rules_.check_finite || index >= entries_.size()) return false;
  if (!values.defined() || values.device().type != rules_.device->type) return false;
  const Entry& entry = entries_[index];
  if (entry.asked || entry.complete || entry.targets.empty() || entry.bytes == 0) return false;
  const auto same = [](IntSpan a, const std::vector<int64_t>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  if (values.dtype() != entry.declared.dtype || !same(values.sizes(), entry.declared.shape)) return false;
  const bool aligned = reinterpret_cast<uintptr_t>(values.data()) % values.itemsize() == 0;
  return std::all_of(entry.targets.begin(), entry.targets.end(), [&](const Target& target) {
    // Bytes may lie anywhere; kernels that rearrange elements need them aligned.
    if (!aligned && !(target.row_major && values.is_contiguous())) return false;
    return std::all_of(target.constants.begin(), target.constants.end(), [&](size_t i) {
      const ConstantSpec& spec = table_.stored()[i].spec;
      return !spec.mutated && spec.device.value_or(Device{}).type == rules_.device->type;
    });
  });
}

StoragePtr Staging::device_memory(size_t bytes) {
  constexpr size_t kMaxWaste = 8;  // one of so many parts of a piece may stay unused
  const auto fits = [&](const StoragePtr& block) {
    return block->device() == *rules_.device && block->bytes() >= bytes &&
           block->bytes() - bytes <= block->bytes() / kMaxWaste;
  };
  StoragePtr memory;
  if (const auto spare = std::find_if(spare_.begin(), spare_.end(), fits); spare != spare_.end()) {
    memory = std::move(*spare);
    spare_.erase(spare);
  } else {
    spare_.clear();  // the device may have no room for both
    memory = device_backend(*rules_.device).allocate_lasting(bytes, *rules_.device);
  }
  return blocks_.emplace_back(std::move(memory));
}

void Staging::take(std::span<const TensorPart> parts) {
  struct Piece {  // of one target
    const Tensor* from;
    Target* target;
    bool plain;  // its bytes are copied as they are
    size_t offset = 0;
    std::byte* begin() const { return static_cast<std::byte*>(from->data()); }
  };
  std::vector<Piece> pieces;
  for (const TensorPart& part : parts) {
    SCONCE_CHECK(allocated_ && takes(part.entry, part.values), kFailedPrecondition, "take: entry ", part.entry,
                 " cannot be copied on the device");
    for (Target& target : entries_[part.entry].targets)
      pieces.push_back({&part.values, &target,
                        target.row_major && part.values.is_contiguous() && part.values.dtype() != DType::kBool});
  }
  if (pieces.empty()) return;
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    if (a.plain != b.plain) return a.plain;
    const Device from_a = a.from->device(), from_b = b.from->device();
    return from_a.index != from_b.index ? from_a.index < from_b.index : std::less<>()(a.begin(), b.begin());
  });

  // Values that are adjacent in one piece of shared memory, as in a flat bucket, keep their distances in the set's
  // memory, so that one copy suffices.
  struct Run {
    const Storage* storage;
    std::byte* from;
    size_t offset, bytes;
  };
  std::vector<Run> runs;
  size_t total = 0;
  for (Piece& piece : pieces) {
    if (piece.plain && !runs.empty() && runs.back().storage == piece.from->storage().get()) {
      Run& run = runs.back();
      const auto within = static_cast<size_t>(piece.begin() - run.from);
      if (within >= run.bytes && within - run.bytes < kMaxGap && within % kAlignment == 0) {
        piece.offset = run.offset + within;
        run.bytes = within + piece.from->bytes();
        total = run.offset;
        place_on_device(run.bytes, total);
        continue;
      }
    }
    const size_t bytes = piece.plain ? piece.from->bytes() : piece.target->bytes;
    piece.offset = place_on_device(bytes, total);
    if (piece.plain) runs.push_back({piece.from->storage().get(), piece.begin(), piece.offset, bytes});
  }

  // Freeing this memory waits for what is still being copied to it, so nothing reads the values after a failure either.
  DeviceBackend& backend = device_backend(*rules_.device);
  const StoragePtr memory = device_memory(total);
  for (const Run& run : runs) {
    Tensor to = bytes_at(static_cast<std::byte*>(memory->data()) + run.offset, run.bytes, *rules_.device);
    backend.copy(bytes_at(run.from, run.bytes, run.storage->device()), to);
  }
  for (const Piece& piece : pieces) {
    if (piece.plain) continue;
    Tensor to = part_of(memory, piece.offset, piece.target->tensor);
    backend.copy(piece.from->dtype() == DType::kBool ? as_bytes_of_bool(*piece.from) : *piece.from, to);
  }
  backend.wait(*rules_.device);
  for (const Piece& piece : pieces) piece.target->tensor = part_of(memory, piece.offset, piece.target->tensor);
  for (const TensorPart& part : parts) {
    entries_[part.entry].complete = true;
    compare_twins(part.entry);
  }
}

}  // namespace sconce::runner
