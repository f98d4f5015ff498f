#include "src/faults/exception_table.h"

#include <cstring>

namespace sconce::faults {
namespace {

// DW_EH_PE_*: how a pointer in the table is stored.
enum : uint8_t {
  kAbsolute = 0x00,
  kUleb128 = 0x01,
  kUint16 = 0x02,
  kUint32 = 0x03,
  kUint64 = 0x04,
  kSleb128 = 0x09,
  kSint16 = 0x0a,
  kSint32 = 0x0b,
  kSint64 = 0x0c,
  kRelative = 0x10,  // relative to the address of the pointer itself
  kIndirect = 0x80,
  kOmitted = 0xff,
};

class Reader {
 public:
  explicit Reader(const uint8_t* at) noexcept : at_(at) {}
  const uint8_t* at() const noexcept { return at_; }

  uint8_t byte() noexcept { return *at_++; }
  uint64_t uleb128() noexcept {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t next = byte();
      if (shift < 64) value |= uint64_t{next & 0x7fU} << shift;
      if (!(next & 0x80)) return value;
    }
  }
  int64_t sleb128() noexcept {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t next = byte();
      if (shift < 64) value |= uint64_t{next & 0x7fU} << shift;
      shift += 7;
      if (next & 0x80) continue;
      if (shift < 64 && (next & 0x40)) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  uint64_t pointer(uint8_t encoding) noexcept {
    const auto place = reinterpret_cast<uint64_t>(at_);
    uint64_t value = plain(encoding & 0x0f);
    if (value == 0) return 0;
    if ((encoding & 0x70) == kRelative) value += place;
    if (encoding & kIndirect) value = *reinterpret_cast<const uint64_t*>(value);
    return value;
  }

 private:
  template <class T>
  T fixed() noexcept {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint64_t plain(uint8_t format) noexcept {
    switch (format) {
      case kUleb128:
        return uleb128();
      case kSleb128:
        return static_cast<uint64_t>(sleb128());
      case kUint16:
        return fixed<uint16_t>();
      case kSint16:
        return static_cast<uint64_t>(int64_t{fixed<int16_t>()});
      case kUint32:
        return fixed<uint32_t>();
      case kSint32:
        return static_cast<uint64_t>(int64_t{fixed<int32_t>()});
      default:  // kAbsolute, kUint64, kSint64
        return fixed<uint64_t>();
    }
  }
  const uint8_t* at_;
};

unsigned size_of(uint8_t encoding) noexcept {
  switch (encoding & 0x07) {
    case kUint16:
      return 2;
    case kUint32:
      return 4;
    default:
      return 8;
  }
}

struct Header {
  uintptr_t landing_base;
  uint8_t type_encoding, site_encoding;
  const uint8_t* types;  // the table of handlers' types grows down from here
  const uint8_t *sites, *actions;
};

Header header_of(const void* table, uintptr_t function) noexcept {
  Reader read(static_cast<const uint8_t*>(table));
  Header header{};
  const uint8_t base = read.byte();
  header.landing_base = base == kOmitted ? function : read.pointer(base);
  header.type_encoding = read.byte();
  if (header.type_encoding != kOmitted) {
    const uint64_t offset = read.uleb128();
    header.types = read.at() + offset;
  }
  header.site_encoding = read.byte();
  const uint64_t length = read.uleb128();
  header.sites = read.at();
  header.actions = header.sites + length;
  return header;
}

Passage outcome_of(const Header& header, uint64_t action, bool (*catches)(const std::type_info*)) noexcept {
  if (action == 0) return Passage::kOpen;  // destructors only
  for (const uint8_t* at = header.actions + action - 1;;) {
    Reader read(at);
    const int64_t filter = read.sleb128();
    const uint8_t* const place = read.at();
    const int64_t next = read.sleb128();
    if (filter < 0) return Passage::kBlocked;  // an exception specification
    if (filter > 0 && header.types) {
      Reader type(header.types - static_cast<uint64_t>(filter) * size_of(header.type_encoding));
      if (catches(reinterpret_cast<const std::type_info*>(type.pointer(header.type_encoding)))) return Passage::kCaught;
    }
    if (next == 0) return Passage::kOpen;
    at = place + next;
  }
}

}  // namespace

Passage passage_at(const void* table, uintptr_t function, uintptr_t address,
                   bool (*catches)(const std::type_info*)) noexcept {
  if (!table) return Passage::kBare;
  const Header header = header_of(table, function);
  for (Reader read(header.sites); read.at() < header.actions;) {
    const uint64_t begin = function + read.pointer(header.site_encoding);
    const uint64_t length = read.pointer(header.site_encoding);
    const uint64_t landing = read.pointer(header.site_encoding);
    const uint64_t action = read.uleb128();
    if (address < begin) break;  // sorted by address
    if (address >= begin + length) continue;
    return landing == 0 ? Passage::kBare : outcome_of(header, action, catches);
  }
  return Passage::kBlocked;
}

}  // namespace sconce::faults
