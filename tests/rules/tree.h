// The source tree as the tests of its rules see it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::rules {

struct SourceFile {
  std::string path;  // from the root of the repository
  std::string text;
};

// Files below the given folders whose names end so; in order of path.
std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& endings);
// The text of one file; fails the test if there is none.
std::string read_text(const std::string& path);
bool exists(const std::string& path);

// C++ source without comments and without the contents of string and character literals; lines stay where they are.
std::string code_of(std::string_view source);
// The other way round: its comments alone, where they are.
std::string comments_of(std::string_view source);
size_t line_of(std::string_view text, size_t position);

}  // namespace sconce::rules
