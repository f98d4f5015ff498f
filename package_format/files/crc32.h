// CRC-32 of ZIP (reflected 0x04c11db7), by carry-less multiplication of 16 or 64 bytes if the CPU has it. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sconce {

// Continues `crc`; 0 starts a new one.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t crc = 0) noexcept;

}  // namespace sconce
