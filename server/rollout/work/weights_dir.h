// Opens files below weights_dir by names that clients send.
#pragma once

#include <filesystem>
#include <string>

#include "server/support/files/descriptor.h"

namespace sconce::server {

// An open file. `path` names it through its descriptor, so it always means the file that was checked, even if its name
// now means another.
class WeightsFile {
 public:
  // kForbidden if no directory is set, or if the name leads out of it by '..', an absolute path or links; kNotFound;
  // kInvalidArgument if it is not a regular file; kIo.
  WeightsFile(const std::string& directory, const std::string& name);
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  Descriptor fd_;
  std::filesystem::path path_;
};

// Opens the file without following any links, for kernels without openat2 and sandboxes that forbid it. Returns the
// descriptor, or -1 and errno.
int open_stepwise(int directory, const std::string& name);

}  // namespace sconce::server
