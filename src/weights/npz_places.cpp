#include "src/weights/npz_places.h"

#include <algorithm>

#include "package_format/archive/zip_layout.h"

namespace sconce::weights {
namespace {

using zip::load;

constexpr uint64_t kMostDirectoryBytes = uint64_t{64} << 20;

bool fits(uint64_t offset, uint64_t bytes, uint64_t limit) noexcept {
  return offset <= limit && bytes <= limit - offset;
}

struct Directory {
  uint64_t offset = 0, bytes = 0;
};

std::optional<Directory> find_directory(const InputFile& file) {
  const uint64_t most = zip::kEndBytes + UINT16_MAX + zip::kZip64LocatorBytes;
  std::vector<std::byte> tail(static_cast<size_t>(std::min(file.size(), most)));
  if (tail.size() < zip::kEndBytes) return std::nullopt;
  file.read(file.size() - tail.size(), tail);
  for (size_t at = tail.size() - zip::kEndBytes;; --at) {
    const std::byte* end = tail.data() + at;
    if (load<uint32_t>(end) == zip::kEndSignature &&
        load<uint16_t>(end + zip::end::kCommentLength) == tail.size() - at - zip::kEndBytes) {
      const Directory narrow{load<uint32_t>(end + zip::end::kDirectoryOffset),
                             load<uint32_t>(end + zip::end::kDirectoryBytes)};
      if (at < zip::kZip64LocatorBytes || load<uint32_t>(end - zip::kZip64LocatorBytes) != zip::kZip64LocatorSignature)
        return narrow;
      const auto record_at = load<uint64_t>(end - zip::kZip64LocatorBytes + zip::zip64_locator::kEndOffset);
      std::vector<std::byte> record(zip::kZip64EndBytes);
      if (!fits(record_at, record.size(), file.size())) return std::nullopt;
      file.read(record_at, record);
      if (load<uint32_t>(record.data()) != zip::kZip64EndSignature) return std::nullopt;
      return Directory{load<uint64_t>(record.data() + zip::zip64_end::kDirectoryOffset),
                       load<uint64_t>(record.data() + zip::zip64_end::kDirectoryBytes)};
    }
    if (at == 0) return std::nullopt;
  }
}

// Replaces saturated values by those of the zip64 field, which has them in a fixed order. False if one is missing.
bool widen(std::span<const std::byte> extra, std::initializer_list<uint64_t*> values) {
  for (; extra.size() >= 4;) {
    const size_t bytes = load<uint16_t>(extra.data() + 2);
    if (bytes > extra.size() - 4) return false;
    std::span<const std::byte> field = extra.subspan(4, bytes);
    if (load<uint16_t>(extra.data()) == zip::kExtraZip64) {
      for (uint64_t* value : values) {
        if (*value != zip::kSaturated32) continue;
        if (field.size() < 8) return false;
        *value = load<uint64_t>(field.data());
        field = field.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + bytes);
  }
  return std::none_of(values.begin(), values.end(), [](uint64_t* value) { return *value == zip::kSaturated32; });
}

}  // namespace

std::vector<NpzPlace> find_stored_members(const InputFile& file, size_t members) {
  const std::optional<Directory> directory = find_directory(file);
  if (!directory || directory->bytes > kMostDirectoryBytes || !fits(directory->offset, directory->bytes, file.size()))
    return {};
  std::vector<std::byte> bytes(static_cast<size_t>(directory->bytes));
  file.read(directory->offset, bytes);
  std::vector<NpzPlace> places;
  for (std::span<const std::byte> rest = bytes; places.size() < members;) {
    if (rest.size() < zip::kCentralBytes || load<uint32_t>(rest.data()) != zip::kCentralSignature) return {};
    const std::byte* header = rest.data();
    const size_t name = load<uint16_t>(header + zip::central::kNameLength);
    const size_t extra = load<uint16_t>(header + zip::central::kExtraLength);
    const size_t all = zip::kCentralBytes + name + extra + load<uint16_t>(header + zip::central::kCommentLength);
    if (all > rest.size()) return {};
    NpzPlace place{0, load<uint32_t>(header + zip::central::kSize), load<uint32_t>(header + zip::central::kCrc)};
    uint64_t stored = load<uint32_t>(header + zip::central::kStored);
    uint64_t local = load<uint32_t>(header + zip::central::kLocalOffset);
    if (!widen(rest.subspan(zip::kCentralBytes + name, extra), {&place.bytes, &stored, &local})) return {};
    if (load<uint16_t>(header + zip::central::kMethod) == zip::kMethodStored) {
      std::vector<std::byte> head(zip::kLocalBytes);
      if (stored != place.bytes || !fits(local, head.size(), file.size())) return {};
      file.read(local, head);
      if (load<uint32_t>(head.data()) != zip::kLocalSignature) return {};
      place.offset = local + zip::kLocalBytes + load<uint16_t>(head.data() + zip::local::kNameLength) +
                     load<uint16_t>(head.data() + zip::local::kExtraLength);
      if (!fits(place.offset, place.bytes, file.size())) return {};
    }
    places.push_back(place);
    rest = rest.subspan(all);
  }
  return places;
}

}  // namespace sconce::weights
