// Writes a .pt2 archive as libtorch does: stored members whose data start at multiples of 64 bytes, a zip64 end
// record. Equal members give equal bytes. Not thread-safe.
//
// finish() gives the archive its name once it is complete. Until then, and after an error, an earlier file stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce {

struct ArchiveWriterOptions {
  bool descriptors = true;  // puts CRC and sizes after the data, as libtorch does; false: into the local header
  bool zip64 = false;       // uses 64-bit sizes and offsets for every member, needed or not
};

class ArchiveWriter {
 public:
  // kIo names the path.
  explicit ArchiveWriter(std::filesystem::path path, ArchiveWriterOptions options = {});
  ArchiveWriter(const ArchiveWriter&) = delete;
  ~ArchiveWriter();

  // kInvalidArgument for a duplicate name or one that readers refuse; kIo.
  void add(std::string_view name, std::span<const std::byte> bytes);
  void add(std::string_view name, std::string_view text) { add(name, std::as_bytes(std::span(text))); }
  void add_file(std::string_view name, const std::filesystem::path& file);
  void finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset, size;
    uint32_t crc;
  };
  void write(std::span<const std::byte> bytes);
  void write_directory();

  std::filesystem::path path_, temporary_;
  ArchiveWriterOptions options_;
  int fd_ = -1;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace sconce
