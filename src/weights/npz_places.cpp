#include "src/weights/npz_places.h"

#include <algorithm>

#include "package_format/archive/zip_layout.h"

namespace sconce::weights {
namespace {

using zip_format::load;

constexpr uint64_t kMaxDirectoryBytes = uint64_t{64} << 20;

bool fits(uint64_t offset, uint64_t bytes, uint64_t limit) noexcept {
  return offset <= limit && bytes <= limit - offset;
}

struct Directory {
  uint64_t offset = 0, bytes = 0;
};

std::optional<Directory> find_directory(const InputFile& file) {
  const uint64_t most = zip_format::kEndBytes + UINT16_MAX + zip_format::kZip64LocatorBytes;
  std::vector<std::byte> tail(static_cast<size_t>(std::min(file.size(), most)));
  if (tail.size() < zip_format::kEndBytes) return std::nullopt;
  file.read(file.size() - tail.size(), tail);
  for (size_t at = tail.size() - zip_format::kEndBytes;; --at) {
    const std::byte* end = tail.data() + at;
    if (load<uint32_t>(end) == zip_format::kEndSignature &&
        load<uint16_t>(end + zip_format::end::kCommentLength) == tail.size() - at - zip_format::kEndBytes) {
      const Directory narrow{load<uint32_t>(end + zip_format::end::kDirectoryOffset),
                             load<uint32_t>(end + zip_format::end::kDirectoryBytes)};
      if (at < zip_format::kZip64LocatorBytes ||
          load<uint32_t>(end - zip_format::kZip64LocatorBytes) != zip_format::kZip64LocatorSignature)
        return narrow;
      const auto record_at =
          load<uint64_t>(end - zip_format::kZip64LocatorBytes + zip_format::zip64_locator::kEndOffset);
      std::vector<std::byte> record(zip_format::kZip64EndBytes);
      if (!fits(record_at, record.size(), file.size())) return std::nullopt;
      file.read(record_at, record);
      if (load<uint32_t>(record.data()) != zip_format::kZip64EndSignature) return std::nullopt;
      return Directory{load<uint64_t>(record.data() + zip_format::zip64_end::kDirectoryOffset),
                       load<uint64_t>(record.data() + zip_format::zip64_end::kDirectoryBytes)};
    }
    if (at == 0) return std::nullopt;
  }
}

// Replaces saturated values by those of the zip64 field, which stores them in a fixed order. False if one is missing.
bool widen(std::span<const std::byte> extra, std::initializer_list<uint64_t*> values) {
  for (; extra.size() >= 4;) {
    const size_t bytes = load<uint16_t>(extra.data() + 2);
    if (bytes > extra.size() - 4) return false;
    std::span<const std::byte> field = extra.subspan(4, bytes);
    if (load<uint16_t>(extra.data()) == zip_format::kExtraZip64) {
      for (uint64_t* value : values) {
        if (*value != zip_format::kSaturated32) continue;
        if (field.size() < 8) return false;
        *value = load<uint64_t>(field.data());
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + bytes);
  }
  return std::none_of(values.begin(), values.end(), [](uint64_t* value) { return *value == zip_format::kSaturated32; });
}

}  // namespace

std::vector<NpzPlace> find_stored_members(const InputFile& file, size_t members) {
  const std::optional<Directory> directory = find_directory(file);
  if (!directory || directory->bytes > kMaxDirectoryBytes || !fits(directory->offset, directory->bytes, file.size()))
    return {};
  std::vector<std::byte> bytes(static_cast<size_t>(directory->bytes));
  file.read(directory->offset, bytes);
  std::vector<NpzPlace> places;
  for (std::span<const std::byte> rest = bytes; places.size() < members;) {
    if (rest.size() < zip_format::kCentralBytes || load<uint32_t>(rest.data()) != zip_format::kCentralSignature)
      return {};
    const std::byte* header = rest.data();
    const size_t name = load<uint16_t>(header + zip_format::central::kNameLength);
    const size_t extra = load<uint16_t>(header + zip_format::central::kExtraLength);
    const size_t all =
        zip_format::kCentralBytes + name + extra + load<uint16_t>(header + zip_format::central::kCommentLength);
    if (all > rest.size()) return {};
    NpzPlace place{0, load<uint32_t>(header + zip_format::central::kSize),
                   load<uint32_t>(header + zip_format::central::kCrc)};
    uint64_t stored = load<uint32_t>(header + zip_format::central::kStored);
    uint64_t local = load<uint32_t>(header + zip_format::central::kLocalOffset);
    if (!widen(rest.subspan(zip_format::kCentralBytes + name, extra), {&place.bytes, &stored, &local})) return {};
    if (load<uint16_t>(header + zip_format::central::kMethod) == zip_format::kMethodStored) {
      std::vector<std::byte> head(zip_format::kLocalBytes);
      if (stored != place.bytes || !fits(local, head.size(), file.size())) return {};
      file.read(local, head);
      if (load<uint32_t>(head.data()) != zip_format::kLocalSignature) return {};
      place.offset = local + zip_format::kLocalBytes + load<uint16_t>(head.data() + zip_format::local::kNameLength) +
                     load<uint16_t>(head.data() + zip_format::local::kExtraLength);
      if (!fits(place.offset, place.bytes, file.size())) return {};
    }
    places.push_back(place);
    rest = rest.subspan(all);
  }
  return places;
}

}  // namespace sconce::weights
