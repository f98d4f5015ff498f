// Files below weights_dir, by names that come from clients.
#pragma once

#include <filesystem>
#include <string>

namespace sconce::server {

// An open file. `path` names it through its descriptor: what is opened there is the file that was checked, whatever
// becomes of its name.
class WeightsFile {
 public:
  // kForbidden if no directory is set, or if the name leads out of it, through '..', as an absolute path or by links;
  // kNotFound; kInvalidArgument if it is no regular file; kIo.
  WeightsFile(const std::string& directory, const std::string& name);
  ~WeightsFile();
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  int fd_ = -1;
  std::filesystem::path path_;
};

// For kernels without openat2, and sandboxes that forbid it: the same, following no links at all. The descriptor, or -1
// and errno.
int open_stepwise(int directory, const std::string& name);

}  // namespace sconce::server
