#include "server/registry/remote/folder_walk.h"

#include <string>
#include <system_error>

#include "package_format/files/directory.h"

namespace sconce::server::registry {
namespace {

void add_below(const std::filesystem::path& folder, std::vector<Below>& found) {
  std::error_code problem;
  for (const std::string& name : names_in(folder, problem)) {
    Below below{folder / name};
    if (::lstat(below.path.c_str(), &below.status) != 0) continue;
    if (S_ISDIR(below.status.st_mode)) add_below(below.path, found);
    found.push_back(std::move(below));
  }
}

}  // namespace

std::vector<Below> all_below(const std::filesystem::path& folder) {
  std::vector<Below> found;
  add_below(folder, found);
  return found;
}

}  // namespace sconce::server::registry
