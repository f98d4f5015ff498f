#include "server/registry/repositories/version_policy.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/config.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

int64_t parse_version(std::string_view text, std::string_view setting) {
  const auto number = parse_number<int64_t>(text);
  SCONCE_CHECK(number && *number >= 1, kInvalidArgument, "setting ", setting, ": not a version: '", excerpt(text), "'");
  return *number;
}

}  // namespace

bool VersionPolicy::serves(int64_t version, std::span<const int64_t> versions) const noexcept {
  if (!specific.empty()) return std::find(specific.begin(), specific.end(), version) != specific.end();
  return std::count_if(versions.begin(), versions.end(), [&](int64_t other) { return other > version; }) < latest;
}

VersionPolicy parse_version_policy(std::string_view text) {
  constexpr std::string_view kSetting = "version_policy", kLatest = "latest:";
  VersionPolicy policy;
  if (text == "all") {
    policy.latest = VersionPolicy::kAll;
  } else if (text.starts_with(kLatest)) {
    policy.latest = parse_version(text.substr(kLatest.size()), kSetting);
  } else {
    for (const std::string& version : split(text, ',')) policy.specific.push_back(parse_version(version, kSetting));
    std::sort(policy.specific.begin(), policy.specific.end());
  }
  return policy;
}

VersionLabels parse_version_labels(std::span<const std::string> texts) {
  constexpr std::string_view kSetting = "version_labels";
  VersionLabels labels;
  for (const std::string& text : texts) {
    const size_t colon = text.rfind(':');
    const std::string label = text.substr(0, colon);
    SCONCE_CHECK(colon != std::string::npos && is_model_name(label) && !parse_number<int64_t>(label), kInvalidArgument,
                 "setting ", kSetting, ": expected LABEL:VERSION, such as stable:1, got '", excerpt(text), "'");
    SCONCE_CHECK(!version_of(labels, label), kInvalidArgument, "setting ", kSetting, ": label '", label,
                 "' is there twice");
    labels.emplace_back(label, parse_version(text.substr(colon + 1), kSetting));
  }
  return labels;
}

std::optional<int64_t> version_of(const VersionLabels& labels, std::string_view label) noexcept {
  for (const auto& [name, version] : labels)
    if (name == label) return version;
  return std::nullopt;
}

}  // namespace sconce::server::registry
