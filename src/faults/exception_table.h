// The exception table of a compiled function: how an exception from a call passes through the function.
//
// Source: the LSDA that GCC and Clang emit for C++ (.gcc_except_table), as libstdc++'s personality function reads it
// (libsupc++/eh_personality.cc), and DWARF's pointer encodings (LSB 5.0, 10.5).
#pragma once

#include <cstdint>
#include <typeinfo>

namespace sconce::faults {

enum class Passage {
  kBare,     // the exception passes; no destructor of the function runs
  kOpen,     // the exception passes, after the function's destructors
  kCaught,   // a handler catches it
  kBlocked,  // the function promised not to throw there: std::terminate()
};

// `table` is the function's LSDA, null if it has none; `function` is the start address of the function; `address` lies
// within the call. `catches(type)` returns whether a handler of that type catches the exception; null is catch (...).
Passage passage_at(const void* table, uintptr_t function, uintptr_t address,
                   bool (*catches)(const std::type_info* type)) noexcept;

}  // namespace sconce::faults
