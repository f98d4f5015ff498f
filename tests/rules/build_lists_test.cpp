// Everything in the tree is built, tested and shipped: CMake's lists, the tests, the image.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/rules/tree.h"

namespace sconce::rules {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

// The source files that a CMakeLists.txt names, as paths from the repository's root, repeated if named twice. Names are
// relative to its folder or begin with ${CMAKE_SOURCE_DIR}/.
std::vector<std::string> sources_in(const SourceFile& list) {
  static const std::regex comment("#[^\n]*");
  static const std::regex name(R"((?:\$\{CMAKE_SOURCE_DIR\}/)?[A-Za-z0-9_./-]+\.(?:cpp|cu|c|S)\b)");
  static const std::string root = "${CMAKE_SOURCE_DIR}/";
  const std::string text = std::regex_replace(list.text, comment, "");
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    const std::string word = it->str();
    const std::string path = word.starts_with(root) ? word.substr(root.size()) : folder_of(list.path) + word;
    found.push_back(std::filesystem::path(path).lexically_normal().generic_string());
  }
  return found;
}

std::vector<SourceFile> cmake_lists() {
  return read_tree({"package_format", "src", "server", "examples", "tests"}, {"CMakeLists.txt"});
}

// Calls such as add_executable(...) in a CMakeLists.txt, without comments. Arguments contain no parentheses, not even
// in generator expressions.
std::vector<std::string> calls_in(const std::string& text) {
  static const std::regex comment("#[^\n]*");
  static const std::regex call(R"(\b(?:add_library|add_executable|target_sources|sconce_test)\(([^)]*)\))");
  const std::string code = std::regex_replace(text, comment, "");
  std::vector<std::string> found;
  for (std::sregex_iterator it(code.begin(), code.end(), call), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

}  // namespace

TEST_CASE("build lists: each source file is built") {
  // Compiled by the scripts that time against PyTorch's headers and libraries; refused by ./dev lint.
  std::set<std::string> built = {"tests/bench/loader/torch_loader.cpp", "tests/bench/models/machine.cpp",
                                 "tests/bench/ops/torch_side.cpp", "tests/lint/unguarded.cpp"};
  for (const SourceFile& list : cmake_lists())
    for (const std::string& source : sources_in(list)) built.insert(source);
  const auto files = read_tree({"package_format", "src", "server", "examples", "tests"}, {".cpp", ".cu", ".c", ".S"});
  CHECK(files.size() > 200);
  for (const SourceFile& file : files)
    CHECK_MESSAGE(built.contains(file.path), file.path << " is in no CMakeLists.txt");
}

TEST_CASE("build lists: no target names a file twice") {
  static const std::regex source(R"([A-Za-z0-9_./-]+\.(?:cpp|cu|c|S)\b)");
  for (const SourceFile& list : cmake_lists())
    for (const std::string& call : calls_in(list.text)) {
      std::map<std::string, int> count;
      for (std::sregex_iterator it(call.begin(), call.end(), source), end; it != end; ++it) ++count[it->str()];
      for (const auto& [name, times] : count) CHECK_MESSAGE(times == 1, list.path << " has " << name << " twice");
    }
}

TEST_CASE("build lists: sources are found in a list") {
  CHECK(sources_in(
            {"src/CMakeLists.txt", "add_library(x cpu/a.cpp # b.cpp\n ../c.S ${CMAKE_SOURCE_DIR}/server/d.cpp)"}) ==
        std::vector<std::string>{"src/cpu/a.cpp", "c.S", "server/d.cpp"});
  CHECK(calls_in("add_library(x a.cpp)\n# sconce_test(y)\nset(z b.cpp)") == std::vector<std::string>{"x a.cpp"});
}

TEST_CASE("build lists: each test file has tests, none of them skipped") {
  static const std::regex test_case(R"(\bTEST_CASE(?:_TEMPLATE|_FIXTURE|_TEMPLATE_DEFINE)?\s*\()");
  static const std::regex off(R"(doctest::(?:skip|may_fail|should_fail|expected_failures)\b)");
  size_t total = 0;
  for (const SourceFile& file : read_tree({"tests"}, {"_test.cpp"})) {
    const std::string code = code_of(file.text);
    const auto count = std::distance(std::sregex_iterator(code.begin(), code.end(), test_case), {});
    CHECK_MESSAGE(count > 0, file.path << " has no TEST_CASE");
    CHECK_MESSAGE(!std::regex_search(code, off), file.path << " leaves tests out");
    total += static_cast<size_t>(count);
  }
  MESSAGE(total << " test cases in the tree");
  CHECK(total > 400);
}

TEST_CASE("build lists: packages bring every library that is opened when needed") {
  static const std::regex lazy(
      R"re(sconce_lazy_library\([^)]*\bSONAME\s+(lib[A-Za-z0-9.]+)|LazyLibrary \w+\{"\w+", "([^"]+)", "[^"]+")re");
  const std::string bundle = read_text("packaging/bundle.py");
  int libraries = 0;
  for (const SourceFile& file : read_tree({"package_format", "src", "server"}, {"CMakeLists.txt", ".cpp"})) {
    if (file.path.starts_with("src/cuda/")) continue;  // NVIDIA's come from NVIDIA
    for (std::sregex_iterator it(file.text.begin(), file.text.end(), lazy), end; it != end; ++it, ++libraries) {
      const std::string name = (*it)[1].matched ? (*it)[1] : (*it)[2];
      CHECK_MESSAGE(bundle.find('"' + name + '"') != std::string::npos,
                    file.path << ": packaging/bundle.py does not have " << name);
    }
  }
  CHECK(libraries >= 4);
}

TEST_CASE("build lists: what the images copy is in the tree and not ignored") {
  static const std::regex copy(R"(\nCOPY (?!--from)([^\n]+))");
  static const std::regex word(R"(\S+)");
  const std::string kept = read_text(".dockerignore");
  for (const char* const dockerfile : {"docker/Dockerfile.cpu", "docker/Dockerfile.cuda"}) {
    const std::string text = read_text(dockerfile);
    int copies = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), copy), end; it != end; ++it) {
      const std::string line = (*it)[1];
      std::vector<std::string> words;
      for (std::sregex_iterator at(line.begin(), line.end(), word), last; at != last; ++at) words.push_back(at->str());
      words.pop_back();  // the destination
      for (const std::string& path : words) {
        if (path == ".") continue;
        if (path.starts_with("dist/")) {  // which ./dev deb writes
          CHECK(kept.find("\n!dist/*.deb\n") != std::string::npos);
          continue;
        }
        ++copies;
        CHECK_MESSAGE(exists(path), dockerfile << " copies " << path);
        const std::regex line_of_it("\n!" + path + "\n");
        CHECK_MESSAGE(std::regex_search(kept, line_of_it), ".dockerignore leaves out " << path);
      }
    }
    CHECK(copies >= 3);
  }
}

