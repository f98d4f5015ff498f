#include "src/tensor_files/npz_reader.h"

#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::tensor_files {
namespace {

// Reports a corrupt archive, unless libzip ran out of memory. code: libzip's.
template <class... Parts>
[[noreturn]] void refuse(int code, const Parts&... parts) {
  detail::fail(code == ZIP_ER_MEMORY ? ErrorCode::kOutOfMemory : ErrorCode::kCorruptPackage, parts...);
}

constexpr std::string_view kSuffix = ".npy";
constexpr zip_int64_t kMaxMembers = 65536;
constexpr uint64_t kMaxDeflateRatio = 1032;

// Deflate cannot exceed this ratio; a larger claim is false and would cost memory.
void check_claims(const zip_stat_t& info, const std::string& where) {
  SCONCE_CHECK(info.encryption_method == ZIP_EM_NONE, kUnsupported, "npz: member is encrypted: ", where);
  SCONCE_CHECK(info.comp_method == ZIP_CM_STORE || info.comp_method == ZIP_CM_DEFLATE, kUnsupported,
               "npz: member is neither stored nor deflated: ", where, ": method ", info.comp_method);
  const uint64_t ratio = info.comp_method == ZIP_CM_STORE ? 1 : kMaxDeflateRatio;
  SCONCE_CHECK(info.size / ratio <= info.comp_size, kCorruptPackage, "npz: member claims too large a size: ", where,
               ": ", info.size, " bytes from ", info.comp_size);
}

}  // namespace

void NpzReader::DiscardArchive::operator()(zip* archive) const noexcept { zip_discard(archive); }
void NpzReader::CloseFile::operator()(zip_file* file) const noexcept { zip_fclose(file); }

NpzReader::NpzReader(std::span<const std::byte> bytes, std::string where) : file_(std::move(where)) {
  SCONCE_CHECK(!bytes.empty(), kCorruptPackage, "npz: not a sound zip archive: ", file_, ": the file is empty");
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  archive_.reset(source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : nullptr);
  const std::string reason = archive_ ? "" : zip_error_strerror(&error);
  const int code = zip_error_code_zip(&error);
  zip_error_fini(&error);
  if (!archive_ && source) zip_source_free(source);
  if (!archive_) refuse(code, "npz: not a sound zip archive: ", file_, ": ", reason);
  list_members(bytes.size());
}

NpzReader::NpzReader(int fd, uint64_t size, std::string where) : file_(std::move(where)) {
  SCONCE_CHECK(size > 0, kCorruptPackage, "npz: not a sound zip archive: ", file_, ": the file is empty");
  const int own = ::dup(fd);
  SCONCE_CHECK(own >= 0, kIo, "cannot read file: ", file_, ": ", std::strerror(errno));
  int code = 0;
  archive_.reset(zip_fdopen(own, ZIP_CHECKCONS, &code));  // owns the descriptor if it succeeds
  if (!archive_) {
    ::close(own);
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    refuse(code, "npz: not a sound zip archive: ", file_, ": ", reason);
  }
  list_members(size);
}

void NpzReader::list_members(uint64_t file_bytes) {
  const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
  SCONCE_CHECK(count <= kMaxMembers, kCorruptPackage, "npz: too many members: ", file_, ": ", count);
  std::unordered_set<std::string> names;
  uint64_t left = file_bytes;  // members must not share bytes, or a small file could fill the memory
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t info;
    SCONCE_CHECK(zip_stat_index(archive_.get(), index, 0, &info) == 0 && info.name, kCorruptPackage,
                 "npz: unreadable member: ", file_, ": ", i);
    std::string name = info.name;
    const std::string where = file_ + ": " + excerpt(name);
    SCONCE_CHECK(name.ends_with(kSuffix), kUnsupported, "npz: a member is not a .npy file: ", where);
    name.resize(name.size() - kSuffix.size());
    SCONCE_CHECK(names.insert(name).second, kCorruptPackage, "npz: two members have the same name: ", where);
    SCONCE_CHECK(info.comp_size <= left, kCorruptPackage, "npz: members overlap: ", where);
    left -= info.comp_size;
    check_claims(info, where);
    members_.push_back({std::move(name), index, info.size});
  }
}

std::string NpzReader::where(size_t member) const {
  return file_ + ": " + excerpt(name(member)) + std::string(kSuffix);
}

const NpyHeader& NpzReader::open(size_t member) {
  opened_ = member;
  const Member& entry = members_[member];
  stream_.reset(zip_fopen_index(archive_.get(), entry.index, 0));
  if (!stream_) {
    refuse(zip_error_code_zip(zip_get_error(archive_.get())), "npz: cannot open member: ", where(member), ": ",
           zip_strerror(archive_.get()));
  }
  std::vector<std::byte> start(12);
  SCONCE_CHECK(entry.bytes >= start.size(), kCorruptPackage, "npz: member ends within its header: ", where(member));
  inflate(start);
  // The length follows the version. Reads that many bytes, but at most those that exist.
  const bool wide = start[6] != std::byte{1};
  const auto byte = [&](size_t i) { return std::to_integer<size_t>(start[i]); };
  const size_t length = (wide ? 12 : 10) + (byte(8) | byte(9) << 8 | (wide ? byte(10) << 16 | byte(11) << 24 : 0));
  const size_t known = start.size();
  if (is_npy(start) && length > known && length <= kMaxNpyHeader) {
    start.resize(std::min<size_t>(length, entry.bytes));
    inflate(std::span(start).subspan(known));
  }
  header_ = parse_npy_header(start, where(member));
  check_data_bytes(header_, entry.bytes - header_.header_bytes, where(member), "npz");
  // The header was shorter than the bytes read: the rest is data.
  early_.assign(start.begin() + static_cast<std::ptrdiff_t>(header_.header_bytes), start.end());
  return header_;
}

void NpzReader::read(std::span<std::byte> out) {
  const size_t early = std::min(early_.size(), out.size());
  if (early > 0) {
    std::memcpy(out.data(), early_.data(), early);
    early_.erase(early_.begin(), early_.begin() + static_cast<std::ptrdiff_t>(early));
  }
  inflate(out.subspan(early));
}

void NpzReader::inflate(std::span<std::byte> out) {
  while (!out.empty()) {
    const zip_int64_t n = zip_fread(stream_.get(), out.data(), out.size());
    SCONCE_CHECK(n > 0, kCorruptPackage, "npz: cannot read member: ", where(opened_), ": ",
                 n < 0 ? zip_file_strerror(stream_.get()) : "it ends early");
    out = out.subspan(static_cast<size_t>(n));
  }
}

void NpzReader::finish() {
  std::byte beyond;
  const zip_int64_t end = zip_fread(stream_.get(), &beyond, 1);  // at the end libzip compares the CRC
  SCONCE_CHECK(end == 0, kCorruptPackage, "npz: member is damaged: ", where(opened_), ": ",
               end < 0 ? zip_file_strerror(stream_.get()) : "it is longer than it says");
  stream_.reset();
}

}  // namespace sconce::tensor_files
