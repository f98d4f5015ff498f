// CRC-32 of ZIP (reflected 0x04c11db7), by carry-less multiplication where the CPU has it, 16 or 64 bytes wide.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sconce {

// Continues `crc`, which is 0 for the first bytes.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc = 0) noexcept;

}  // namespace sconce
