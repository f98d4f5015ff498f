#include "server/registry/remote/listed_folder.h"

#include <algorithm>

namespace sconce::server::registry {

ListedFolder::ListedFolder(const std::filesystem::path& root, std::vector<RemoteFile> files)
    : root_(root.native()), files_(std::move(files)) {
  std::sort(files_.begin(), files_.end(), [](const RemoteFile& a, const RemoteFile& b) { return a.path < b.path; });
}

// Empty for the root, and for a path that is not below it.
std::string ListedFolder::below(const std::filesystem::path& path) const {
  const std::string& text = path.native();
  return text.starts_with(root_ + "/") ? text.substr(root_.size() + 1) : std::string();
}

ListedFolder::Files::const_iterator ListedFolder::first_from(const std::string& path) const {
  return std::lower_bound(files_.begin(), files_.end(), path,
                          [](const RemoteFile& file, const std::string& text) { return file.path < text; });
}

std::vector<std::string> ListedFolder::names(const std::filesystem::path& folder, std::error_code& problem) const {
  problem.clear();
  const std::string path = below(folder), begin = path.empty() ? "" : path + "/";
  std::vector<std::string> names;
  for (auto file = first_from(begin); file != files_.end() && file->path.starts_with(begin); ++file) {
    const std::string rest = file->path.substr(begin.size());
    std::string name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  // "a-b/c" sorts between "a" and "a/b".
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool ListedFolder::is_folder(const std::filesystem::path& path) const {
  const std::string begin = below(path) + "/";
  const auto file = first_from(begin);
  return file != files_.end() && file->path.starts_with(begin);
}

bool ListedFolder::exists(const std::filesystem::path& path) const {
  const std::string text = below(path);
  const auto file = first_from(text);
  return (file != files_.end() && file->path == text) || is_folder(path);
}

void ListedFolder::add_stamp(const std::filesystem::path& path, FileStamps& stamps) const {
  const std::string text = below(path);
  if (const auto file = first_from(text); file != files_.end() && file->path == text)
    stamps.add(file->validator, file->bytes);
}

}  // namespace sconce::server::registry
