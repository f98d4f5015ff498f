// Deflated members and the second opinion on an archive, both by libzip, which is opened only for these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sconce {

// Inflates the member at this place of the archive's directory into `out`, which has exactly its size, and checks the
// CRC. kCorruptPackage names the member.
void inflate_member(std::span<const std::byte> archive, const std::string& path, std::span<std::byte> out);

// libzip's own consistency checks. kCorruptPackage carries its reason.
void check_with_libzip(std::span<const std::byte> archive);

}  // namespace sconce
