// Reads the directory of a ZIP archive and checks it against every local header.
//
// Accepts the output of package writers (FORMAT.md). Everything else is kCorruptPackage, which names member and
// reason: names that leave the archive, duplicates, overlaps, headers that disagree on sizes, encryption, several
// disks, methods other than stored and deflated. Does not read the members' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce {

struct ZipMember {
  std::string name;          // as in the archive; folders (names that end in '/') are left out
  uint64_t offset = 0;       // of the data, from the start of the file
  uint64_t stored_size = 0;  // bytes in the file
  uint64_t size = 0;         // bytes of the content
  uint32_t crc = 0;
  bool deflated = false;
};

// Why a member's name is invalid; empty if it is valid. A slash at the end means a folder.
std::string zip_name_fault(std::string_view name);

// In the directory's order.
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file);

}  // namespace sconce
