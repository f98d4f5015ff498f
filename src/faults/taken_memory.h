// Tracks the memory that a package's code allocates, so that memory lost by an abandoned frame is freed or counted.
//
// The loader binds a package's operators new and delete to the functions here (loader/library/memory_operators.h).
// They count the bytes that the thread's code has allocated and not freed. If frames were abandoned, the difference at
// the end of the run is lost, and counted for the library.
//
// Arrays are tracked one by one, and freed once the frames that allocated them are gone. They are the large
// allocations: the scratch memory of templates (matrix products, attention, fused loops) is `std::make_unique<T[]>()`
// in a kernel or in the body of a parallel region, and the headers of AOTInductor's run time allocate no arrays. An
// array allocated in a body may be shared by its team, so it is freed after the region. Other objects are only
// counted: libstdc++ may own them and free them too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace sconce::faults {

// operator new and delete, in each form that compilers call.
void* take(size_t bytes);
void* take_nothrow(size_t bytes, const std::nothrow_t&) noexcept;
void* take_aligned(size_t bytes, std::align_val_t alignment);
void* take_array(size_t bytes);
void* take_aligned_array(size_t bytes, std::align_val_t alignment);
void give(void* memory) noexcept;
void give_sized(void* memory, size_t bytes) noexcept;
void give_aligned(void* memory, std::align_val_t alignment) noexcept;
void give_sized_aligned(void* memory, size_t bytes, std::align_val_t alignment) noexcept;
void give_array(void* memory) noexcept;
void give_sized_array(void* memory, size_t bytes) noexcept;
void give_aligned_array(void* memory, std::align_val_t alignment) noexcept;
void give_sized_aligned_array(void* memory, size_t bytes, std::align_val_t alignment) noexcept;

// Frees arrays that were allocated by abandoned functions below this stack address. Inside a region they stay until it
// ends.
void free_arrays_below(uintptr_t stack) noexcept;

// Arrays that threads of a team allocated in a region and had not freed at its end. The function that entered the
// region owns arrays that these threads gave to each other. Trivially destructible, for frames that may be abandoned.
class TeamArrays {
 public:
  TeamArrays() = default;
  TeamArrays(const TeamArrays&) = delete;
  TeamArrays& operator=(const TeamArrays&) = delete;
  // Called by each thread at its end. If no memory is left for a record, the array is not freed.
  void add(const void* team) noexcept;
  // Called after the region on the thread that entered it, whether that function continues or is abandoned.
  void free() noexcept;
  void forget() noexcept;

 private:
  struct Note;
  template <class F>
  void take_each(F&& use) noexcept;
  std::atomic<Note*> first_{nullptr};
};

}  // namespace sconce::faults
