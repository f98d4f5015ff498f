// Builds ZIP archives by hand, every field free to lie. Fields that are not set have the value that is right.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/files.h"

namespace sconce::testing {

struct RawMember {
  std::string name = {};
  std::string content = {};
  bool deflated = false;
  uint16_t flags = 0;
  uint16_t method_central = 0xffff, method_local = 0xffff;  // 0xffff: what `deflated` says
  std::optional<std::string> local_name = {};
  std::optional<uint32_t> crc_central = {}, crc_local = {};
  std::optional<uint32_t> size_central = {}, stored_central = {}, size_local = {}, stored_local = {};
  std::optional<uint32_t> local_offset = {};
  std::string local_extra = {}, central_extra = {};
  std::optional<std::string> descriptor = {};  // bytes behind the data
};

struct RawZip {
  std::vector<RawMember> members = {};
  std::optional<uint16_t> entries = {}, disk_entries = {}, disk = {};
  std::optional<uint32_t> directory_offset = {}, directory_bytes = {};
  std::string before_end = {};  // zip64 records
  std::string comment = {};
};

template <class T>
std::string le(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string u16(uint64_t value) { return le(static_cast<uint16_t>(value)); }
inline std::string u32(uint64_t value) { return le(static_cast<uint32_t>(value)); }
inline std::string u64(uint64_t value) { return le(value); }

inline uint32_t crc_of(const std::string& text) {
  return static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size())));
}

// Raw deflate, as method 8 stores it.
inline std::string deflate_raw(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string build(const RawZip& zip) {
  std::string file, directory;
  for (const RawMember& member : zip.members) {
    const std::string stored = member.deflated ? deflate_raw(member.content) : member.content;
    const uint16_t method = member.deflated ? 8 : 0;
    const uint32_t crc = crc_of(member.content);
    const bool later = (member.flags & 8) != 0;
    const std::string local_name = member.local_name.value_or(member.name);
    const uint32_t offset = static_cast<uint32_t>(file.size());
    file += u32(0x04034b50) + u16(20) + u16(member.flags) +
            u16(member.method_local == 0xffff ? method : member.method_local) + u32(0) +
            u32(member.crc_local.value_or(later ? 0 : crc)) +
            u32(member.stored_local.value_or(later ? 0 : static_cast<uint32_t>(stored.size()))) +
            u32(member.size_local.value_or(later ? 0 : static_cast<uint32_t>(member.content.size()))) +
            u16(local_name.size()) + u16(member.local_extra.size()) + local_name + member.local_extra + stored;
    if (later)
      file += member.descriptor.value_or(u32(0x08074b50) + u32(crc) + u32(stored.size()) + u32(member.content.size()));
    directory += u32(0x02014b50) + u16(0) + u16(20) + u16(member.flags) +
                 u16(member.method_central == 0xffff ? method : member.method_central) + u32(0) +
                 u32(member.crc_central.value_or(crc)) +
                 u32(member.stored_central.value_or(static_cast<uint32_t>(stored.size()))) +
                 u32(member.size_central.value_or(static_cast<uint32_t>(member.content.size()))) +
                 u16(member.name.size()) + u16(member.central_extra.size()) + u16(0) + u16(0) + u16(0) + u32(0) +
                 u32(member.local_offset.value_or(offset)) + member.name + member.central_extra;
  }
  const size_t start = file.size();
  const auto count = static_cast<uint16_t>(zip.members.size());
  file += directory + zip.before_end;
  file += u32(0x06054b50) + u16(zip.disk.value_or(0)) + u16(0) +
          u16(zip.disk_entries.value_or(zip.entries.value_or(count))) + u16(zip.entries.value_or(count)) +
          u32(zip.directory_bytes.value_or(static_cast<uint32_t>(directory.size()))) +
          u32(zip.directory_offset.value_or(static_cast<uint32_t>(start))) + u16(zip.comment.size()) + zip.comment;
  return file;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace sconce::testing
