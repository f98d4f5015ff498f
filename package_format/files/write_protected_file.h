// WriteProtectedFile: the bytes of a file at an address, protected against writers of the file.
//
// It tries three ways, in this order. (1) A read lease: before a writer may open the file, the bytes are copied to the
// same addresses. (2) A copy that shares the disk's blocks (reflink) and that no other process can open. (3) A check
// of the file's stamp after each use of its bytes; if the stamp differs, the file is lost, and check() reports that
// from then on. A file of up to 64 KiB, or one that is being written, is copied at once. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "package_format/files/content_stamp.h"
#include "package_format/files/fault_guard.h"
#include "package_format/files/file_lease.h"
#include "package_format/files/shared_file.h"
#include "sconce/mutex.h"

namespace sconce {

class WriteProtectedFile final : public LeaseHolder, public std::enable_shared_from_this<WriteProtectedFile> {
 public:
  enum class Means : int8_t { kLease, kClone, kStamp, kCopy, kCopyOfWritten };

  // `concern` counts the package's files that must be checked or are lost. While it is 0, check() of each does
  // nothing. It outlives this object. kIo, kUnavailable and kOutOfMemory name path and reason.
  static std::shared_ptr<WriteProtectedFile> open(const std::string& path, std::atomic<uint32_t>& concern);
  ~WriteProtectedFile() override;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  Means means() const noexcept { return means_; }
  // kUnavailable if bytes read so far may differ from those at the time of open().
  void check();
  // The known reason for that, without a new check; empty if none is known.
  std::string why_lost() const;
  // The same bytes for another process: the file itself while it is mapped, else a copy. `path` is its name there.
  // Call check() afterwards to find out whether the file changed. kIo, kOutOfMemory.
  SharedFile share(const std::filesystem::path& path);
  // Frees pages; the next read loads them again.
  void give_up_pages(std::span<const std::byte> bytes) noexcept;
  // Unmaps it. Call this before the last reference is dropped.
  void close() noexcept;

 private:
  enum State : uint32_t {  // state of the bytes
    kMapped = 0,
    kPrivate = 1,
    kUnreadable = kFirstFault,  // SIGBUS
    kChanged,
    kNoMemory,
    kUncopied,
  };
  WriteProtectedFile(const std::string& path, std::atomic<uint32_t>& concern) : path_(path), concern_(concern) {}

  // Parts of open(): they use the file before any other thread can, without its locks.
  void open_descriptor() SCONCE_NO_THREAD_SAFETY_ANALYSIS;
  void keep() SCONCE_NO_THREAD_SAFETY_ANALYSIS;
  void map() SCONCE_NO_THREAD_SAFETY_ANALYSIS;
  bool clone() SCONCE_NO_THREAD_SAFETY_ANALYSIS;
  void copy_now(Means means) SCONCE_NO_THREAD_SAFETY_ANALYSIS;
  bool look() noexcept;  // false: it is lost
  bool asked() noexcept override;
  void give_way() noexcept override;
  // Why not all bytes could be copied; kPrivate if all were, kMapped if a copy is no longer needed.
  State copy_to_same_place() noexcept SCONCE_REQUIRES(copy_mutex_);
  State copy_piece(std::byte* to, size_t offset, size_t bytes) noexcept SCONCE_REQUIRES(copy_mutex_);
  void lose(State reason) noexcept SCONCE_REQUIRES(copy_mutex_);
  // It is closed under both mutexes, so holding this one is enough to use it.
  int descriptor() noexcept SCONCE_REQUIRES(copy_mutex_);
  bool unchanged() noexcept;
  void tell(uint64_t copied) noexcept;
  const char* reason() const noexcept;  // null: it is not lost

  const std::string path_;
  std::atomic<uint32_t>& concern_;
  std::byte* data_ = nullptr;
  size_t size_ = 0, mapped_ = 0;  // in bytes, and in whole pages
  Means means_ = Means::kStamp;
  std::atomic<uint32_t> state_{kMapped};
  std::atomic<bool> closing_{false}, told_{false};
  GuardedRange* range_ SCONCE_GUARDED_BY(copy_mutex_) = nullptr;

  Mutex copy_mutex_;                            // guards the memory at the addresses
  Mutex look_mutex_;                            // locked second, for moments
  int fd_ SCONCE_GUARDED_BY(look_mutex_) = -1;  // -1 once the file need not be queried again
  ContentStamp stamp_ SCONCE_GUARDED_BY(look_mutex_);
  bool asked_ SCONCE_GUARDED_BY(look_mutex_) = false, leased_ SCONCE_GUARDED_BY(look_mutex_) = false;
};

}  // namespace sconce
