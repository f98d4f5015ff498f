// WeightMemory: where a new constant set's values go. One anonymous mapping, handed out as storages.
//
// The kernel's zero pages are written once, by whoever brings the values. The mapping goes with the last storage; a
// large storage that goes earlier gives its pages back at once. Thread-safe, but for place().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "sconce/storage.h"

namespace sconce::runner {

// Bytes that are about to be written, from before they are taken until they are there, when the system counts them:
// beyond what the control group has left the kernel would end the process.
class MemoryPromise {
 public:
  MemoryPromise() noexcept = default;
  // kOutOfMemory "WHAT: ...".
  MemoryPromise(const char* what, uint64_t bytes);
  MemoryPromise(MemoryPromise&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryPromise& operator=(MemoryPromise&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryPromise();

  // Where /proc and /sys are, for tests. Empty: "/".
  static void look_below(std::filesystem::path root);

 private:
  uint64_t bytes_ = 0;
};

class WeightMemory {
 public:
  // Plans a piece: its offset, with `total` moved behind it. 64-byte aligned; large ones begin on a page of their own.
  // kOutOfMemory where the sum is more than an address space has.
  static size_t place(size_t bytes, size_t& total);

  // A mapping for what was planned. Huge pages are asked for where it is large. kOutOfMemory.
  explicit WeightMemory(size_t total);
  WeightMemory(const WeightMemory&) = delete;
  WeightMemory& operator=(const WeightMemory&) = delete;

  StoragePtr piece(size_t offset, size_t bytes);

  struct Unref {
    void operator()(WeightMemory* memory) const noexcept { memory->unref(); }
  };

 private:
  ~WeightMemory();
  void unref() noexcept;
  static void give_back(void* data, size_t bytes, void* context) noexcept;

  std::byte* begin_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<int64_t> references_{1};  // the maker, and one per storage
};

}  // namespace sconce::runner
