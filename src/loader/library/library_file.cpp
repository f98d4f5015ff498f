#include "src/loader/library/library_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "sconce/mutex.h"

// Linux 6.3; older headers lack them.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace sconce::loader {
namespace {

constexpr size_t kMaxWrite = size_t{1} << 30;
constexpr size_t kMaxName = 200;  // memfd takes 249 bytes

int open_memory(const std::string& name) {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = memfd_create(name.c_str(), kFlags | MFD_EXEC);
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name.c_str(), kFlags);  // older kernel
  // vm.memfd_noexec=2 refuses executable ones. A non-executable one can also be mapped executable; only execve refuses
  // it.
  if (fd < 0 && errno == EACCES) fd = memfd_create(name.c_str(), kFlags | MFD_NOEXEC_SEAL);
  return fd;
}

// Unmaps all mappings of the file. Returns false if the system cannot list them, for lack of memory or descriptors.
bool unmap_all(int fd) noexcept {
  struct stat status {};
  std::FILE* const maps = fstat(fd, &status) == 0 ? std::fopen("/proc/self/maps", "re") : nullptr;
  if (maps == nullptr) return false;
  std::array<char, 1024> line;
  for (bool at_start = true; std::fgets(line.data(), line.size(), maps) != nullptr;) {
    uint64_t begin = 0, end = 0, inode = 0;
    unsigned major = 0, minor = 0;
    const bool read = at_start && std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64, &begin,
                                              &end, &major, &minor, &inode) == 5;
    if (read && inode == status.st_ino && makedev(major, minor) == status.st_dev)
      munmap(reinterpret_cast<void*>(begin), end - begin);  // NOLINT: an address, as the kernel has it
    at_start = std::strchr(line.data(), '\n') != nullptr;
  }
  const bool all = std::ferror(maps) == 0;
  std::fclose(maps);
  return all;
}

// Files that may still have mappings, for a later load to unmap. Their descriptors stay open, so that no other file
// gets the inode that /proc/self/maps shows.
class Leftovers {
 public:
  // Returns false if there are too many.
  bool keep(int fd) noexcept {
    const MutexLock lock(mutex_);
    return count_ < fds_.size() && (fds_[count_++] = fd, true);
  }
  void unmap() noexcept {
    const MutexLock lock(mutex_);
    for (; count_ > 0 && unmap_all(fds_[count_ - 1]); --count_) ::close(fds_[count_ - 1]);
  }

 private:
  Mutex mutex_;
  std::array<int, 16> fds_ SCONCE_GUARDED_BY(mutex_){};
  size_t count_ SCONCE_GUARDED_BY(mutex_) = 0;
};
constinit Leftovers leftovers;

}  // namespace

std::vector<LibraryFile::Place> LibraryFile::places() {
  std::vector<std::string> directories{"/dev/shm"};
  if (const char* chosen = std::getenv("TMPDIR"); chosen && *chosen) directories.emplace_back(chosen);
  directories.insert(directories.end(), {"/tmp", "/var/tmp"});
  std::vector<Place> result{{Kind::kMemory, ""}};
  for (const Kind kind : {Kind::kUnnamed, Kind::kNamed})
    for (const std::string& directory : directories) result.push_back({kind, directory});
  return result;
}

std::string to_string(const LibraryFile::Place& place) {
  switch (place.kind) {
    case LibraryFile::Kind::kMemory:
      return "memory";
    case LibraryFile::Kind::kUnnamed:
      return "an unnamed file in " + place.directory;
    case LibraryFile::Kind::kNamed:
      return "a temporary file in " + place.directory;
  }
  return "?";
}

// Delegates, so that the destructor closes the descriptor if this constructor throws.
LibraryFile::LibraryFile(const Place& place, std::string_view name, uint64_t size) : LibraryFile() {
  leftovers.unmap();
  place_ = place;
  std::string printable(name.substr(0, kMaxName));
  std::replace_if(
      printable.begin(), printable.end(), [](unsigned char c) { return c < ' ' || c == '/'; }, '_');
  switch (place.kind) {
    case Kind::kMemory:
      fd_ = open_memory(printable);
      break;
    case Kind::kUnnamed:
      fd_ = open(place.directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, S_IRWXU);
      break;
    case Kind::kNamed:
      path_ = place.directory + "/sconce-XXXXXX";
      fd_ = mkostemp(path_.data(), O_CLOEXEC);
      break;
  }
  if (fd_ < 0) {
    fail("creating it", errno);
    return;
  }
  if (place.kind != Kind::kNamed) path_ = "/proc/self/fd/" + std::to_string(fd_);
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0) fail("sizing it", errno);
}

LibraryFile::LibraryFile(LibraryFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      left_(std::exchange(other.left_, false)),
      place_(std::move(other.place_)),
      path_(std::move(other.path_)),
      error_(std::move(other.error_)) {}

LibraryFile& LibraryFile::operator=(LibraryFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  fd_ = std::exchange(other.fd_, -1);
  left_ = std::exchange(other.left_, false);
  place_ = std::move(other.place_);
  path_ = std::move(other.path_);
  error_ = std::move(other.error_);
  return *this;
}

void LibraryFile::fail(const char* action, int error) {
  error_ = to_string(place_) + ": " + std::strerror(error) + " " + action;
}

void LibraryFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty() && error_.empty()) {
    const ssize_t done = pwrite(fd_, bytes.data(), std::min(bytes.size(), kMaxWrite), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return fail("writing it", done < 0 ? errno : EIO);
    offset += static_cast<uint64_t>(done);
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
}

void LibraryFile::seal() noexcept {
  if (fd_ >= 0 && place_.kind == Kind::kMemory)
    fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

void LibraryFile::check_loadable() {
  if (!error_.empty()) return;
  const int again = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (again < 0) return fail(("opening " + path_).c_str(), errno);
  void* mapped = mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, again, 0);
  const int error = errno;
  ::close(again);
  if (mapped == MAP_FAILED) return fail("mapping it for execution", error);
  munmap(mapped, 1);
}

void LibraryFile::unmap_leftovers() noexcept { left_ = fd_ >= 0 && !unmap_all(fd_); }

void LibraryFile::abandon() noexcept { fd_ = -1; }

void LibraryFile::close() noexcept {
  if (fd_ < 0) return;
  if (!left_ || !leftovers.keep(fd_)) ::close(fd_);
  if (place_.kind == Kind::kNamed) unlink(path_.c_str());
  fd_ = -1;
}

}  // namespace sconce::loader
