#include "src/faults/taken_memory.h"

#include <malloc.h>

#include <utility>

#include "src/faults/code_entry.h"

namespace sconce::faults {
namespace {

struct Array {
  void* memory;
  const void* team;  // the team of the region, null outside of regions
  uintptr_t stack;   // frames of functions called after the allocation lie below it
};

// Further arrays are not freed. A kernel has one or two, a team one for each block that its threads share.
constexpr unsigned kMaxArrays = 64;
thread_local constinit Array arrays[kMaxArrays]{};

int64_t size_of(void* memory) noexcept { return static_cast<int64_t>(::malloc_usable_size(memory)); }

// Removes the arrays for which `is_due` returns true, after passing them to it.
template <class F>
void remove_arrays(F&& is_due) noexcept {
  unsigned kept = 0;
  for (unsigned i = 0; i < code_thread.arrays; ++i)
    if (!is_due(arrays[i])) arrays[kept++] = arrays[i];
  code_thread.arrays = kept;
}

void free_array(void* memory) noexcept {
  code_thread.taken -= size_of(memory);
  ::operator delete[](memory);
}

void forget(const void* memory) noexcept {
  unsigned i = code_thread.arrays;
  while (i > 0 && arrays[i - 1].memory != memory) --i;
  if (i == 0) return;
  for (; i < code_thread.arrays; ++i) arrays[i - 1] = arrays[i];
  --code_thread.arrays;
}

}  // namespace

void* take(size_t bytes) {
  void* const memory = ::operator new(bytes);
  code_thread.taken += static_cast<int64_t>(bytes);
  return memory;
}
void* take_nothrow(size_t bytes, const std::nothrow_t& nothrow) noexcept {
  void* const memory = ::operator new(bytes, nothrow);
  if (memory) code_thread.taken += static_cast<int64_t>(bytes);
  return memory;
}
void* take_aligned(size_t bytes, std::align_val_t alignment) {
  void* const memory = ::operator new(bytes, alignment);
  code_thread.taken += static_cast<int64_t>(bytes);
  return memory;
}
[[gnu::noinline]] void* take_array(size_t bytes) {
  void* const memory = ::operator new[](bytes);
  CodeThread& thread = code_thread;
  thread.taken += size_of(memory);
  const uintptr_t stack = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa());
  if (thread.model && thread.arrays < kMaxArrays) arrays[thread.arrays++] = {memory, thread.team, stack};
  return memory;
}
void* take_aligned_array(size_t bytes, std::align_val_t alignment) {
  void* const memory = ::operator new[](bytes, alignment);
  code_thread.taken += size_of(memory);
  return memory;
}

void give(void* memory) noexcept {
  code_thread.taken -= size_of(memory);
  ::operator delete(memory);
}
void give_sized(void* memory, size_t bytes) noexcept {
  if (memory) code_thread.taken -= static_cast<int64_t>(bytes);
  ::operator delete(memory, bytes);
}
void give_aligned(void* memory, std::align_val_t alignment) noexcept {
  code_thread.taken -= size_of(memory);
  ::operator delete(memory, alignment);
}
void give_sized_aligned(void* memory, size_t bytes, std::align_val_t alignment) noexcept {
  if (memory) code_thread.taken -= static_cast<int64_t>(bytes);
  ::operator delete(memory, bytes, alignment);
}
void give_array(void* memory) noexcept {
  if (code_thread.arrays > 0) forget(memory);
  free_array(memory);
}
void give_sized_array(void* memory, size_t) noexcept { give_array(memory); }
void give_aligned_array(void* memory, std::align_val_t alignment) noexcept {
  code_thread.taken -= size_of(memory);
  ::operator delete[](memory, alignment);
}
void give_sized_aligned_array(void* memory, size_t, std::align_val_t alignment) noexcept {
  give_aligned_array(memory, alignment);
}

void free_arrays_below(uintptr_t stack) noexcept {
  if (code_thread.team) return;
  remove_arrays([&](const Array& array) {
    const bool gone = !array.team && array.stack < stack;
    if (gone) free_array(array.memory);
    return gone;
  });
}

struct TeamArrays::Note {
  void* memory;
  Note* next;
};

void TeamArrays::add(const void* team) noexcept {
  remove_arrays([&](const Array& array) {
    if (array.team != team) return false;
    auto* const note = new (std::nothrow) Note{array.memory, first_.load(std::memory_order_relaxed)};
    while (note && !first_.compare_exchange_weak(note->next, note, std::memory_order_release)) {
    }
    return true;
  });
}

template <class F>
void TeamArrays::take_each(F&& use) noexcept {
  Note* note = first_.load(std::memory_order_relaxed) ? first_.exchange(nullptr, std::memory_order_acquire) : nullptr;
  while (note) {
    use(note->memory);
    delete std::exchange(note, note->next);
  }
}

void TeamArrays::free() noexcept {
  take_each([](void* memory) { free_array(memory); });
}
void TeamArrays::forget() noexcept {
  take_each([](void*) {});
}

}  // namespace sconce::faults
