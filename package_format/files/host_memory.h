// HostMemory: the memory limit of this process, and how much is left. The smallest limit counts: that of the machine
// or of a control group (version 1 or 2).
#pragma once

#include <cstdint>
#include <string_view>

namespace sconce {

struct HostMemory {
  uint64_t limit = UINT64_MAX;
  // Counts the page cache as left, because the kernel reclaims it before it kills a process.
  uint64_t left = UINT64_MAX;
  uint64_t left_without_swap = UINT64_MAX;
};

// root: the folder that contains /proc and /sys. A limit that cannot be read does not count. Allocates nothing.
HostMemory host_memory(std::string_view root = {}) noexcept;

}  // namespace sconce
