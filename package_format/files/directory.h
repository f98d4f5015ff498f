// Lists a folder without GCC's std::filesystem iterators, which end the process when memory runs out.
#pragma once

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sconce {

// Sorted; empty on error.
inline std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error) {
  struct Close {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
  };
  error.clear();
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> directory(::opendir(folder.c_str()));
  while (directory != nullptr) {
    errno = 0;
    const dirent* const entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (directory == nullptr || errno != 0) {
    error.assign(errno, std::generic_category());
    names.clear();
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace sconce
