// Memory of a device that processes of one host share, copies between devices, and the rows of a tensor that are wanted
// on the host. Thread-safe.
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

// Opens device memory that another process of this host shares by a handle. The storage reaches from where the handle
// points to the end of that allocation. The last reference closes it; until then the other process must keep the
// memory. kInvalidArgument if the handle opens nothing (a handle of this process itself does not) or there is no such
// device.
StoragePtr open_device_memory(std::span<const std::byte, kDeviceMemoryHandleBytes> handle, Device device);

// sizeof(cudaIpcEventHandle_t)
inline constexpr size_t kDeviceEventHandleBytes = 64;

// Returns when the work is done that another process of this host recorded in an event of its device before it shared
// the event by this handle. kInvalidArgument if the handle opens nothing, or if that takes more than a minute.
void wait_for_device_event(std::span<const std::byte, kDeviceEventHandleBytes> handle, Device device);

// Devices of a kind that this process sees; none if there is no driver.
std::vector<Device> visible_devices(DeviceType type);
// Names a device in every process of the host: "5a3cfa2e-...", as torch.cuda.get_device_properties(i).uuid.
std::string device_uuid(Device device);

// Copies source to destination, of the same sizes and any dtypes, strides and devices. All work on the source must be
// over. When the call returns, every thread and stream that reads the destination from then on sees the values.
void transfer(const Tensor& source, Tensor& destination);

// Tensors of one device, joined along their first dimension in new memory there. They are alike besides that dimension,
// and the rows of each lie one after the other without gaps. All work on them must be over, as it is on the result.
// kOutOfMemory. wait: false in RunRequest::preparing(), where the result is for that run; the parts stay until it is
// over.
Tensor join_rows(std::span<const Tensor> parts, bool wait = true);

// A copy on that device; gapless strides are kept. kUnavailable, kInvalidArgument, kOutOfMemory.
Tensor copy_to(const Tensor& tensor, Device device);

// What is wanted of a tensor [N, ..., V] of float32, float16 or bfloat16, on any device, in any strides. Its first
// dimension is divided into `parts` equal parts. Of each part one row counts, that of the last index in all dimensions
// but the last one. A tensor [V] is one part. V is at most 2^32 - 1.
struct LastRows {
  int64_t parts = 1;
  // 0: the rows as they are, [parts, V] of the tensor's dtype. Otherwise, up to kMaxLargest: the ranks of each row's
  // largest numbers, in descending order, [parts, largest] of uint64. Rows that are not longer than that come as they
  // are.
  int64_t largest = 0;
};
inline constexpr int64_t kMaxLargest = 128;

// A number of a row, and its index there.
struct Ranked {
  float value = 0;
  uint32_t index = 0;
};
// Of two numbers of a row, the one with the higher rank comes first: the larger one, of equal ones that of the lower
// index. NaN is above infinity, and all NaN are equal; so are both zeros. No rank is 0.
constexpr uint64_t rank_of(float value, uint32_t index) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  uint32_t key = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  if ((bits & 0x7fffffffu) > 0x7f800000u) key = 0xffffffffu;
  if ((bits & 0x7fffffffu) == 0) key = 0x80000000u;
  return uint64_t{key} << 32 | (0xffffffffu - index);
}
// The number of a rank: 0 for both zeros, one NaN for all.
constexpr Ranked ranked(uint64_t rank) noexcept {
  const auto key = static_cast<uint32_t>(rank >> 32);
  return {std::bit_cast<float>((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key),
          0xffffffffu - static_cast<uint32_t>(rank)};
}

// What is wanted of the tensor, on the host. All work on it must be over. RunRequest::last_rows does the same right
// behind a run. kInvalidArgument says what the tensor or `wanted` lacks; kOutOfMemory.
Tensor last_rows(const Tensor& tensor, const LastRows& wanted);

}  // namespace sconce
