// Writes a .pt2 archive as libtorch does: stored members whose data begin at multiples of 64 bytes, a zip64 end record.
// The same members give the same bytes. Not thread-safe.
//
// The archive appears under its name when finish() has written it all; before that, and after an error, what was there
// is untouched.
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
  bool descriptors = true;  // CRC and sizes behind the data, as libtorch; false: in the local header
  bool zip64 = false;       // 64-bit sizes and offsets for every member, not just where they are needed
};

class ArchiveWriter {
 public:
  // kIo names the path.
  explicit ArchiveWriter(std::filesystem::path path, ArchiveWriterOptions options = {});
  ArchiveWriter(const ArchiveWriter&) = delete;
  ~ArchiveWriter();

  // kInvalidArgument for a name that readers refuse or that is there already; kIo.
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
