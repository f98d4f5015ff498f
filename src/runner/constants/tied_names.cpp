#include "src/runner/constants/tied_names.h"

#include <map>

#include "package_format/text/json_text.h"
#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::runner {
namespace {

constexpr const char* kTiedNames = "sconce_tied";

}  // namespace

std::vector<std::vector<std::string>> tied_names(const ModelSpec& spec) {
  const auto at = spec.metadata.find(kTiedNames);
  if (at == spec.metadata.end()) return {};
  const SortedJson recorded = parse_json(at->second, "metadata sconce_tied");
  SCONCE_CHECK(recorded.is_object() && recorded.contains("version"), kCorruptPackage, "metadata ", kTiedNames,
               ": no JSON object with a version");
  if (recorded["version"] != 1) return {};
  SCONCE_CHECK(recorded.contains("names") && recorded["names"].is_object(), kCorruptPackage, "metadata ", kTiedNames,
               ": no object of names");
  const SortedJson& names = recorded["names"];
  std::map<std::string, std::vector<std::string>> groups;  // by the name that the others stand for
  for (const auto& [other, name] : names.items()) {
    SCONCE_CHECK(name.is_string(), kCorruptPackage, "metadata ", kTiedNames, ": '", excerpt(other),
                 "' stands for no name");
    const std::string used = name.get<std::string>();
    SCONCE_CHECK(!names.contains(used), kCorruptPackage, "metadata ", kTiedNames, ": '", excerpt(other),
                 "' stands for '", excerpt(used), "', which stands for another");
    std::vector<std::string>& group = groups[used];
    if (group.empty()) group.push_back(used);
    group.push_back(other);
  }
  std::vector<std::vector<std::string>> result;
  for (auto& [used, group] : groups) result.push_back(std::move(group));
  return result;
}

}  // namespace sconce::runner
