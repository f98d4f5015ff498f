// Staging: values that go from files straight to a device.
#include <algorithm>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/runner/constants/device_memory.h"
#include "src/runner/constants/staging.h"

namespace sconce::runner {

// True if nothing on the host must look at the values, and the file has the model's layout.
bool Staging::takes(size_t index) const {
  if (!rules_.device || !rules_.keep || rules_.check_finite || index >= entries_.size()) return false;
  const Entry& entry = entries_[index];
  if (entry.asked || entry.complete || entry.bytes == 0 || entry.declared.dtype == DType::kBool) return false;
  if (entry.targets.size() != 1 || !entry.targets.front().row_major) return false;
  const std::vector<size_t>& constants = entry.targets.front().constants;
  return std::all_of(constants.begin(), constants.end(), [&](size_t i) {
    const ConstantSpec& spec = table_.stored()[i].spec;
    return !spec.mutated && spec.device.value_or(Device{}).type == rules_.device->type;
  });
}

void Staging::take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick) {
  size_t total = 0;
  std::vector<size_t> offsets;
  for (const FilePart& part : parts) {
    SCONCE_CHECK(allocated_ && takes(part.entry), kFailedPrecondition, "take: entry ", part.entry,
                 " cannot go straight to a device");
    offsets.push_back(place_on_device(entries_[part.entry].bytes, total));
  }
  if (parts.empty()) return;
  DeviceBackend& backend = device_backend(*rules_.device);
  const StoragePtr memory = device_memory(total);
  std::vector<Upload> uploads;
  for (size_t i = 0; i < parts.size(); ++i)
    uploads.push_back({nullptr, entries_[parts[i].entry].bytes, static_cast<std::byte*>(memory->data()) + offsets[i],
                       parts[i].file, parts[i].offset});
  backend.upload(uploads, *rules_.device, tick);
  for (size_t i = 0; i < parts.size(); ++i) {
    Entry& entry = entries_[parts[i].entry];
    Tensor& tensor = entry.targets.front().tensor;
    tensor = part_of(memory, offsets[i], tensor);
    entry.complete = true;
    compare_twins(parts[i].entry);
  }
}

}  // namespace sconce::runner
