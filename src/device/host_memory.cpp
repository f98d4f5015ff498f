#include "sconce/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace sconce {
namespace {

// A number in the first line of a file; none of "max".
std::optional<uint64_t> number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  file >> text;
  uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The numbers of the named lines, "inactive_file 4096".
uint64_t sum_of(const std::filesystem::path& path, std::string_view first, std::string_view second) {
  std::ifstream file(path);
  std::string key;
  uint64_t value = 0, sum = 0;
  while (file >> key >> value)
    if (key == first || key == second) sum += value;
  return sum;
}

struct Names {
  const char *limit, *used, *first_file, *second_file;
};
constexpr Names kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};
constexpr Names kVersion2{"memory.max", "memory.current", "inactive_file", "active_file"};

uint64_t less(uint64_t from, uint64_t by) { return from - std::min(from, by); }

// Of a group and those it is in. In a container the group's path may be one of the host's that is not there: then what
// is mounted is the container's own.
void narrow(HostMemory& memory, const std::filesystem::path& mounted, std::string_view group, const Names& names) {
  std::filesystem::path at = mounted / std::filesystem::path(group).relative_path();
  for (;;) {
    if (const std::optional<uint64_t> limit = number_in(at / names.limit)) {
      const uint64_t used = number_in(at / names.used).value_or(0);
      const uint64_t files = sum_of(at / "memory.stat", names.first_file, names.second_file);
      memory.limit = std::min(memory.limit, *limit);
      memory.left = std::min(memory.left, less(*limit, less(used, files)));
    }
    if (at == mounted || !at.has_relative_path()) return;
    at = at.parent_path();
  }
}

}  // namespace

HostMemory host_memory(const std::filesystem::path& root) {
  HostMemory memory;
  {
    std::ifstream file(root / "proc/meminfo");
    std::string key, rest;
    uint64_t value = 0, swap = 0;
    std::optional<uint64_t> available;
    for (; file >> key >> value; std::getline(file, rest)) {
      if (key == "MemTotal:") memory.limit = value * 1024;
      if (key == "MemAvailable:") available = value * 1024;
      if (key == "SwapFree:") swap = value * 1024;
    }
    if (available) memory.left = *available + swap;
  }
  // "0::/kubepods/pod1" of version 2, "9:cpu,memory:/docker/1" of version 1.
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) narrow(memory, root / "sys/fs/cgroup", group, kVersion2);
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');)
      if (name == "memory") narrow(memory, root / "sys/fs/cgroup/memory", group, kVersion1);
  }
  return memory;
}

}  // namespace sconce
