// What is below a folder. Blocks on the file system; what cannot be read is left out.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <vector>

namespace sconce::server {

struct Below {
  std::filesystem::path path;
  struct stat status {};  // of a symbolic link itself
};

// Files and folders; a folder comes after all that is in it. Symbolic links are not followed.
std::vector<Below> all_below(const std::filesystem::path& folder);

}  // namespace sconce::server
