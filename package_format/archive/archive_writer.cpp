#include "package_format/archive/archive_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "package_format/archive/zip_directory.h"
#include "package_format/archive/zip_layout.h"
#include "package_format/files/crc32.h"
#include "package_format/files/mapped_file.h"
#include "sconce/check.h"

namespace sconce {
namespace {

constexpr uint16_t kVersionNeeded = 20;
constexpr uint16_t kVersionNeededZip64 = 45;

// Builds a record, little endian.
class Record {
 public:
  template <class T>
  Record& put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  Record& put(std::string_view text) {
    bytes_.append(text);
    return *this;
  }
  Record& fill(char c, size_t count) {
    bytes_.append(count, c);
    return *this;
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

bool wide(uint64_t value) { return value >= zip_format::kSaturated32; }
uint32_t narrow(uint64_t value, bool zip64) { return zip64 ? zip_format::kSaturated32 : static_cast<uint32_t>(value); }

}  // namespace

ArchiveWriter::ArchiveWriter(std::filesystem::path path, ArchiveWriterOptions options)
    : path_(std::move(path)), temporary_(path_), options_(options) {
  temporary_ += ".partial-" + std::to_string(::getpid());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  SCONCE_CHECK(fd_ >= 0, kIo, "cannot write file: ", temporary_.native(), ": ", std::strerror(errno));
}

ArchiveWriter::~ArchiveWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void ArchiveWriter::write(std::span<const std::byte> bytes) {
  position_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    SCONCE_CHECK(written >= 0, kIo, "cannot write file: ", temporary_.native(), ": ", std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void ArchiveWriter::add(std::string_view name, std::span<const std::byte> bytes) {
  const std::string reason = zip_name_fault(name);
  SCONCE_CHECK(reason.empty() && !name.ends_with('/') && name.size() <= UINT16_MAX, kInvalidArgument,
               "member cannot have this name: ", name, reason.empty() ? "" : ": ", reason);
  const bool fresh = names_.emplace(name).second;
  SCONCE_CHECK(fresh, kInvalidArgument, "member is in the archive already: ", name);
  SCONCE_CHECK(entries_.size() < zip_format::kMaxMembers, kInvalidArgument, "archive has more than ",
               zip_format::kMaxMembers, " members");
  const Entry entry{std::string(name), position_, bytes.size(), crc32(bytes)};
  const bool zip64 = options_.zip64 || wide(entry.size);
  const uint32_t crc_here = options_.descriptors ? 0 : entry.crc;
  const uint32_t size_here = options_.descriptors ? 0 : narrow(entry.size, zip64);

  const size_t zip64_bytes = zip64 ? 20 : 0;
  const size_t unpadded = position_ + zip_format::kLocalBytes + name.size() + zip64_bytes + 4;
  const size_t padding =
      (zip_format::kDataAlignment - unpadded % zip_format::kDataAlignment) % zip_format::kDataAlignment;
  Record header;
  header.put(zip_format::kLocalSignature)
      .put(zip64 ? kVersionNeededZip64 : kVersionNeeded)
      .put(static_cast<uint16_t>(zip_format::kFlagUtf8 | (options_.descriptors ? zip_format::kFlagDescriptor : 0)))
      .put(zip_format::kMethodStored)
      .put(uint32_t{0})  // time and date
      .put(crc_here)
      .put(size_here)
      .put(size_here)
      .put(static_cast<uint16_t>(name.size()))
      .put(static_cast<uint16_t>(zip64_bytes + 4 + padding))
      .put(name);
  if (zip64) header.put(zip_format::kExtraZip64).put(uint16_t{16}).put(entry.size).put(entry.size);
  header.put(zip_format::kExtraPadding).put(static_cast<uint16_t>(padding)).fill('Z', padding);
  write(header.bytes());
  write(bytes);
  if (options_.descriptors) {
    Record descriptor;
    descriptor.put(zip_format::kDescriptorSignature).put(entry.crc);
    if (zip64) {
      descriptor.put(entry.size).put(entry.size);
    } else {
      descriptor.put(static_cast<uint32_t>(entry.size)).put(static_cast<uint32_t>(entry.size));
    }
    write(descriptor.bytes());
  }
  entries_.push_back(entry);
}

void ArchiveWriter::add_file(std::string_view name, const std::filesystem::path& file) {
  std::atomic<uint32_t> concern{0};
  const MappedFile mapped(file, concern);
  add(name, mapped.bytes());
  mapped.check();
}

void ArchiveWriter::write_directory() {
  const uint64_t start = position_;
  Record directory;
  for (const Entry& entry : entries_) {
    const bool size64 = options_.zip64 || wide(entry.size);
    const bool offset64 = options_.zip64 || wide(entry.offset);
    const auto extra = static_cast<uint16_t>((size64 || offset64 ? 4 : 0) + (size64 ? 16 : 0) + (offset64 ? 8 : 0));
    directory.put(zip_format::kCentralSignature)
        .put(uint16_t{0})  // made by
        .put(extra != 0 ? kVersionNeededZip64 : kVersionNeeded)
        .put(static_cast<uint16_t>(zip_format::kFlagUtf8 | (options_.descriptors ? zip_format::kFlagDescriptor : 0)))
        .put(zip_format::kMethodStored)
        .put(uint32_t{0})  // time and date
        .put(entry.crc)
        .put(narrow(entry.size, size64))
        .put(narrow(entry.size, size64))
        .put(static_cast<uint16_t>(entry.name.size()))
        .put(extra)
        .put(uint16_t{0})  // comment
        .put(uint16_t{0})  // disk
        .put(uint16_t{0})  // attributes
        .put(uint32_t{0})
        .put(narrow(entry.offset, offset64))
        .put(std::string_view(entry.name));
    if (extra != 0) {
      directory.put(zip_format::kExtraZip64).put(static_cast<uint16_t>(extra - 4));
      if (size64) directory.put(entry.size).put(entry.size);
      if (offset64) directory.put(entry.offset);
    }
  }
  write(directory.bytes());

  const uint64_t bytes = position_ - start;
  const uint64_t count = entries_.size();
  const uint64_t record_at = position_;
  const bool wide_end = options_.zip64 || wide(start) || wide(bytes) || count >= zip_format::kSaturated16;
  const auto count16 = wide_end ? zip_format::kSaturated16 : static_cast<uint16_t>(count);
  Record end;
  end.put(zip_format::kZip64EndSignature)
      .put(uint64_t{zip_format::kZip64EndBytes - 12})
      .put(kVersionNeededZip64)
      .put(kVersionNeededZip64)
      .put(uint32_t{0})
      .put(uint32_t{0})
      .put(count)
      .put(count)
      .put(bytes)
      .put(start);
  end.put(zip_format::kZip64LocatorSignature).put(uint32_t{0}).put(record_at).put(uint32_t{1});
  end.put(zip_format::kEndSignature)
      .put(uint16_t{0})
      .put(uint16_t{0})
      .put(count16)
      .put(count16)
      .put(narrow(bytes, wide_end))
      .put(narrow(start, wide_end))
      .put(uint16_t{0});
  write(end.bytes());
}

void ArchiveWriter::finish() {
  SCONCE_CHECK(fd_ >= 0, kFailedPrecondition, "archive is finished: ", path_.native());
  write_directory();
  SCONCE_CHECK(::fsync(fd_) == 0, kIo, "cannot write file: ", temporary_.native(), ": ", std::strerror(errno));
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  SCONCE_CHECK(!error, kIo, "cannot rename file: ", temporary_.native(), " to ", path_.native(), ": ", error.message());
  ::close(std::exchange(fd_, -1));
}

}  // namespace sconce