// The CUDA image copies libraries by name; src/cuda/CMakeLists.txt lists them.
TEST_CASE("build lists: the CUDA image has every library of NVIDIA's that is opened when needed") {
  static const std::regex lazy(R"(sconce_lazy_library\(sconce_cuda NAME (\w+) SONAME lib(\w+)\.so)");
  const std::string dockerfile = read_text("docker/Dockerfile.cuda"), list = read_text("src/cuda/CMakeLists.txt");
  int libraries = 0;
  for (std::sregex_iterator it(list.begin(), list.end(), lazy), end; it != end; ++it, ++libraries) {
    const std::string name = (*it)[2];
    CHECK_MESSAGE(dockerfile.find(name + ".so.") != std::string::npos, "docker/Dockerfile.cuda has no " << name);
  }
  CHECK(libraries >= 5);
}

TEST_CASE("build lists: each distribution has a line of packages for each command that others have") {
  static const std::regex line("(?:^|\n)([a-z]+:[0-9.]+) ([a-z]+):");
  std::map<std::string, std::set<std::string>> commands;
  const std::string text = read_text("dev.packages");
  for (std::sregex_iterator it(text.begin(), text.end(), line), end; it != end; ++it)
    commands[(*it)[1]].insert((*it)[2]);
  REQUIRE(commands.contains("debian:12"));
  for (const auto& [distribution, own] : commands)
    CHECK_MESSAGE(own == commands["debian:12"], distribution << " has other commands than debian:12");
}

}  // namespace sconce::rules
