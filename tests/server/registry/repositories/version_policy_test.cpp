#include "server/registry/repositories/version_policy.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

namespace sconce::server::registry {
namespace {

std::vector<int64_t> served(std::string_view policy, std::vector<int64_t> versions) {
  const VersionPolicy parsed = parse_version_policy(policy);
  std::vector<int64_t> kept;
  for (const int64_t version : versions)
    if (parsed.serves(version, versions)) kept.push_back(version);
  return kept;
}

std::string label_error(std::vector<std::string> texts) {
  return error_from([&] { parse_version_labels(texts); });
}

}  // namespace

TEST_CASE("version policy: the highest ones, all, or those that are named") {
  using List = std::vector<int64_t>;
  CHECK(served("", {1, 3, 7}) == List{7});
  CHECK(served("latest:1", {1, 3, 7}) == List{7});
  CHECK(served("latest:2", {1, 3, 7}) == List{3, 7});
  CHECK(served("latest:9", {1, 3, 7}) == List{1, 3, 7});
  CHECK(served("all", {1, 3, 7}) == List{1, 3, 7});
  CHECK(served("7, 1,2", {1, 3, 7}) == List{1, 7});
  CHECK(served("all", {}).empty());
  CHECK(error_from([] { parse_version_policy("latest:0"); }) == "setting version_policy: not a version: '0'");
  CHECK(error_from([] { parse_version_policy("newest"); }) == "setting version_policy: not a version: 'newest'");
}

TEST_CASE("version labels") {
  const VersionLabels labels = parse_version_labels(std::vector<std::string>{"stable:1", "canary:12"});
  CHECK(version_of(labels, "stable") == 1);
  CHECK(version_of(labels, "canary") == 12);
  CHECK(!version_of(labels, "other"));
  CHECK(label_error({"stable"}) == "setting version_labels: expected LABEL:VERSION, such as stable:1, got 'stable'");
  CHECK(label_error({"1:2"}) == "setting version_labels: expected LABEL:VERSION, such as stable:1, got '1:2'");
  CHECK(label_error({"a:0"}) == "setting version_labels: not a version: '0'");
  CHECK(label_error({"a:1", "a:2"}) == "setting version_labels: label 'a' is there twice");
}

}  // namespace sconce::server::registry
