// How much memory this process may still take before the system ends a process for want of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sconce {

// The least of what the machine and the control groups of the process have left, where pages of files count as free:
// the system gives them up first. Files are looked for below `root`. UINT64_MAX where nothing is known. Allocates
// nothing.
uint64_t memory_room(std::string_view root = {}) noexcept;

}  // namespace sconce
