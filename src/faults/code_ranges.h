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

// Registers [begin, end), executable memory of the library `name`. std::bad_alloc.
CodeRange* add_code_range(uintptr_t begin, uintptr_t end, const std::string& name);
// No thread may be inside the range.
void remove_code_range(CodeRange* range) noexcept;

// The name of the library whose code this address is, or null. Valid while a thread is inside the library. May be
// called in a signal handler.
const char* library_at(uintptr_t address) noexcept;

}  // namespace sconce::faults
