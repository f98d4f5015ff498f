// Files that comments and scripts name exist. documents_test.cpp checks the documents.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

const std::vector<std::string> kFolders = {"cmake",   "conf",           "docker", "docs", "examples",
                                           "include", "package_format", "server", "src",  "tests"};
// These tests contain made-up paths as examples.
bool dummy(const std::string& path) { return path.starts_with("tests/rules/"); }

// Texts in which a path is meant from the repository's root.
std::vector<SourceFile> texts() {
  std::vector<SourceFile> files = read_tree(
      kFolders, {".h", ".cpp", ".cu", ".cuh", ".def", ".py", ".sh", ".md", ".txt", ".cmake", ".symbols", ".map"});
  for (const char* const path : {"README.md", "CMakeLists.txt", "dev", "dev.packages"})
    files.push_back({path, read_text(path)});
  return files;
}

// The comments of C++ files, all of other files. Line breaks stay in place.
std::string prose_of(const SourceFile& file) {
  static const std::set<std::string> cplusplus = {".h", ".cpp", ".cu", ".cuh", ".def"};
  if (!cplusplus.contains(std::filesystem::path(file.path).extension().string())) return file.text;
  return comments_of(file.text);
}

// Matches "src/x.h" and "tests/cuda/", but not the ends of longer paths, nor ${binary}/server/.
std::vector<std::string> paths_in(const std::string& text) {
  static const std::regex path(
      R"re((^|[^\w/.}$*-])((?:cmake|conf|docker|docs|examples|include|package_format|server|src|tests)/)re"
      R"re((?:[\w.-]+/)*(?:[\w-][\w.-]*\.(?:h|cpp|cu|cuh|def|py|sh|md|inc|symbols|map|txt|cases)\b|(?=[\s`'",;:)]|$))))re");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), path), end; it != end; ++it) found.push_back((*it)[2]);
  return found;
}

// Matches names in our style, such as "gemm.h" and "sort_rows.cuh": a file must have that name.
std::vector<std::string> names_in(const std::string& text) {
  static const std::regex name(R"re((?:^|[^\w/.*<"}-])([a-z][a-z0-9]*(?:_[a-z0-9]+)+\.(?:h|cpp|cu|cuh|def))(?!\w))re");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

// Files of PyTorch, CUDA and the C library that comments mention.
const std::set<std::string> kForeign = {"c_shim_cpu.h", "shim_common.cpp", "shim_deprecated.h"};

}  // namespace

TEST_CASE("paths: those in comments and scripts exist") {
  for (const SourceFile& file : texts()) {
    if (dummy(file.path)) continue;
    const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
    // A CMakeLists.txt may name files beside it, a document files in its folder.
    for (const std::string& path : paths_in(prose_of(file)))
      CHECK_MESSAGE((exists(path) || exists(folder + path)), file.path << " names " << path);
  }
}

TEST_CASE("paths: files that comments call by name alone exist") {
  std::set<std::string> names;
  for (const SourceFile& file : read_tree(kFolders, {".h", ".cpp", ".cu", ".cuh", ".def"}))
    names.insert(file.path.substr(file.path.rfind('/') + 1));
  for (const SourceFile& file : read_tree({"include", "package_format", "server", "src", "examples"},
                                          {".h", ".cpp", ".cu", ".cuh", ".def", ".md"}))
    for (const std::string& name : names_in(prose_of(file)))
      CHECK_MESSAGE((names.contains(name) || kForeign.contains(name)), file.path << " names " << name);
}

TEST_CASE("paths: seen in comments and scripts") {
  CHECK(paths_in("See src/cpu/x.h, (docs/a.md) and `tests/cuda/`; not a/src/x.h, ${x}/src/y.h, src/*/z.h, src/x.") ==
        std::vector<std::string>{"src/cpu/x.h", "docs/a.md", "tests/cuda/"});
  CHECK(names_in("as gemm_pack.h and (sort_rows.cuh) say, not gemm.h, <a_b.h>, x/a_b.h, a_b.html, *_test.cpp") ==
        std::vector<std::string>{"gemm_pack.h", "sort_rows.cuh"});
  CHECK(prose_of({"x.cpp", "f(\"src/a.h\");  // src/b.h\n/* src/c.h */ g();"}) ==
        std::string(18, ' ') + "src/b.h\n   src/c.h        ");
  CHECK(prose_of({"x.sh", "run src/a.sh"}) == "run src/a.sh");
}

}  // namespace sconce::rules
