// Inflates members and checks an archive a second time, both by libzip, which is opened only for these tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sconce {

// Inflates the member with this path into `out`, which has exactly its size, and compares the CRC. kCorruptPackage
// names the member.
void inflate_member(std::span<const std::byte> archive, const std::string& path, std::span<std::byte> out);

// Runs libzip's consistency checks. kCorruptPackage has its reason.
void check_with_libzip(std::span<const std::byte> archive);

}  // namespace sconce
