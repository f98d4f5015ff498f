// HostMemory: how much memory this process may have, and how much of it is left. The smallest limit counts: the
// machine's, or that of a control group (version 1 or 2).
#pragma once

#include <cstdint>
#include <string_view>

namespace sconce {

struct HostMemory {
  uint64_t limit = UINT64_MAX;
  // Counts memory of files as left, because the kernel reclaims it before it ends a process.
  uint64_t left = UINT64_MAX;
  uint64_t left_without_swap = UINT64_MAX;
};

// root: the folder that has /proc and /sys. A limit that cannot be read does not count. Allocates nothing.
HostMemory host_memory(std::string_view root = {}) noexcept;

}  // namespace sconce
