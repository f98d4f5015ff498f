#include <array>
#include <new>

#include "src/aoti_abi/abi_types.h"

namespace sconce::aoti_abi {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr size_t kMost = 0;  // so that AddressSanitizer sees a use after free
#else
constexpr size_t kMost = 64;
#endif

// Freed handles of a thread: as many as a run of a large model uses at once, in warm cache lines.
struct FreeMemory {
  std::array<void*, kMost + 1> memory;
  size_t count = 0;
  bool gone = false;  // the thread is ending; handles deleted now go to the heap
  ~FreeMemory() {
    gone = true;
    while (count > 0) ::operator delete(memory[--count], sizeof(Tensor));
  }
};
thread_local FreeMemory free_memory;

}  // namespace

void* take_handle_memory() {
  return free_memory.count > 0 ? free_memory.memory[--free_memory.count] : ::operator new(sizeof(Tensor));
}

void keep_handle_memory(void* memory) noexcept {
  if (free_memory.gone || free_memory.count == kMost) return ::operator delete(memory, sizeof(Tensor));
  free_memory.memory[free_memory.count++] = memory;
}

}  // namespace sconce::aoti_abi
