// The source tree, as the rule tests see it.
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

// Files below these folders with these endings, sorted by path.
std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& endings);
// The text of one file; fails the test if there is none.
std::string read_text(const std::string& path);
bool exists(const std::string& path);

// C++ source without comments and without the contents of string and character literals; line numbers stay the same.
std::string code_of(std::string_view source);
// The opposite: only the comments, on their lines.
std::string comments_of(std::string_view source);
size_t line_of(std::string_view text, size_t position);

}  // namespace sconce::rules
