#include "server/rollout/work/weights_dir.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

// O_NONBLOCK: opening a FIFO must not block.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

int open_below(int directory, const std::string& name) {
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, directory, name.c_str(), &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return open_stepwise(directory, name);
}

}  // namespace

int open_stepwise(int directory, const std::string& name) {
  std::string_view rest = name;
  if (rest.starts_with('/')) {
    errno = EXDEV;
    return -1;
  }
  Descriptor at(::dup(directory));
  while (at.get() >= 0) {
    const size_t slash = rest.find('/');
    const std::string step(rest.substr(0, slash));
    if (step == "..") {
      errno = EXDEV;
      return -1;
    }
    const bool last = slash == std::string_view::npos;
    const int next = ::openat(at.get(), step.empty() ? "." : step.c_str(),
                              O_NOFOLLOW | (last ? kFlags : O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (last || next < 0) return next;
    at = Descriptor(next);
    rest.remove_prefix(slash + 1);
  }
  return -1;
}

WeightsFile::WeightsFile(const std::string& directory, const std::string& name) {
  SCONCE_CHECK(!directory.empty(), kForbidden, "this server reads no weights from files: weights_dir is not set");
  SCONCE_CHECK(!name.empty() && name.find('\0') == std::string::npos, kInvalidArgument, "not a file's name: '",
               excerpt(name), "'");
  const Descriptor base(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  SCONCE_CHECK(base.get() >= 0, kIo, "weights_dir cannot be opened: ", std::strerror(errno));
  fd_ = Descriptor(open_below(base.get(), name));
  if (fd_.get() < 0) {
    const int problem = errno;
    const std::string shown = excerpt(name);
    SCONCE_CHECK(problem != EXDEV && problem != ELOOP, kForbidden, "the file is not below weights_dir: '", shown, "'");
    SCONCE_CHECK(problem != ENOENT && problem != ENOTDIR, kNotFound, "no such file below weights_dir: '", shown, "'");
    SCONCE_CHECK(problem != EACCES && problem != EPERM, kForbidden, "the server may not read the file: '", shown, "'");
    SCONCE_CHECK(problem != ENAMETOOLONG && problem != ENXIO && problem != ENODEV, kInvalidArgument,
                 "the file cannot be opened: '", shown, "': ", std::strerror(problem));
    SCONCE_FAIL(kIo, "the file cannot be opened: '", shown, "': ", std::strerror(problem));
  }
  struct stat status {};
  SCONCE_CHECK(::fstat(fd_.get(), &status) == 0, kIo, "the file cannot be read: '", excerpt(name),
               "': ", std::strerror(errno));
  SCONCE_CHECK(S_ISREG(status.st_mode), kInvalidArgument, "not a regular file: '", excerpt(name), "'");
  path_ = "/proc/self/fd/" + std::to_string(fd_.get());
}

}  // namespace sconce::server::rollout
