// How tests steer and watch the devices that fake_cuda.cpp makes up: fake_cuda_devices() of the loaded library.
#pragma once

#include <atomic>
#include <cstdint>

struct FakeDevices {
  std::atomic<bool> records{false};         // lanes record; a graph does no more than the copies of its launch
  std::atomic<int> recordings_to_fail{0};   // so many of the next ones, as a neighbour on the device would have it
  std::atomic<int> recordings{0};           // begun so far
  std::atomic<int> lost{-1};                // whatever is asked of this device fails
  std::atomic<int> trims{0};                // DeviceBackend::trim()
  std::atomic<int64_t> live{0}, pinned{0};  // bytes that are out
  std::atomic<int64_t> recorded_memory{0};  // graphs there are
};

extern "C" {
using FakeDevicesFunction = FakeDevices*();
}
