// Bans library features that end the process when memory runs out, because they allocate where nothing may throw.
#include <doctest/doctest.h>

#include <regex>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

// Folder iterators, whose steps allocate in noexcept functions of libstdc++; nlohmann's own values, whose destructor
// may allocate. Subcommands that do not serve may use the latter.
bool takes_memory(const std::string& path, const std::string& source) {
  static const std::regex iterators(R"(\b(recursive_)?directory_iterator\b)"), values(R"(nlohmann::(ordered_)?json\b)");
  const std::string code = code_of(source);
  const bool header_of_values = path == "package_format/text/json_value.h" || path.starts_with("src/tensor_files/");
  return std::regex_search(code, iterators) ||
         (!path.starts_with("server/cli/") && !header_of_values && std::regex_search(code, values));
}

}  // namespace

TEST_CASE("memory: nothing is used that ends the process without it") {
  for (const SourceFile& file : read_tree({"include", "package_format", "src", "server"}, {".h", ".cpp"}))
    CHECK_MESSAGE(!takes_memory(file.path, file.text), file.path);
}

TEST_CASE("memory: a violation is seen") {
  CHECK(takes_memory("server/x.cpp", "for (auto& e : std::filesystem::directory_iterator(path)) {}"));
  CHECK(takes_memory("src/x.cpp", "using Json = nlohmann::ordered_json;"));
  CHECK_FALSE(takes_memory("server/cli/ops.cpp", "nlohmann::json found;"));
  CHECK_FALSE(takes_memory("src/x.cpp", "// nlohmann::json\nSortedJson json;"));
}

}  // namespace sconce::rules
