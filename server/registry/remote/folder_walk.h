// Lists everything below a folder. Blocks on the file system; unreadable entries are omitted.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <vector>

namespace sconce::server::registry {

struct Below {
  std::filesystem::path path;
  struct stat status {};  // of a symbolic link itself, not of its target
};

// Files and folders; a folder comes after its contents. Symbolic links are not followed.
std::vector<Below> all_below(const std::filesystem::path& folder);

}  // namespace sconce::server::registry
