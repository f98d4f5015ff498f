// WeightMemory: one anonymous mapping for a new constant set's values, handed out as storages.
//
// The kernel's zero pages are written once, by the code that brings the values. The last storage frees the mapping; a
// large storage frees its own pages at once. Thread-safe, except place().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "sconce/storage.h"

namespace sconce::runner {

// Reserves bytes that will be written soon, until the system counts them itself: if a process exceeds its control
// group's memory, the kernel ends it.
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
  // Plans a piece: returns its offset and moves `total` past it. 64-byte aligned; large pieces start on a page.
  // kOutOfMemory if the sum exceeds an address space.
  static size_t place(size_t bytes, size_t& total);

  // Maps what was planned, with huge pages if it is large. kOutOfMemory.
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
  std::atomic<int64_t> references_{1};  // one for the maker, one per storage
};

}  // namespace sconce::runner
