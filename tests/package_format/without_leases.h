// Files of another user, in a thread without CAP_LEASE: what a server has that is not its packages' owner.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>

namespace sconce::testing {

class WithoutLeases {
 public:
  // Gives the file, or what is below the folder, away.
  explicit WithoutLeases(const std::filesystem::path& path) {
    good_ = give(path);
    if (std::filesystem::is_directory(path))
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) good_ = good_ && give(entry.path());
    good_ = good_ && ::syscall(SYS_capget, &header_, before_) == 0;
    __user_cap_data_struct now[2] = {before_[0], before_[1]};
    now[0].effective &= ~(1u << CAP_LEASE);
    good_ = good_ && ::syscall(SYS_capset, &header_, now) == 0;
  }
  ~WithoutLeases() {
    if (good_) ::syscall(SYS_capset, &header_, before_);
  }
  WithoutLeases(const WithoutLeases&) = delete;
  WithoutLeases& operator=(const WithoutLeases&) = delete;
  // False for who is not root: there is nobody to give files to.
  explicit operator bool() const noexcept { return good_; }

 private:
  static bool give(const std::filesystem::path& path) { return ::chown(path.c_str(), 65534, 65534) == 0; }
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
  bool good_ = false;
};

}  // namespace sconce::testing
