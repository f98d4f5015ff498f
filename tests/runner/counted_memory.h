// The memory and the locks of the calling thread, counted, and memory made to fail. counted_memory.cpp stands in front
// of operator new, aligned_alloc, mmap and pthread_mutex_lock for the whole process, the library under test and the
// models included; nothing of that is in the product.
#pragma once

#include <cstdint>

namespace sconce::test {

struct Counts {
  int64_t allocations = 0;  // operator new, aligned_alloc
  int64_t mappings = 0;     // mmap
  int64_t locks = 0;        // pthread_mutex_lock
};
// Of this thread since it began.
Counts counts() noexcept;

// While it lives, the nth allocation or anonymous mapping of this thread fails, counted from 1.
class FailingMemory {
 public:
  explicit FailingMemory(int64_t nth) noexcept;
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  bool failed() const noexcept;  // whether it came to that
};

// While it lives, all of this thread's fail.
class NoMemory {
 public:
  NoMemory() noexcept;
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace sconce::test
