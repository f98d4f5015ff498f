// Device memory shared between processes of one host, copies between devices, and transfers of selected rows to the
// host. Thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sconce/device.h"
#include "sconce/storage.h"
#include "sconce/tensor.h"

namespace sconce {

// sizeof(cudaIpcMemHandle_t)
inline constexpr size_t kDeviceMemoryHandleBytes = 64;

// Opens device memory that another process of this host shares by a handle. The storage starts at the address of the
// handle and ends at the end of that allocation. Dropping the last reference closes the memory; until then the other
// process must keep it allocated. kInvalidArgument if the handle is not valid (a handle of this process is not) or the
// device does not exist.
StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device);

// sizeof(cudaIpcEventHandle_t)
inline constexpr size_t kDeviceEventHandleBytes = 64;

// Waits for the device work that another process recorded in an event before it shared the event by this handle.
// kInvalidArgument if the handle is not valid, or if the work takes more than one minute.
void wait_for_device_event(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device);

// The devices of a type that this process sees; empty without a driver.
std::vector<Device> visible_devices(DeviceType type);
// Identifies a device in every process of the host: "5a3cfa2e-...", as torch.cuda.get_device_properties(i).uuid.
std::string device_uuid(Device device);

// Copies source to destination. Both have the same sizes; dtypes, strides and devices may differ. All work on the
// source must be complete. When the call returns, every thread and stream that reads the destination afterwards sees
// the values.
void transfer(const Tensor& source, Tensor& destination);

// Concatenates tensors of one device along their first dimension, in new memory there. The other dimensions and the
// dtype are equal, and each tensor's rows are contiguous. All work on the tensors must be complete; with `wait`, the
// work on the result is complete too. kOutOfMemory. Pass wait = false in RunRequest::preparing() if that run uses the
// result; the parts must then stay alive until the run ends.
Tensor join_rows(std::span<const Tensor> parts, bool wait = true);

// Returns a copy on that device and keeps dense strides. kUnavailable, kInvalidArgument, kOutOfMemory.
Tensor copy_to(const Tensor& tensor, Device device);

// Selects the last row of each part of a tensor [N, ..., V] of float32, float16 or bfloat16, on any device, with any
// strides. The first dimension is divided into `parts` equal parts. A part's last row has the last index in all
// dimensions except the last one. A tensor [V] is one part. V is at most 2^32 - 1.
struct LastRows {
  int64_t parts = 1;
  // 0: the rows themselves, [parts, V] in the tensor's dtype. Otherwise, up to kMaxLargest: the ranks of each row's
  // largest numbers, in descending order, [parts, largest] of uint64. If V <= largest, the rows themselves.
  int64_t largest = 0;
};
inline constexpr int64_t kMaxLargest = 128;

// A number of a row and its index in the row.
struct Ranked {
  float value = 0;
  uint32_t index = 0;
};
// Orders the numbers of a row: the larger number has the higher rank; of equal numbers, the one with the lower index.
// NaN ranks above infinity. All NaN are equal, and so are both zeros. No rank is 0.
constexpr uint64_t rank_of(float value, uint32_t index) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  uint32_t key = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  if ((bits & 0x7fffffffu) > 0x7f800000u) key = 0xffffffffu;
  if ((bits & 0x7fffffffu) == 0) key = 0x80000000u;
  return uint64_t{key} << 32 | (0xffffffffu - index);
}
// Recovers number and index from a rank: 0 for both zeros, one NaN for all.
constexpr Ranked ranked(uint64_t rank) noexcept {
  const auto key = static_cast<uint32_t>(rank >> 32);
  return {std::bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key),
          0xffffffffu - static_cast<uint32_t>(rank)};
}

// Copies the selected rows to the host. All work on the tensor must be complete. RunRequest::last_rows does the same
// directly after a run. kInvalidArgument if the tensor does not match `wanted`; kOutOfMemory.
Tensor last_rows(const Tensor& tensor, const LastRows& wanted);

}  // namespace sconce
