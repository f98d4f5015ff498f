// How tests control and observe the devices of fake_cuda.cpp: fake_cuda_devices() of the loaded library.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeDevices {
  std::atomic<bool> records{false};         // lanes record; a graph only does the copies of its launch
  std::atomic<int> recordings_to_fail{0};   // how many of the next ones fail, as by other work on the device
  std::atomic<int> recordings{0};           // begun so far
  std::atomic<int> lost{-1};                // every operation on this device fails
  std::atomic<int> trims{0};                // DeviceBackend::trim()
  std::atomic<int64_t> live{0}, pinned{0};  // bytes in use
  std::atomic<int> lasting{0};              // pieces of long-lived memory taken so far
  std::atomic<int64_t> recorded_memory{0};  // existing graphs
  // Asked for ahead of a load (src/device/open_ahead.h):
  std::atomic<int> contexts{0}, libraries{0};  // how often
  std::atomic<int64_t> imports{0}, rows{0};    // of the last model
};

extern "C" {
using FakeDevicesFunction = FakeDevices*();
}
