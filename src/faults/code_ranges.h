// The machine code of packages in this process: which addresses are a package's own instructions.
//
// A fault at such an address is the package's. A fault elsewhere, even if a package's code called the function, is not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sconce::faults {

class CodeRange;  // an entry of the list; never freed, only reused, because a signal handler may read the list

// Registers [begin, end), executable memory of the library `name`; reports add to it what name_next_ranges() was told
// on this thread. std::bad_alloc.
CodeRange* add_code_range(uintptr_t begin, uintptr_t end, const std::string& name);
// Null: nothing. Returns what it was before.
const std::string* name_next_ranges(const std::string* name) noexcept;
// No thread may be inside the range.
void remove_code_range(CodeRange* range) noexcept;

// Counts a fault of the code at this address after which nothing is known about the memory around it: an access to
// memory that it may not touch, or an instruction that does not exist. May be called in a signal handler.
void count_damage(uintptr_t address) noexcept;
// How many were counted for the range since it was registered.
uint64_t damage_of(const CodeRange& range) noexcept;
// Counts bytes that the code at this address took, and that nobody has any more since its frames were left.
void count_loss(uintptr_t address, uint64_t bytes) noexcept;
uint64_t loss_of(const CodeRange& range) noexcept;
// As library_at(), while the range is registered.
const char* name_of(const CodeRange& range) noexcept;

// The name of the library whose code this address is, for reports, or null. Valid while a thread is inside the library.
// May be called in a signal handler.
const char* library_at(uintptr_t address) noexcept;

}  // namespace sconce::faults
