#include "package_format/files/write_protected_file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "package_format/files/host_memory.h"
#include "sconce/check.h"
#include "sconce/mapped_files.h"

namespace sconce {
namespace {

// Up to this size, copying costs less than a mapping with its descriptor and lease.
constexpr size_t kSmall = 64 << 10;
// Bytes that are copied and put in place at once: the copy needs that much additional memory while the file's pages
// are still mapped.
constexpr size_t kPiece = 64 << 20;
constexpr uint64_t kSpare = 32 << 20;  // memory left free for others
// How many times to wait for a writer that may soon finish.
constexpr int kMaxWaits = 20;
constexpr timespec kWait{0, 50'000'000};

std::atomic<void (*)(const MappedFileEvent&) noexcept> listener{nullptr};

size_t whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Returns 0 when all bytes are read, the system's error, or -1 if the file is shorter.
int read_all(int fd, size_t offset, std::span<std::byte> out) noexcept {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), std::min(out.size(), kPiece), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : -1;
    offset += static_cast<size_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
  return 0;
}

std::byte* take_pages(size_t bytes) noexcept {
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

bool has_room(uint64_t bytes) noexcept { return host_memory().left_without_swap >= bytes + kSpare; }

}  // namespace

void guard_mapped_files() noexcept { guard_faults(); }

void on_mapped_file_event(void (*tell)(const MappedFileEvent&) noexcept) noexcept { listener = tell; }

std::shared_ptr<WriteProtectedFile> WriteProtectedFile::open(const std::string& path, std::atomic<uint32_t>& concern) {
  struct Opening {
    std::shared_ptr<WriteProtectedFile> file;
    ~Opening() {
      if (file) file->close();  // the lease thread may still refer to it
    }
  } opening{std::shared_ptr<WriteProtectedFile>(new WriteProtectedFile(path, concern))};
  opening.file->open_descriptor();
  opening.file->keep();
  return std::move(opening.file);
}

WriteProtectedFile::~WriteProtectedFile() { close(); }

void WriteProtectedFile::close() noexcept {
  if (closing_.exchange(true)) return;  // stops a copy in progress
  if (means_ == Means::kLease) forget_lease(*this);
  const MutexLock copying(copy_mutex_);
  forget_range(range_);
  if (data_) ::munmap(data_, mapped_);
  const MutexLock looking(look_mutex_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void WriteProtectedFile::open_descriptor() {
  // Does not block: a FIFO in place of a file must not delay us before fstat.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  SCONCE_CHECK(fd_ >= 0, kIo, "cannot open file: ", path_, ": ", std::strerror(errno));
  struct stat status {};
  SCONCE_CHECK(::fstat(fd_, &status) == 0, kIo, "cannot read file: ", path_, ": ", std::strerror(errno));
  SCONCE_CHECK(S_ISREG(status.st_mode), kIo, "not a regular file: ", path_);
  size_ = static_cast<size_t>(status.st_size);
}

void WriteProtectedFile::keep() {
  if (size_ <= kSmall) return copy_now(Means::kCopy);
  means_ = Means::kLease;
  int error = take_lease(fd_, shared_from_this());
  for (int i = 0; i < kMaxWaits && error == EAGAIN; ++i) {
    ::nanosleep(&kWait, nullptr);
    error = take_lease(fd_, shared_from_this());
  }
  if (error == 0) {
    stamp_ = ContentStamp::now(fd_);
    SCONCE_CHECK(stamp_.is_known(), kIo, "cannot read file: ", path_, ": ", std::strerror(errno));
    map();
    {
      const MutexLock looking(look_mutex_);
      leased_ = true;
    }
    return look_at_leases();  // a writer may have asked before there was anything to copy
  }
  if (error == EAGAIN) return copy_now(Means::kCopyOfWritten);
  means_ = Means::kClone;
  if (clone()) return map();
  means_ = Means::kStamp;
  stamp_ = ContentStamp::settled(fd_);
  SCONCE_CHECK(stamp_.is_known(), kIo, "cannot read file: ", path_, ": ", std::strerror(errno));
  concern_.fetch_add(1);
  map();
}

void WriteProtectedFile::map() {
  size_ = means_ == Means::kClone ? size_ : static_cast<size_t>(stamp_.size());
  if (size_ == 0) return;
  const size_t pages = whole_pages(size_);
  void* const data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  SCONCE_CHECK(data != MAP_FAILED, kIo, "cannot map file: ", path_, ": ", std::strerror(errno));
  {
    const MutexLock copying(copy_mutex_);
    data_ = static_cast<std::byte*>(data);
    mapped_ = pages;
    range_ = guard_range(data_, mapped_, {&state_, &concern_, kUnreadable});
  }
  SCONCE_CHECK(range_, kOutOfMemory, "no memory to watch the mapping of file: ", path_);
}

// Copies the file into one without a name, which no other process can open, on a file system that can share blocks.
bool WriteProtectedFile::clone() {
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, S_IRUSR);
  if (fd < 0) return false;
  struct stat status {};
  if (::ioctl(fd, FICLONE, fd_) != 0 || ::fstat(fd, &status) != 0) {
    ::close(fd);
    return false;
  }
  ::close(fd_);
  fd_ = fd;
  size_ = static_cast<size_t>(status.st_size);
  return true;
}

void WriteProtectedFile::copy_now(Means means) {
  means_ = means;
  ContentStamp stamp = ContentStamp::settled(fd_);
  SCONCE_CHECK(stamp.is_known(), kIo, "cannot read file: ", path_, ": ", std::strerror(errno));
  size_ = static_cast<size_t>(stamp.size());
  const bool written = means == Means::kCopyOfWritten;
  SCONCE_CHECK(!written || has_room(size_), kOutOfMemory,
               "file is open for writing, and there is no memory for a copy: ", path_, ": ", size_, " bytes");
  if (size_ > 0) {
    mapped_ = whole_pages(size_);
    data_ = take_pages(mapped_);
    SCONCE_CHECK(data_, kOutOfMemory, "no memory to read file: ", path_, ": ", size_, " bytes");
    const int error = read_all(fd_, 0, {data_, size_});
    SCONCE_CHECK(error <= 0, kIo, "cannot read file: ", path_, ": ", std::strerror(error));
    SCONCE_CHECK(error == 0 && stamp.still_of(fd_), kUnavailable, "file is being written: ", path_);
    ::mprotect(data_, mapped_, PROT_READ);
  }
  state_ = kPrivate;
  ::close(std::exchange(fd_, -1));
}

int WriteProtectedFile::descriptor() noexcept {
  const MutexLock looking(look_mutex_);
  return fd_;
}

bool WriteProtectedFile::unchanged() noexcept {
  const MutexLock looking(look_mutex_);
  return stamp_.still_of(fd_);
}

bool WriteProtectedFile::look() noexcept {
  if (const uint32_t state = state_.load(std::memory_order_acquire); state != kMapped) return state < kFirstFault;
  if (means_ == Means::kClone) return true;
  {
    const MutexLock looking(look_mutex_);
    if (fd_ < 0) return state_.load() < kFirstFault;  // copied meanwhile
    if (leased_ && ::fcntl(fd_, F_GETLEASE) == F_RDLCK) return true;
    if (stamp_.still_of(fd_)) return true;
  }
  // Mark it as changed, unless it was already copied.
  const MutexLock copying(copy_mutex_);
  if (state_.load() == kMapped) lose(kChanged);
  return state_.load() < kFirstFault;
}

const char* WriteProtectedFile::reason() const noexcept {
  switch (state_.load(std::memory_order_acquire)) {
    case kUnreadable:
      return "a page of it cannot be read any more: it was truncated in place, or its disk fails";
    case kChanged:
      return "it was written to in place";
    case kNoMemory:
      return "it is written to in place, and there was no memory to keep what it was";
    case kUncopied:
      return "it is written to in place, and what it was could not be read";
    default:
      return nullptr;
  }
}

std::string WriteProtectedFile::why_lost() const {
  const char* const why = reason();
  return why ? "the file of the package is not what was loaded any more: " + path_ + ": " + why +
                   "; it has to be loaded again, and files to be replaced by renaming new ones over them"
             : std::string();
}

void WriteProtectedFile::check() {
  if (look()) return;
  tell(0);
  SCONCE_FAIL(kUnavailable, why_lost());
}

void WriteProtectedFile::tell(uint64_t copied) noexcept {
  const auto to = listener.load();
  if (to && !told_.exchange(true)) to({path_.c_str(), copied, reason()});
}

void WriteProtectedFile::lose(State reason) noexcept {
  note_fault({&state_, &concern_, reason});
  // From now on readers get zeros or a fault instead of new content, and the error when they finish.
  show_zeros(data_, mapped_);
  tell(0);
}

SharedFile WriteProtectedFile::share(const std::filesystem::path& path) {
  {
    const MutexLock copying(copy_mutex_);
    const MutexLock looking(look_mutex_);
    if (state_.load() == kMapped && fd_ >= 0) return SharedFile::of_descriptor(fd_, size_, path);
  }
  return SharedFile::copy_of(bytes(), path);
}

void WriteProtectedFile::give_up_pages(std::span<const std::byte> bytes) noexcept {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (!copy_mutex_.try_lock()) return;
  const MutexLock copying(copy_mutex_, std::adopt_lock);
  if (state_.load() != kMapped) return;  // pages that are not the file's could not be read again
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (first + page - 1) / page * page, end = (first + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bool WriteProtectedFile::asked() noexcept {
  const MutexLock looking(look_mutex_);
  if (closing_ || !leased_ || fd_ < 0 || ::fcntl(fd_, F_GETLEASE) == F_RDLCK) return false;
  // The kernel admits a writer after some time even if the lease is held: until there is a copy, runs must check.
  if (!std::exchange(asked_, true)) concern_.fetch_add(1);
  return true;
}

void WriteProtectedFile::give_way() noexcept {
  const MutexLock copying(copy_mutex_);
  const uint64_t bytes = size_;
  if (state_.load() == kMapped) {
    const State result = copy_to_same_place();
    if (result == kMapped) return;
    uint32_t mapped = kMapped;
    if (result != kPrivate) {
      lose(result);
    } else if (state_.compare_exchange_strong(mapped, kPrivate)) {
      concern_.fetch_sub(1);
      tell(bytes);
    }
  }
  const MutexLock looking(look_mutex_);
  leased_ = false;
  ::fcntl(fd_, F_SETLEASE, F_UNLCK);
  ::close(std::exchange(fd_, -1));
}

WriteProtectedFile::State WriteProtectedFile::copy_to_same_place() noexcept {
  for (size_t at = 0; at < size_; at += kPiece) {
    const size_t bytes = std::min(kPiece, size_ - at);
    if (closing_) return kMapped;
    if (!has_room(bytes)) return kNoMemory;
    if (const State result = copy_piece(data_ + at, at, bytes); result != kPrivate) return result;
  }
  return kPrivate;
}

WriteProtectedFile::State WriteProtectedFile::copy_piece(std::byte* to, size_t offset, size_t bytes) noexcept {
  const size_t pages = whole_pages(bytes);
  std::byte* const copy = take_pages(pages);
  if (!copy) return kNoMemory;
  State result = kPrivate;
  if (const int error = read_all(descriptor(), offset, {copy, bytes}); error != 0)
    result = error > 0 ? kUncopied : kChanged;
  else if (!unchanged())  // a writer that stopped waiting
    result = kChanged;
  // Replaces the pages in one step, so that readers see equal bytes before and after.
  if (result == kPrivate && (::mprotect(copy, pages, PROT_READ) != 0 ||
                             ::mremap(copy, pages, pages, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED))
    result = kNoMemory;
  if (result != kPrivate) ::munmap(copy, pages);
  return result;
}

}  // namespace sconce
