// Opens files below weights_dir by names from clients.
#pragma once

#include <filesystem>
#include <string>

#include "server/support/files/descriptor.h"

namespace sconce::server::rollout {

// An open file. `path` refers to it through its descriptor, so it always refers to the checked file, even if the name
// now refers to another file.
class WeightsFile {
 public:
  // kForbidden if no directory is set, or if the name leaves it by '..', an absolute path or links; kNotFound;
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
// descriptor, or -1 with errno.
int open_stepwise(int directory, const std::string& name);

}  // namespace sconce::server::rollout
