// Memory that a package's code takes, so that a run which leaves its frames loses none without a trace.
//
// The loader binds a package's operators new and delete to the functions here (loader/library/memory_operators.h). They
// add up what the thread's code has taken and not given back. If frames were left, the difference at the end of the run
// is lost, and counted for the library.
//
// Arrays are known one by one, and freed when the frames are gone that took them: the scratch memory of templates
// (matrix products, attention, fused loops), which is large, is `std::make_unique<T[]>()` in a kernel or in the body of
// a parallel region, and the headers of AOTInductor's run time take no arrays. What a body has taken may be shared by
// its team, so it is freed after the region. Other objects may have been handed to libstdc++, which would free them
// too.
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

// Frees arrays that were taken by functions called below this place of the stack, which are gone. Within a region they
// stay until it ends.
void free_arrays_below(uintptr_t stack) noexcept;

// Arrays that threads of a team took in a region and had not given back at its end. The function that entered the
// region owns those that they gave to each other. Trivial to destroy, for frames that may be left.
class TeamArrays {
 public:
  TeamArrays() = default;
  TeamArrays(const TeamArrays&) = delete;
  TeamArrays& operator=(const TeamArrays&) = delete;
  // By each thread at its end. Without memory for a note of an array it is not freed.
  void add(const void* team) noexcept;
  // After the region, on the thread that entered it: the function is left, or goes on.
  void free() noexcept;
  void forget() noexcept;

 private:
  struct Note;
  template <class F>
  void take_each(F&& use) noexcept;
  std::atomic<Note*> first_{nullptr};
};

}  // namespace sconce::faults
