// HostMemory: what memory this process may have, and how much of that is left: the least of the machine's and of its
// control groups, version 1 and 2.
#pragma once

#include <cstdint>
#include <filesystem>

namespace sconce {

struct HostMemory {
  uint64_t limit = UINT64_MAX;
  // Memory of files is counted as left: the kernel takes it back before it ends a process.
  uint64_t left = UINT64_MAX;
};

// root: where /proc and /sys are. What cannot be read sets no limit.
HostMemory host_memory(const std::filesystem::path& root = "/");

}  // namespace sconce
