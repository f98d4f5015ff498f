#include "package_format/files/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace sconce {
namespace {

// A path made of parts. If they are too long, the path is truncated and names no file.
class Path {
 public:
  Path(std::initializer_list<std::string_view> pieces) noexcept {
    for (const std::string_view piece : pieces) {
      const size_t length = std::min(piece.size(), sizeof text_ - 1 - size_);
      std::copy_n(piece.begin(), length, text_ + size_);
      size_ += length;
    }
    text_[size_] = '\0';
  }
  const char* c_str() const noexcept { return text_; }

 private:
  char text_[PATH_MAX];
  size_t size_ = 0;
};

// The start of a file; empty if the file does not exist.
class Content {
 public:
  explicit Content(const Path& path) noexcept {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    for (ssize_t n = 1; n > 0 && size_ < text_.size();) {
      n = ::read(fd, text_.data() + size_, text_.size() - size_);
      if (n > 0) size_ += static_cast<size_t>(n);
    }
    ::close(fd);
  }
  // Returns false at the end.
  bool next_line(std::string_view& line) noexcept {
    const std::string_view rest = std::string_view(text_.data(), size_).substr(at_);
    if (rest.empty()) return false;
    line = rest.substr(0, rest.find('\n'));
    at_ += std::min(line.size() + 1, rest.size());
    return true;
  }

 private:
  std::array<char, 16384> text_;
  size_t size_ = 0, at_ = 0;
};

// nullopt for "max".
std::optional<uint64_t> number(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<uint64_t> number_in(const Path& path) noexcept {
  Content content(path);
  std::string_view line;
  return content.next_line(line) ? number(line) : std::nullopt;
}

// The number on the line with that key: "key 12", "key:  12 kB".
std::optional<uint64_t> number_of(const Path& path, std::string_view key) noexcept {
  Content content(path);
  for (std::string_view line; content.next_line(line);)
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return number(line.substr(key.size()));
  return std::nullopt;
}

struct Names {
  std::string_view limit, usage, active, inactive;
};
constexpr Names kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_active_file",
                          "total_inactive_file"};
constexpr Names kVersion2{"/memory.max", "/memory.current", "active_file", "inactive_file"};

uint64_t less(uint64_t from, uint64_t by) noexcept { return from - std::min(from, by); }

// Applies the limits of a group and of its parent groups. In a container, the path may be the host's and not exist
// here; then the mounted folder is the container's own group.
void narrow(HostMemory& memory, std::string_view root, std::string_view mounted, std::string_view group,
            const Names& names) noexcept {
  if (group == "/") group = {};
  for (;;) {
    if (const auto limit = number_in({root, mounted, group, names.limit})) {
      const uint64_t usage = number_in({root, mounted, group, names.usage}).value_or(0);
      const Path statistics{root, mounted, group, "/memory.stat"};
      const uint64_t files =
          number_of(statistics, names.active).value_or(0) + number_of(statistics, names.inactive).value_or(0);
      const uint64_t left = less(*limit, less(usage, files));
      memory.limit = std::min(memory.limit, *limit);
      memory.left = std::min(memory.left, left);
      memory.left_without_swap = std::min(memory.left_without_swap, left);
    }
    if (group.empty()) return;
    const size_t slash = group.rfind('/');
    group = group.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
}

// Whether a list such as "cpu,memory" contains "memory".
bool has_memory(std::string_view controllers) noexcept {
  for (;;) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "memory") return true;
    if (comma == std::string_view::npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

}  // namespace

HostMemory host_memory(std::string_view root) noexcept {
  HostMemory memory;
  const Path machine{root, "/proc/meminfo"};
  if (const auto total = number_of(machine, "MemTotal:")) memory.limit = *total * 1024;
  if (const auto available = number_of(machine, "MemAvailable:")) {
    memory.left_without_swap = *available * 1024;
    memory.left = memory.left_without_swap + number_of(machine, "SwapFree:").value_or(0) * 1024;
  }
  // "0::/kubepods/pod1" for version 2, "9:cpu,memory:/docker/1" for version 1.
  Content groups({root, "/proc/self/cgroup"});
  for (std::string_view line; groups.next_line(line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) narrow(memory, root, "/sys/fs/cgroup", group, kVersion2);
    if (has_memory(controllers)) narrow(memory, root, "/sys/fs/cgroup/memory", group, kVersion1);
  }
  return memory;
}

}  // namespace sconce
