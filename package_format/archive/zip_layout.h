// The layout of a ZIP archive, for reader and writer. FORMAT.md lists the accepted and the written forms.
//
//   local header | data | data descriptor    one per member, in the order of writing
//   central directory header                 one per member
//   zip64 end record | zip64 locator         when a count, size or offset needs it; libtorch writes them always
//   end record
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sconce::zip_format {

// Reads or writes little endian at any alignment.
template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline constexpr uint32_t kLocalSignature = 0x04034b50;
inline constexpr uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr uint32_t kCentralSignature = 0x02014b50;
inline constexpr uint32_t kZip64EndSignature = 0x06064b50;
inline constexpr uint32_t kZip64LocatorSignature = 0x07064b50;
inline constexpr uint32_t kEndSignature = 0x06054b50;

// Sizes of the fixed parts.
inline constexpr size_t kLocalBytes = 30;
inline constexpr size_t kCentralBytes = 46;
inline constexpr size_t kEndBytes = 22;
inline constexpr size_t kZip64EndBytes = 56;
inline constexpr size_t kZip64LocatorBytes = 20;

// Offsets of fields from the start of each record.
namespace local {
inline constexpr size_t kFlags = 6, kMethod = 8, kCrc = 14, kStored = 18, kSize = 22, kNameLength = 26,
                        kExtraLength = 28;
}
namespace central {
inline constexpr size_t kFlags = 8, kMethod = 10, kCrc = 16, kStored = 20, kSize = 24, kNameLength = 28,
                        kExtraLength = 30, kCommentLength = 32, kDisk = 34, kLocalOffset = 42;
}
namespace end {
inline constexpr size_t kDisk = 4, kDirectoryDisk = 6, kDiskEntries = 8, kEntries = 10, kDirectoryBytes = 12,
                        kDirectoryOffset = 16, kCommentLength = 20;
}
namespace zip64_end {
inline constexpr size_t kRecordBytes = 4, kDisk = 16, kDirectoryDisk = 20, kDiskEntries = 24, kEntries = 32,
                        kDirectoryBytes = 40, kDirectoryOffset = 48;
}
namespace zip64_locator {
inline constexpr size_t kEndDisk = 4, kEndOffset = 8, kDisks = 16;
}

inline constexpr uint16_t kFlagEncrypted = 1 << 0;
inline constexpr uint16_t kFlagDescriptor = 1 << 3;  // CRC and sizes follow the data
inline constexpr uint16_t kFlagPatch = 1 << 5;
inline constexpr uint16_t kFlagStrongEncryption = 1 << 6;
inline constexpr uint16_t kFlagUtf8 = 1 << 11;
inline constexpr uint16_t kFlagMaskedHeaders = 1 << 13;

inline constexpr uint16_t kMethodStored = 0;
inline constexpr uint16_t kMethodDeflated = 8;

inline constexpr uint16_t kExtraZip64 = 0x0001;
inline constexpr uint16_t kExtraPadding = 0x4246;  // "FB": libtorch's, filled with 'Z'

inline constexpr uint16_t kSaturated16 = 0xffff;  // the real value is in a zip64 field
inline constexpr uint32_t kSaturated32 = 0xffffffff;

inline constexpr size_t kDataAlignment = 64;
inline constexpr size_t kMaxMembers = 65536;

}  // namespace sconce::zip_format
