// The machine code of packages in this process: the address ranges of their instructions.
//
// A fault at such an address belongs to the package. A fault elsewhere does not, even if a package's code called the
// function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sconce::faults {

class CodeRange;  // an entry of the list; never freed, only reused, because a signal handler may read the list

// Registers [begin, end), executable memory of the library `name`. Reports add the name set by name_next_ranges() on
// this thread. std::bad_alloc.
CodeRange* add_code_range(uintptr_t begin, uintptr_t end, const std::string& name);
// Null: no name. Returns the previous value.
const std::string* name_next_ranges(const std::string* name) noexcept;
// No thread may be inside the range.
void remove_code_range(CodeRange* range) noexcept;

// Counts a fault of the code at this address after which other memory may be damaged: an invalid memory access or an
// illegal instruction. May be called in a signal handler.
void count_damage(uintptr_t address) noexcept;
// The faults counted for the range since it was registered.
uint64_t damage_of(const CodeRange& range) noexcept;
// Counts bytes that the code at this address allocated and lost when its frames were abandoned.
void count_loss(uintptr_t address, uint64_t bytes) noexcept;
uint64_t loss_of(const CodeRange& range) noexcept;
// As library_at(), while the range is registered.
const char* name_of(const CodeRange& range) noexcept;

// The name of the library that contains this address, for reports, or null. Valid while a thread is inside the
// library. May be called in a signal handler.
const char* library_at(uintptr_t address) noexcept;

}  // namespace sconce::faults
