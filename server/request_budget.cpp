#include "server/request_budget.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "sconce/check.h"

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

// The least of the limits of a group and those it is in. In a container the group's path may be one of the host's that
// is not there: then what is mounted is the container's own.
uint64_t least(const std::filesystem::path& mounted, std::string_view group, const char* file) {
  uint64_t limit = UINT64_MAX;
  std::filesystem::path at = mounted / std::filesystem::path(group).relative_path();
  for (;;) {
    limit = std::min(limit, number_in(at / file).value_or(UINT64_MAX));
    if (at == mounted || !at.has_relative_path()) return limit;
    at = at.parent_path();
  }
}

}  // namespace

void RequestBudget::check(uint64_t bytes, std::string_view what) const {
  SCONCE_CHECK(bytes <= limit_, kTooLarge, what, " of ", bytes,
               " bytes is larger than the memory of all requests (setting request_memory): ", limit_, " bytes");
  if (bytes > limit_ - std::min(used(), limit_)) refuse(bytes);
}

void RequestBudget::take(uint64_t bytes, std::string_view what) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_) return check(bytes, what);
    if (bytes > limit_ - std::min(used, limit_)) refuse(bytes);
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

void RequestBudget::refuse(uint64_t bytes) {
  SCONCE_FAIL(kUnavailable, "no room for ", bytes,
              " bytes among those of other requests (setting request_memory): try again later");
}

void BudgetShare::take(RequestBudget& budget, uint64_t bytes, std::string_view what) {
  give_back();
  budget.take(bytes, what);
  budget_ = &budget;
  bytes_ = bytes;
}

void BudgetShare::give_back() noexcept {
  if (budget_ != nullptr) budget_->give(bytes_);
  budget_ = nullptr;
}

uint64_t memory_limit(const std::filesystem::path& root) {
  uint64_t limit = UINT64_MAX;
  {
    std::ifstream file(root / "proc/meminfo");
    std::string key, unit;
    uint64_t value = 0;
    for (; file >> key >> value; std::getline(file, unit)) {
      if (key == "MemTotal:") limit = value * 1024;
    }
  }
  // "0::/kubepods/pod1" of version 2, "9:cpu,memory:/docker/1" of version 1.
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) limit = std::min(limit, least(root / "sys/fs/cgroup", group, "memory.max"));
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "memory")
        limit = std::min(limit, least(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
    }
  }
  return limit;
}

}  // namespace sconce
