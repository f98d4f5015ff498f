// HostMemory: what memory this process may have, and how much of that is left: the least of the machine's and of its
// control groups, version 1 and 2.
#pragma once

#include <cstdint>
#include <string_view>

namespace sconce {

struct HostMemory {
  uint64_t limit = UINT64_MAX;
  // Memory of files is counted as left: the kernel takes it back before it ends a process.
  uint64_t left = UINT64_MAX;
  uint64_t left_without_swap = UINT64_MAX;
};

// root: below what /proc and /sys are. What cannot be read sets no limit. Allocates nothing.
HostMemory host_memory(std::string_view root = {}) noexcept;

}  // namespace sconce
