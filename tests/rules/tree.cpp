#include "tests/rules/tree.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/files.h"

namespace sconce::rules {
namespace fs = std::filesystem;

namespace {
const fs::path kRoot = source_path();
}  // namespace

std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(kRoot / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string path = fs::relative(entry.path(), kRoot).generic_string();
      if (entry.is_regular_file() && std::any_of(endings.begin(), endings.end(),
                                                 [&](const std::string& ending) { return path.ends_with(ending); }))
        files.push_back({path, content_of(entry.path())});
    }
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

std::string read_text(const std::string& path) {
  REQUIRE_MESSAGE(exists(path), path);
  return content_of(kRoot / path);
}

bool exists(const std::string& path) { return fs::exists(kRoot / path); }

namespace {

enum class Part { kComment, kLiteral };

// Calls f(part, begin, end) for the inside of each comment and literal of C++ source, in order.
template <class F>
void each_part(std::string_view source, F f) {
  const auto part = [&](Part kind, size_t from, size_t to) { f(kind, from, std::min(to, source.size())); };
  for (size_t i = 0; i < source.size();) {
    if (source.substr(i, 2) == "//") {
      const size_t end = std::min(source.find('\n', i), source.size());
      part(Part::kComment, i, end);
      i = end;
    } else if (source.substr(i, 2) == "/*") {
      const size_t close = source.find("*/", i + 2), end = close == std::string_view::npos ? source.size() : close + 2;
      part(Part::kComment, i, end);
      i = end;
    } else if (source.substr(i, 2) == "R\"") {
      const size_t open = source.find('(', i);
      const std::string close = std::string(")").append(source.substr(i + 2, open - i - 2)).append("\"");
      const size_t end = std::min(source.find(close, open), source.size());
      part(Part::kLiteral, open, end);
      i = end + close.size();
    } else if (source[i] == '"' || (source[i] == '\'' && !(i > 0 && std::isalnum(source[i - 1])))) {
      // A quote after a letter or digit is a digit separator.
      size_t end = i + 1;
      while (end < source.size() && source[end] != source[i]) end += source[end] == '\\' ? 2 : 1;
      part(Part::kLiteral, i + 1, end);
      i = end + 1;
    } else {
      ++i;
    }
  }
}

}  // namespace

std::string code_of(std::string_view source) {
  std::string code(source);
  each_part(source, [&](Part, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (code[i] != '\n') code[i] = ' ';
  });
  return code;
}

std::string comments_of(std::string_view source) {
  std::string comments(source);
  for (char& c : comments)
    if (c != '\n') c = ' ';
  each_part(source, [&](Part part, size_t from, size_t to) {
    if (part != Part::kComment) return;
    const size_t end = source.substr(from, 2) == "/*" && source.substr(from, to - from).ends_with("*/") ? to - 2 : to;
    for (size_t i = from + 2; i < end; ++i) comments[i] = source[i];
  });
  return comments;
}

size_t line_of(std::string_view text, size_t position) {
  return 1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

}  // namespace sconce::rules
