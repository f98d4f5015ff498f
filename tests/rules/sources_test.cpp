// Sizes and names of source files.
#include <doctest/doctest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

constexpr long kMaxLines = 600;
const std::vector<std::string> kFolders = {"include", "package_format", "src", "server", "examples", "tests"};
const std::set<std::string> kEmptyNames = {"utils", "util", "helpers", "helper", "common", "misc"};

// Words of a path's last part: "tensor_files.h" gives tensor, files, h.
std::set<std::string> words_of(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  static const std::regex word("[A-Za-z0-9]+");
  return {std::sregex_token_iterator(name.begin(), name.end(), word), std::sregex_token_iterator()};
}

}  // namespace

TEST_CASE("sources: files end before line 600") {
  for (const SourceFile& file : read_tree(kFolders, {".h", ".cpp", ".cu", ".cuh", ".py"})) {
    const long lines = std::count(file.text.begin(), file.text.end(), '\n');
    CHECK_MESSAGE(lines <= kMaxLines, file.path << " has " << lines << " lines");
  }
}

TEST_CASE("sources: names are lower_snake and say something") {
  static const std::regex lower_snake(R"([a-z][a-z0-9]*(_[a-z0-9]+)*)");
  for (const SourceFile& file : read_tree(kFolders, {".h", ".cpp", ".cu", ".cuh"})) {
    const std::string name = std::filesystem::path(file.path).stem().string();
    CHECK_MESSAGE(std::regex_match(name, lower_snake), file.path);
    for (const std::filesystem::path& part : std::filesystem::path(file.path).parent_path())
      CHECK_MESSAGE(!kEmptyNames.contains(part.string()), file.path);
    for (const std::string& word : words_of(file.path)) CHECK_MESSAGE(!kEmptyNames.contains(word), file.path);
  }
}

TEST_CASE("sources: a test's first include is the header it tests") {
  for (const SourceFile& file : read_tree({"tests"}, {"_test.cpp"})) {
    // "tests/cpu/random/random_test.cpp" tests "src/cpu/random/random.h", if that header exists.
    static const std::regex mirrored(R"(tests/([\w/]+)/(\w+)_test\.cpp)");
    static const std::regex first_include(R"re(#include ["<]([^">]+)[">])re");
    std::smatch path, include;
    if (!std::regex_match(file.path, path, mirrored) || !std::regex_search(file.text, include, first_include)) continue;
    for (const std::string& header :
         {"src/" + path.str(1) + "/" + path.str(2) + ".h", path.str(1) + "/" + path.str(2) + ".h"})
      if (exists(header)) CHECK_MESSAGE(include.str(1) == header, file.path);
  }
}

}  // namespace sconce::rules
