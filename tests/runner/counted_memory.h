// Counts allocations and locks of the calling thread, and makes allocations fail. counted_memory.cpp replaces operator
// new, aligned_alloc, mmap and pthread_mutex_lock for the whole process, including the library under test and the
// models. The product contains none of this.
#pragma once

#include <cstdint>

namespace sconce::test {

struct Counts {
  int64_t allocations = 0;  // operator new, aligned_alloc
  int64_t mappings = 0;     // mmap
  int64_t locks = 0;        // pthread_mutex_lock
};
// Counts of the calling thread since it began.
Counts counts() noexcept;

// While an object of this class lives, the nth allocation or anonymous mapping of this thread fails, counted from 1.
class FailingMemory {
 public:
  explicit FailingMemory(int64_t nth) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  bool failed() const noexcept;  // whether there was an nth one
};

// While an object of this class lives, all allocations of this thread fail.
class NoMemory {
 public:
  NoMemory() noexcept;
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace sconce::test
