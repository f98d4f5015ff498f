// Which versions of a model are served (setting version_policy), and their labels (setting version_labels).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sconce::server::registry {

struct VersionPolicy {
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  int64_t latest = 1;             // number of highest versions; kAll: all versions
  std::vector<int64_t> specific;  // if not empty, these versions instead of the highest

  // versions: all existing versions, ascending.
  bool serves(int64_t version, std::span<const int64_t> versions) const noexcept;
};

// Empty: the latest version. kInvalidArgument.
VersionPolicy parse_version_policy(std::string_view text);

using VersionLabels = std::vector<std::pair<std::string, int64_t>>;

// "stable:1", "canary:2". kInvalidArgument, also for a label that is a number or is given twice.
VersionLabels parse_version_labels(std::span<const std::string> texts);
std::optional<int64_t> version_of(const VersionLabels& labels, std::string_view label) noexcept;

}  // namespace sconce::server::registry
