#include "server/registry/remote/listed_folder.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace sconce::server::registry {
namespace {

std::vector<std::string> names(const ListedFolder& folder, const std::string& path) {
  std::error_code problem;
  return folder.names(path, problem);
}

TEST_CASE("a list is read as folders") {
  const ListedFolder folder(
      "/r", {{"a/1/model.pt2", 5, "x"}, {"a-b/config.pbtxt", 1, "y"}, {"a/10/model.pt2", 7, "z"}, {"c.pt2", 3, "w"}});
  CHECK(names(folder, "/r") == std::vector<std::string>{"a", "a-b", "c.pt2"});
  CHECK(names(folder, "/r/a") == std::vector<std::string>{"1", "10"});
  CHECK(names(folder, "/r/none").empty());
  CHECK(folder.is_folder("/r/a"));
  CHECK(folder.is_folder("/r/a/1"));
  CHECK_FALSE(folder.is_folder("/r/c.pt2"));
  CHECK_FALSE(folder.is_folder("/r/a/1/model.pt2"));
  CHECK(folder.exists("/r/c.pt2"));
  CHECK(folder.exists("/r/a/1"));
  CHECK_FALSE(folder.exists("/r/c"));
  CHECK_FALSE(folder.exists("/other/c.pt2"));
}

TEST_CASE("a stamp changes with the validator and the size") {
  const auto stamp = [](const std::string& validator, uint64_t bytes) {
    FileStamps stamps;
    ListedFolder("/r", {{"c.pt2", bytes, validator}}).add_stamp("/r/c.pt2", stamps);
    return stamps;
  };
  CHECK(stamp("x", 3) == stamp("x", 3));
  CHECK(stamp("x", 3) != stamp("y", 3));
  CHECK(stamp("x", 3) != stamp("x", 4));
}

}  // namespace
}  // namespace sconce::server::registry
