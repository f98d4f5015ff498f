// The members of a package: a .pt2 archive, a directory with the archive's layout, or a bare model .so (one member).
// Archives and .so are files or bytes in memory.
//
// Stored members are views of the mapping or of those bytes. Deflated members are inflated once and kept. All bytes
// stay valid during the reader's lifetime. Bytes of files stay unchanged unless check_files() throws. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/files/mapped_file.h"
#include "sconce/mutex.h"
#include "sconce/package.h"

namespace sconce {

struct ArchiveMember {
  std::string path;       // as in the archive
  std::string_view name;  // without the archive's root folder: "data/aotinductor/model/x.wrapper.so"
  uint64_t size = 0;
  bool deflated = false;
  uint64_t offset = 0;  // of the stored bytes in their file

  ArchiveMember() = default;
  ArchiveMember(ArchiveMember&&) = default;
  ArchiveMember& operator=(ArchiveMember&&) = default;

 private:
  friend class ArchiveReader;
  size_t index = 0;
  std::span<const std::byte> stored;
  uint32_t crc = 0;
};

class ArchiveReader {
 public:
  enum class Kind : int8_t { kArchive, kDirectory, kSharedObject };

  // kIo, kCorruptPackage.
  static std::unique_ptr<ArchiveReader> open(const std::filesystem::path& path);
  // Opens bytes in memory, which must not change and which `owner` (may be null) keeps alive. The name replaces a
  // path.
  static std::unique_ptr<ArchiveReader> open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                             const std::filesystem::path& name);
  // Opens the files of a directory in memory, by their relative paths.
  static std::unique_ptr<ArchiveReader> open(std::span<const MemoryFile> files, std::shared_ptr<const void> owner,
                                             const std::filesystem::path& name);
  ~ArchiveReader();

  Kind kind() const noexcept { return kind_; }
  const std::filesystem::path& path() const noexcept { return path_; }
  // The folder that contains all of PyTorch's members since torch 2.8, with its slash: "model/". Empty if there is
  // none.
  std::string_view root() const noexcept { return root_; }
  std::span<const ArchiveMember> members() const noexcept { return members_; }  // in the archive's order
  // By name without the root. Null if absent.
  const ArchiveMember* find(std::string_view name) const noexcept;
  // All members whose name starts with the prefix, sorted by name.
  std::vector<const ArchiveMember*> list(std::string_view prefix) const;

  // The content. The first call compares its CRC (a directory has none). kCorruptPackage names the member.
  std::span<const std::byte> read(const ArchiveMember& member) const;
  std::string_view read_text(const ArchiveMember& member) const;
  // The content of a member whose CRC need not be compared (weights); deflated members are always checked.
  std::span<const std::byte> view(const ArchiveMember& member) const;

  // Whether the member's content matches its CRC now. Reads all of it at every call.
  bool is_sound(const ArchiveMember& member) const;
  // Whether these bytes lie in the mapping of a file, or in the opened memory.
  bool maps(std::span<const std::byte> bytes) const noexcept;
  // Whether these bytes could be read from a file again if their pages were freed.
  bool rereadable(std::span<const std::byte> bytes) const noexcept;
  // Frees the pages of bytes in a file's mapping; the next read loads them again. Other memory is left alone.
  void give_up_pages(std::span<const std::byte> bytes) const noexcept;

  // The descriptors that another process needs to open the same bytes: one file, or those of a directory by their
  // relative paths. Bytes in memory are copied if there are at most `most_copied`, else kUnsupported. kIo,
  // kOutOfMemory.
  std::vector<SharedFile> share(uint64_t most_copied) const;

  // Whether a file may have been written in place, so that check_files() must look. Costs one load.
  bool concerned() const noexcept { return concern_.load(std::memory_order_acquire) != 0; }
  // kUnavailable if bytes read so far may differ from those at the time of opening.
  void check_files() const;
  // The known reason for that, without a new check; empty if none is known.
  std::string why_lost() const;

  // Compares the CRC of every member, and runs libzip's checks. kCorruptPackage. progress: called with the bytes done
  // and the total of all members; empty: none.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  void verify(const Progress& progress = {}) const;

 private:
  ArchiveReader() = default;
  void open_image(std::span<const std::byte> bytes);
  void open_archive();
  void open_directory();
  void add(std::string path, std::span<const std::byte> stored, uint64_t size, uint64_t offset, uint32_t crc,
           bool deflated);
  void index_members();
  void check_not_torn() const;
  std::span<const std::byte> inflate(const ArchiveMember& member) const;
  void check_crc(const ArchiveMember& member, const Progress& progress, uint64_t before, uint64_t total) const;

  std::filesystem::path path_;
  Kind kind_ = Kind::kArchive;
  std::string root_;
  const MappedFile* file_of(std::span<const std::byte> bytes) const noexcept;
  mutable std::atomic<uint32_t> concern_{0};
  std::vector<MappedFile> files_;      // one, one per member of a directory, or none
  std::span<const std::byte> image_;   // the whole archive or .so; empty for a directory
  std::shared_ptr<const void> owner_;  // of the opened memory
  std::vector<ArchiveMember> members_;
  std::vector<uint32_t> by_name_;                         // sorted
  mutable std::unique_ptr<std::atomic<bool>[]> checked_;  // per member: its CRC matched
  mutable Mutex inflate_mutex_;
  // Per member; empty: none is inflated.
  mutable std::vector<std::unique_ptr<std::byte[]>> inflated_ SCONCE_GUARDED_BY(inflate_mutex_);
  mutable uint64_t inflated_bytes_ SCONCE_GUARDED_BY(inflate_mutex_) = 0;
};

}  // namespace sconce
