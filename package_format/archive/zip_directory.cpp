#include "package_format/archive/zip_directory.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "package_format/archive/zip_layout.h"
#include "sconce/check.h"

namespace sconce {
namespace {

using zip_format::load;

struct Directory {
  uint64_t offset, bytes, entries;
  uint64_t end;  // of everything before the end records
};

// State of a member during the check.
struct Entry {
  ZipMember member;
  uint16_t flags;
  uint64_t local_offset;
  uint64_t region_end;  // after data and descriptor
  bool folder;
};

#define SCONCE_SOUND(condition, ...) SCONCE_CHECK(condition, kCorruptPackage, __VA_ARGS__)

// Whether [offset, offset + size) lies below `limit`, without a sum that could overflow.
bool fits(uint64_t offset, uint64_t size, uint64_t limit) noexcept { return offset <= limit && size <= limit - offset; }

// Makes a name printable for messages; it may hold any bytes.
std::string printable(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return name;
}

Directory find_directory(std::span<const std::byte> file) {
  SCONCE_SOUND(file.size() >= zip_format::kEndBytes, "archive is truncated or not a ZIP archive: it has ", file.size(),
               " bytes");
  const std::byte* base = file.data();
  // Only a comment may follow the end record, and the comment must end with the file.
  const size_t last = file.size() - zip_format::kEndBytes;
  const size_t first = last - std::min<size_t>(last, UINT16_MAX);
  size_t at = last;
  for (;; --at) {
    if (load<uint32_t>(base + at) == zip_format::kEndSignature &&
        load<uint16_t>(base + at + zip_format::end::kCommentLength) == last - at)
      break;
    SCONCE_SOUND(at != first, "archive is truncated or not a ZIP archive: no end of central directory record");
  }
  const std::byte* end = base + at;
  Directory directory{.offset = load<uint32_t>(end + zip_format::end::kDirectoryOffset),
                      .bytes = load<uint32_t>(end + zip_format::end::kDirectoryBytes),
                      .entries = load<uint16_t>(end + zip_format::end::kEntries),
                      .end = at};
  uint64_t disk_entries = load<uint16_t>(end + zip_format::end::kDiskEntries);
  uint32_t disk = load<uint16_t>(end + zip_format::end::kDisk);
  uint32_t directory_disk = load<uint16_t>(end + zip_format::end::kDirectoryDisk);

  const bool has_locator = at >= zip_format::kZip64LocatorBytes &&
                           load<uint32_t>(end - zip_format::kZip64LocatorBytes) == zip_format::kZip64LocatorSignature;
  if (has_locator) {
    const std::byte* locator = end - zip_format::kZip64LocatorBytes;
    const uint64_t locator_at = at - zip_format::kZip64LocatorBytes;
    const auto record_at = load<uint64_t>(locator + zip_format::zip64_locator::kEndOffset);
    SCONCE_SOUND(load<uint32_t>(locator + zip_format::zip64_locator::kEndDisk) == 0 &&
                     load<uint32_t>(locator + zip_format::zip64_locator::kDisks) <= 1,
                 "archive is spread over several disks");
    SCONCE_SOUND(fits(record_at, zip_format::kZip64EndBytes, locator_at) &&
                     load<uint32_t>(base + record_at) == zip_format::kZip64EndSignature,
                 "zip64 end record is not where its locator says: ", record_at);
    const std::byte* record = base + record_at;
    // The record's own size does not count its first 12 bytes.
    const auto record_bytes = load<uint64_t>(record + zip_format::zip64_end::kRecordBytes);
    SCONCE_SOUND(record_bytes == locator_at - record_at - 12, "zip64 end record lies about its size: ", record_bytes);
    const Directory wide{.offset = load<uint64_t>(record + zip_format::zip64_end::kDirectoryOffset),
                         .bytes = load<uint64_t>(record + zip_format::zip64_end::kDirectoryBytes),
                         .entries = load<uint64_t>(record + zip_format::zip64_end::kEntries),
                         .end = record_at};
    const auto agree = [](uint64_t narrow, uint64_t value, uint64_t saturated) {
      return narrow == saturated || narrow == value;
    };
    SCONCE_SOUND(agree(directory.offset, wide.offset, zip_format::kSaturated32) &&
                     agree(directory.bytes, wide.bytes, zip_format::kSaturated32) &&
                     agree(directory.entries, wide.entries, zip_format::kSaturated16),
                 "end of central directory record and zip64 end record differ");
    directory = wide;
    disk_entries = load<uint64_t>(record + zip_format::zip64_end::kDiskEntries);
    disk = load<uint32_t>(record + zip_format::zip64_end::kDisk);
    directory_disk = load<uint32_t>(record + zip_format::zip64_end::kDirectoryDisk);
  }
  SCONCE_SOUND(disk == 0 && directory_disk == 0 && disk_entries == directory.entries,
               "archive is spread over several disks");
  SCONCE_SOUND(
      fits(directory.offset, directory.bytes, directory.end) && directory.offset + directory.bytes == directory.end,
      "central directory lies about its place: offset ", directory.offset, ", bytes ", directory.bytes,
      ", but it must end at ", directory.end);
  SCONCE_SOUND(directory.entries <= zip_format::kMaxMembers, "archive has ", directory.entries, " members, more than ",
               zip_format::kMaxMembers);
  return directory;
}

// Replaces saturated values by those of the zip64 field, which stores them in a fixed order.
void read_zip64(std::span<const std::byte> extra, std::initializer_list<uint64_t*> values, const std::string& name) {
  const auto saturated = [](uint64_t value) { return value == zip_format::kSaturated32; };
  bool needed = false;
  for (const uint64_t* value : values) needed |= saturated(*value);
  while (extra.size() >= 4) {
    const auto id = load<uint16_t>(extra.data());
    const size_t size = load<uint16_t>(extra.data() + 2);
    SCONCE_SOUND(size <= extra.size() - 4, "member has an extra field that is too long: ", name);
    if (id == zip_format::kExtraZip64 && needed) {
      std::span<const std::byte> field = extra.subspan(4, size);
      for (uint64_t* value : values) {
        if (!saturated(*value)) continue;
        SCONCE_SOUND(field.size() >= 8, "member has a zip64 field that is too short: ", name);
        *value = load<uint64_t>(field.data());
        field = field.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4 + size);
  }
  // A lone 0xffffffff may also be the real size; then nothing is missing.
}

// Reads one central header and moves `at` past it.
Entry read_central(std::span<const std::byte> file, const Directory& directory, uint64_t& at) {
  SCONCE_SOUND(fits(at, zip_format::kCentralBytes, directory.end) &&
                   load<uint32_t>(file.data() + at) == zip_format::kCentralSignature,
               "central directory is cut off or damaged at offset ", at);
  const std::byte* header = file.data() + at;
  const size_t name_length = load<uint16_t>(header + zip_format::central::kNameLength);
  const size_t extra_length = load<uint16_t>(header + zip_format::central::kExtraLength);
  const size_t comment_length = load<uint16_t>(header + zip_format::central::kCommentLength);
  const size_t bytes = zip_format::kCentralBytes + name_length + extra_length + comment_length;
  SCONCE_SOUND(fits(at, bytes, directory.end), "central directory is cut off at offset ", at);
  at += bytes;

  Entry entry{};
  ZipMember& member = entry.member;
  member.name.assign(reinterpret_cast<const char*>(header + zip_format::kCentralBytes), name_length);
  const std::string fault = zip_name_fault(member.name);
  SCONCE_SOUND(fault.empty(), "member's name ", fault, ": ", printable(member.name));
  entry.folder = member.name.back() == '/';
  entry.flags = load<uint16_t>(header + zip_format::central::kFlags);
  constexpr uint16_t kRefused =
      zip_format::kFlagEncrypted | zip_format::kFlagStrongEncryption | zip_format::kFlagMaskedHeaders;
  SCONCE_SOUND((entry.flags & kRefused) == 0, "member is encrypted: ", member.name);
  SCONCE_SOUND((entry.flags & zip_format::kFlagPatch) == 0, "member is a patch: ", member.name);
  const auto method = load<uint16_t>(header + zip_format::central::kMethod);
  SCONCE_SOUND(method == zip_format::kMethodStored || method == zip_format::kMethodDeflated,
               "member has an unknown compression method: ", member.name, ": ", method);
  member.deflated = method == zip_format::kMethodDeflated;
  member.crc = load<uint32_t>(header + zip_format::central::kCrc);
  member.stored_size = load<uint32_t>(header + zip_format::central::kStored);
  member.size = load<uint32_t>(header + zip_format::central::kSize);
  entry.local_offset = load<uint32_t>(header + zip_format::central::kLocalOffset);
  read_zip64({header + zip_format::kCentralBytes + name_length, extra_length},
             {&member.size, &member.stored_size, &entry.local_offset}, member.name);
  const auto disk = load<uint16_t>(header + zip_format::central::kDisk);
  SCONCE_SOUND(disk == 0 || disk == zip_format::kSaturated16, "member is on another disk: ", member.name);
  SCONCE_SOUND(member.deflated || member.size == member.stored_size, "member lies about its size: ", member.name,
               ": stored ", member.stored_size, ", content ", member.size);
  SCONCE_SOUND(!entry.folder || member.size == 0, "folder has content: ", member.name);
  return entry;
}

// Size of the descriptor after the data: it may have a signature, and its sizes 4 or 8 bytes.
size_t descriptor_bytes(std::span<const std::byte> rest, const ZipMember& member) {
  for (const size_t signature : {size_t{4}, size_t{0}})
    for (const size_t width : {size_t{4}, size_t{8}}) {
      const size_t bytes = signature + 4 + 2 * width;
      if (rest.size() < bytes) continue;
      const std::byte* at = rest.data();
      if (signature != 0 && load<uint32_t>(at) != zip_format::kDescriptorSignature) continue;
      at += signature;
      if (load<uint32_t>(at) != member.crc) continue;
      const uint64_t stored = width == 4 ? load<uint32_t>(at + 4) : load<uint64_t>(at + 4);
      const uint64_t size = width == 4 ? load<uint32_t>(at + 8) : load<uint64_t>(at + 12);
      if (stored == member.stored_size && size == member.size) return bytes;
    }
  SCONCE_FAIL(kCorruptPackage, "member's data descriptor differs from the central directory: ", member.name);
}

void read_local(std::span<const std::byte> file, const Directory& directory, Entry& entry) {
  ZipMember& member = entry.member;
  SCONCE_SOUND(fits(entry.local_offset, zip_format::kLocalBytes, directory.offset) &&
                   load<uint32_t>(file.data() + entry.local_offset) == zip_format::kLocalSignature,
               "member has no local header at the offset that the directory gives: ", member.name, ": ",
               entry.local_offset);
  const std::byte* header = file.data() + entry.local_offset;
  const size_t name_length = load<uint16_t>(header + zip_format::local::kNameLength);
  const size_t extra_length = load<uint16_t>(header + zip_format::local::kExtraLength);
  const uint64_t header_bytes = zip_format::kLocalBytes + name_length + extra_length;
  SCONCE_SOUND(fits(entry.local_offset, header_bytes, directory.offset),
               "member's local header is cut off: ", member.name);
  const std::string_view name(reinterpret_cast<const char*>(header + zip_format::kLocalBytes), name_length);
  SCONCE_SOUND(name == member.name, "member has another name in its local header: ", member.name);
  const auto flags = load<uint16_t>(header + zip_format::local::kFlags);
  constexpr uint16_t kMeaningful = zip_format::kFlagEncrypted | zip_format::kFlagDescriptor;
  const auto method = load<uint16_t>(header + zip_format::local::kMethod);
  SCONCE_SOUND((flags & kMeaningful) == (entry.flags & kMeaningful) &&
                   (method == zip_format::kMethodDeflated) == member.deflated &&
                   (method == zip_format::kMethodStored) == !member.deflated,
               "member's local header differs from the central directory: ", member.name);

  const auto crc = load<uint32_t>(header + zip_format::local::kCrc);
  uint64_t stored = load<uint32_t>(header + zip_format::local::kStored);
  uint64_t size = load<uint32_t>(header + zip_format::local::kSize);
  const bool descriptor = (flags & zip_format::kFlagDescriptor) != 0;
  if (!descriptor || (crc | stored | size) != 0) {
    const std::byte* extra = header + zip_format::kLocalBytes + name_length;
    read_zip64({extra, extra_length}, {&size, &stored}, member.name);
    const bool postponed = descriptor && crc == 0;
    SCONCE_SOUND((crc == member.crc || postponed) && (stored == member.stored_size || (postponed && stored == 0)) &&
                     (size == member.size || (postponed && size == 0)),
                 "member's local header differs from the central directory: ", member.name, ": stored ", stored,
                 " and ", member.stored_size, ", content ", size, " and ", member.size);
  }
  member.offset = entry.local_offset + header_bytes;
  SCONCE_SOUND(fits(member.offset, member.stored_size, directory.offset),
               "member reaches beyond the central directory: ", member.name, ": offset ", member.offset, ", bytes ",
               member.stored_size);
  entry.region_end = member.offset + member.stored_size;
  if (descriptor)
    entry.region_end += descriptor_bytes(file.subspan(entry.region_end, directory.offset - entry.region_end), member);
}

void check_overlaps(const std::vector<Entry>& entries) {
  std::vector<uint32_t> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return entries[a].local_offset < entries[b].local_offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Entry& before = entries[order[i - 1]];
    const Entry& entry = entries[order[i]];
    SCONCE_SOUND(before.region_end <= entry.local_offset, "members overlap: ", before.member.name, " and ",
                 entry.member.name);
  }
}

void check_duplicates(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.member.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) SCONCE_FAIL(kCorruptPackage, "member is in the archive twice: ", *twice);
}

}  // namespace

std::string zip_name_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  const auto refused = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  if (std::any_of(name.begin(), name.end(), refused)) return "has a control character or a backslash";
  if (name.front() == '/' || (name.size() >= 2 && name[1] == ':')) return "is absolute";
  if (name.back() == '/') name.remove_suffix(1);
  for (size_t begin = 0; begin <= name.size();) {
    const size_t slash = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, slash - begin);
    if (part.empty() || part == "." || part == "..") return "could leave the archive";
    begin = slash + 1;
  }
  return {};
}

std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file) {
  const Directory directory = find_directory(file);
  std::vector<Entry> entries;
  entries.reserve(std::min<uint64_t>(directory.entries, directory.bytes / zip_format::kCentralBytes));
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    entries.push_back(read_central(file, directory, at));
    read_local(file, directory, entries.back());
  }
  SCONCE_SOUND(at == directory.end, "central directory has bytes behind its last entry");
  check_duplicates(entries);
  check_overlaps(entries);

  std::vector<ZipMember> members;
  members.reserve(entries.size());
  for (Entry& entry : entries)
    if (!entry.folder) members.push_back(std::move(entry.member));
  return members;
}

}  // namespace sconce
