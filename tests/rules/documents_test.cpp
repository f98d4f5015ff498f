// Paths that the documents name exist.
#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

// Paths from the repository's root in `code` spans and links of a Markdown text. Leaves out patterns such as
// "src/*/x.h" and built files.
std::set<std::string> paths_in(const std::string& text) {
  static const std::regex code("`([^`\n]+)`");
  static const std::regex link(R"(\]\(([^)\s#]+)[^)]*\))");
  static const std::regex token(R"re([^\s,;()"'=]+)re");
  static const std::regex known(
      R"((\./dev|(\.ci|conf|docker|docs|examples|include|package_format|server|src|tests)/[A-Za-z0-9_./+-]*))");
  std::set<std::string> paths;
  for (std::sregex_iterator it(text.begin(), text.end(), code), end; it != end; ++it) {
    const std::string span = (*it)[1];
    for (std::sregex_iterator word(span.begin(), span.end(), token); word != end; ++word)
      if (const std::string path = word->str(); std::regex_match(path, known)) paths.insert(path);
  }
  for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it)
    if (const std::string target = (*it)[1]; target.find("://") == std::string::npos) paths.insert(target);
  return paths;
}

}  // namespace

TEST_CASE("documents: the paths they name exist") {
  std::vector<SourceFile> documents =
      read_tree({"docs", "package_format", "src", "server", "examples", "conf", "docker"}, {".md"});
  for (const char* const path : {"README.md", "CONTRIBUTING.md", ".github/pull_request_template.md"})
    documents.push_back({path, read_text(path)});
  for (const SourceFile& document : documents) {
    const std::string folder = document.path.substr(0, document.path.rfind('/') + 1);
    for (const std::string& path : paths_in(document.text))
      CHECK_MESSAGE((exists(path) || exists(folder + path)), document.path << " names " << path);
  }
}

TEST_CASE("documents: paths are found in code spans and links") {
  CHECK(paths_in(
            "See `src/cpu/x.h`, `./dev test` and [the rest](docs/a.md#b); not `a/b`, `src/*.h`, [x](https://y/z).") ==
        std::set<std::string>{"./dev", "docs/a.md", "src/cpu/x.h"});
}

}  // namespace sconce::rules
