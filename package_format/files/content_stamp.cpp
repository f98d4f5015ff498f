#include "package_format/files/content_stamp.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <ctime>
#include <functional>
#include <string_view>

namespace sconce {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// The file clock ticks at least every 10 ms. If it was set back, stop waiting.
constexpr int kMaxLooks = 12;
constexpr timespec kBetweenLooks{0, 2'000'000};

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

size_t name_of(int fd) noexcept {
  char link[32] = "/proc/self/fd/";
  *std::to_chars(link + 14, link + sizeof link - 1, fd).ptr = '\0';
  char name[PATH_MAX];
  const ssize_t length = ::readlink(link, name, sizeof name);
  return length > 0 ? std::hash<std::string_view>()({name, static_cast<size_t>(length)}) : 0;
}

}  // namespace

ContentStamp ContentStamp::of(int fd) noexcept {
  ContentStamp stamp;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return stamp;
  stamp.known_ = true;
  stamp.device_ = status.st_dev;
  stamp.inode_ = status.st_ino;
  stamp.size_ = static_cast<uint64_t>(status.st_size);
  stamp.links_ = status.st_nlink;
  stamp.mode_ = status.st_mode;
  stamp.user_ = status.st_uid;
  stamp.group_ = status.st_gid;
  stamp.modified_ns_ = nanoseconds(status.st_mtim);
  stamp.changed_ns_ = nanoseconds(status.st_ctim);
  return stamp;
}

ContentStamp ContentStamp::settled(int fd) noexcept {
  ContentStamp stamp = of(fd);
  for (int i = 0; i < kMaxLooks && stamp.known_; ++i) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (nanoseconds(now) > stamp.changed_ns_ && nanoseconds(now) > stamp.modified_ns_) break;
    ::nanosleep(&kBetweenLooks, nullptr);
    stamp = of(fd);
  }
  if (stamp.known_) stamp.name_ = name_of(fd);
  return stamp;
}

ContentStamp ContentStamp::now(int fd) noexcept {
  ContentStamp stamp = of(fd);
  if (stamp.known_) stamp.name_ = name_of(fd);
  return stamp;
}

bool ContentStamp::still_of(int fd) noexcept {
  ContentStamp now = of(fd);
  if (!known_ || !now.known_ || device_ != now.device_ || inode_ != now.inode_ || size_ != now.size_ ||
      modified_ns_ != now.modified_ns_)
    return false;
  if (changed_ns_ == now.changed_ns_) return true;
  now.name_ = name_of(fd);
  if (links_ == now.links_ && mode_ == now.mode_ && user_ == now.user_ && group_ == now.group_ && name_ == now.name_)
    return false;
  *this = now;
  return true;
}

}  // namespace sconce
