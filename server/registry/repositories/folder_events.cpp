#include "server/registry/repositories/folder_events.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <vector>

#include "package_format/files/directory.h"
#include "package_format/files/local_file_system.h"
#include "sconce/check.h"
#include "server/support/config.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |
                              IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF;
// Links are followed as far as PackageFinder follows them: to a model's folder, a version, a file.
constexpr int kLinkedLevels = 3;

std::string why_not(const fs::path& path, const std::string& reason) { return path.native() + ": " + reason; }

// Returns the first reason why changes cannot be reported.
std::string follow_below(int events, const fs::path& path, int level) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  // Entries that disappear meanwhile do not matter, except the folder itself, because its return would not be reported.
  if (fd < 0) return errno == ENOENT && level > 0 ? std::string() : why_not(path, std::strerror(errno));
  const bool local = is_local(fd);
  ::close(fd);
  if (!local) return why_not(path, "other machines may write to its file system");
  if (::inotify_add_watch(events, path.c_str(), kChanges) < 0 && errno != ENOENT)
    return why_not(path, errno == ENOSPC ? "fs.inotify.max_user_watches is too small" : std::strerror(errno));
  std::error_code ec;
  const bool folder = fs::is_directory(path, ec);
  std::vector<std::string> names;
  if (folder) names = names_in(path, ec);
  if (ec && ec != std::errc::no_such_file_or_directory) return why_not(path, ec.message());
  for (const std::string& name : names) {
    // No model has such a name. For example lost+found, which every ext4 volume has and only root may read.
    if (level == 0 && !is_model_name(name)) continue;
    const fs::path child = path / name;
    const fs::file_type type = fs::symlink_status(child, ec).type();
    if (ec && ec != std::errc::no_such_file_or_directory) return why_not(child, ec.message());
    // A folder reports changes of its files, but not of the targets of its links.
    if (type != fs::file_type::directory && (type != fs::file_type::symlink || level >= kLinkedLevels)) continue;
    if (std::string problem = follow_below(events, child, level + 1); !problem.empty()) return problem;
  }
  return {};
}

}  // namespace

FolderEvents::FolderEvents(std::function<void()> changed) : changed_(std::move(changed)) {
  events_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  SCONCE_CHECK(events_ >= 0, kIo, "inotify: ", std::strerror(errno));
  stop_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_ < 0) {
    ::close(events_);
    SCONCE_FAIL(kIo, "eventfd: ", std::strerror(errno));
  }
  thread_ = std::thread([this] { run(); });
}

FolderEvents::~FolderEvents() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  const uint64_t one = 1;
  while (::write(stop_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
  ::close(stop_);
  ::close(events_);
}

std::string FolderEvents::follow(std::span<const fs::path> folders) {
  std::string problem;
  for (const fs::path& folder : folders)
    if (problem.empty()) problem = follow_below(events_, folder, 0);
  {
    const MutexLock lock(mutex_);
    armed_ = true;
  }
  wake_.notify_all();
  return problem;
}

void FolderEvents::run() noexcept {
  pthread_setname_np(pthread_self(), "sconce-folders");
  alignas(inotify_event) std::array<char, 16 * 1024> bytes;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!armed_ && !stopping_) wake_.wait(mutex_);
      if (stopping_) return;
      armed_ = false;
    }
    std::array<pollfd, 2> waits{pollfd{events_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
    while (::poll(waits.data(), waits.size(), -1) < 0 && errno == EINTR) {
    }
    if (waits[1].revents != 0) return;
    // The kind of change does not matter, because the owner polls everything.
    while (::read(events_, bytes.data(), bytes.size()) > 0) {
    }
    changed_();
  }
}

}  // namespace sconce::server::registry
