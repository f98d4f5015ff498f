#include "package_format/archive/archive_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <system_error>

#include "package_format/archive/not_a_package.h"
#include "package_format/archive/zip_directory.h"
#include "package_format/archive/zip_inflater.h"
#include "package_format/archive/zip_layout.h"
#include "package_format/files/crc32.h"
#include "package_format/files/directory.h"
#include "sconce/check.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kElfMagic = "\177ELF";
constexpr std::string_view kZipMagic = "PK";
// Limit on content inflated from an archive: this many bytes, or this many times the archive's size if that is more.
constexpr uint64_t kMaxInflatedBytes = uint64_t{64} << 20;
constexpr uint64_t kMaxInflation = 100;

// "model/" for "model/archive_format"; empty if PyTorch's members are at the top or are not found.
std::string find_root(std::span<const ArchiveMember> members) {
  std::string root;
  for (const ArchiveMember& member : members) {
    const std::string_view path = member.path;
    if (path == kFormatMember || path.starts_with(kModelFolder)) return {};
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos || !root.empty()) continue;
    const std::string_view below = path.substr(slash + 1);
    if (below == kFormatMember || below.starts_with(kModelFolder)) root = path.substr(0, slash + 1);
  }
  return root;
}

bool starts_in(std::span<const std::byte> whole, std::span<const std::byte> part) noexcept {
  return part.data() >= whole.data() && part.data() <= whole.data() + whole.size();
}

bool lies_in(std::span<const std::byte> whole, std::span<const std::byte> part) noexcept {
  return starts_in(whole, part) && part.size() <= static_cast<size_t>(whole.data() + whole.size() - part.data());
}

}  // namespace

std::unique_ptr<ArchiveReader> ArchiveReader::open(const fs::path& path) {
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader);
  reader->path_ = path;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    reader->kind_ = Kind::kDirectory;
    reader->open_directory();
  } else {
    reader->open_image(reader->files_.emplace_back(path, reader->concern_).bytes());
  }
  reader->index_members();
  reader->check_not_torn();
  return reader;
}

std::unique_ptr<ArchiveReader> ArchiveReader::open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                                   const fs::path& name) {
  SCONCE_CHECK(bytes.data() || bytes.empty(), kInvalidArgument, "package has no bytes: ", name.native());
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader);
  reader->path_ = name;
  reader->owner_ = std::move(owner);
  reader->open_image(bytes);
  reader->index_members();
  return reader;
}

std::unique_ptr<ArchiveReader> ArchiveReader::open(std::span<const MemoryFile> files, std::shared_ptr<const void> owner,
                                                   const fs::path& name) {
  std::unique_ptr<ArchiveReader> reader(new ArchiveReader);
  reader->path_ = name;
  reader->owner_ = std::move(owner);
  reader->kind_ = Kind::kDirectory;
  for (const MemoryFile& file : files) reader->add(file.path, file.bytes, file.bytes.size(), 0, 0, false);
  reader->index_members();
  return reader;
}

std::vector<SharedFile> ArchiveReader::share(uint64_t most_copied) const {
  std::vector<SharedFile> shared;
  if (files_.empty()) {
    SCONCE_CHECK(image_.size() <= most_copied, kUnsupported,
                 "the package is in memory, and too large for a copy: ", image_.size(), " bytes");
    shared.push_back(SharedFile::copy_of(image_, path_));
    return shared;
  }
  for (size_t i = 0; i < files_.size(); ++i)
    shared.push_back(files_[i].share(kind_ == Kind::kDirectory ? fs::path(members_[i].path) : path_));
  return shared;
}

void ArchiveReader::open_image(std::span<const std::byte> bytes) {
  image_ = bytes;
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  if (start == kElfMagic) {
    kind_ = Kind::kSharedObject;
    add(path_.filename().string(), bytes, bytes.size(), 0, 0, false);
  } else {
    if (!start.starts_with(kZipMagic)) refuse_file(path_, bytes);
    open_archive();
  }
}

ArchiveReader::~ArchiveReader() = default;

void ArchiveReader::add(std::string path, std::span<const std::byte> stored, uint64_t size, uint64_t offset,
                        uint32_t crc, bool deflated) {
  ArchiveMember& member = members_.emplace_back();
  member.path = std::move(path);
  member.size = size;
  member.deflated = deflated;
  member.offset = offset;
  member.index = members_.size() - 1;
  member.stored = stored;
  member.crc = crc;
}

void ArchiveReader::open_archive() {
  std::vector<ZipMember> members = read_zip_directory(image_);
  members_.reserve(members.size());
  for (ZipMember& member : members)
    add(std::move(member.name), image_.subspan(member.offset, member.stored_size), member.size, member.offset,
        member.crc, member.deflated);
}

namespace {

// Adds the files of a directory and of the directories below it, as paths from `root`.
void add_files(const fs::path& root, const std::string& below, int depth, std::vector<std::string>& paths) {
  std::error_code error;
  const std::vector<std::string> names = names_in(root / below, error);
  SCONCE_CHECK(!error, kIo, "cannot read directory: ", (root / below).native(), ": ", error.message());
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : below + "/" + name;
    const fs::file_status status = fs::status(root / path, error);
    SCONCE_CHECK(!error || status.type() == fs::file_type::not_found, kIo, "cannot read: ", (root / path).native(),
                 ": ", error.message());
    SCONCE_CHECK(depth < 16, kUnsupported, "directory is too deep: ", (root / path).native());
    if (status.type() == fs::file_type::directory) add_files(root, path, depth + 1, paths);
    if (status.type() != fs::file_type::regular) continue;
    paths.push_back(path);
    SCONCE_CHECK(paths.size() <= zip_format::kMaxMembers, kUnsupported, "directory has more than ",
                 zip_format::kMaxMembers, " files: ", root.native());
  }
}

}  // namespace

void ArchiveReader::open_directory() {
  check_has_layout(path_);
  std::vector<std::string> paths;
  add_files(path_, "", 0, paths);
  std::sort(paths.begin(), paths.end());
  files_.reserve(paths.size());
  members_.reserve(paths.size());
  for (std::string& path : paths) {
    const std::span<const std::byte> file = files_.emplace_back(path_ / path, concern_).bytes();
    add(std::move(path), file, file.size(), 0, 0, false);
  }
}

void ArchiveReader::index_members() {
  root_ = find_root(members_);
  for (ArchiveMember& member : members_) {
    member.name = member.path;
    if (member.name.starts_with(root_)) member.name.remove_prefix(root_.size());
  }
  by_name_.resize(members_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return members_[a].name < members_[b].name; });
  checked_ = std::make_unique<std::atomic<bool>[]>(members_.size());
}

const ArchiveMember* ArchiveReader::find(std::string_view name) const noexcept {
  const auto at = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [&](uint32_t i, std::string_view wanted) { return members_[i].name < wanted; });
  return at != by_name_.end() && members_[*at].name == name ? &members_[*at] : nullptr;
}

std::vector<const ArchiveMember*> ArchiveReader::list(std::string_view prefix) const {
  std::vector<const ArchiveMember*> found;
  auto at = std::lower_bound(by_name_.begin(), by_name_.end(), prefix,
                             [&](uint32_t i, std::string_view wanted) { return members_[i].name < wanted; });
  for (; at != by_name_.end() && members_[*at].name.starts_with(prefix); ++at) found.push_back(&members_[*at]);
  return found;
}

std::span<const std::byte> ArchiveReader::inflate(const ArchiveMember& member) const {
  const MutexLock lock(inflate_mutex_);
  if (inflated_.empty()) inflated_.resize(members_.size());
  std::unique_ptr<std::byte[]>& content = inflated_[member.index];
  if (!content) {
    const uint64_t limit = std::max<uint64_t>(kMaxInflatedBytes, kMaxInflation * image_.size());
    SCONCE_CHECK(member.size <= limit - inflated_bytes_, kCorruptPackage, "member inflates to too much: ", member.path,
                 ": ", member.size, " bytes from an archive of ", image_.size());
    std::unique_ptr<std::byte[]> fresh(new (std::nothrow) std::byte[member.size]);
    SCONCE_CHECK(fresh, kOutOfMemory, "no memory to inflate member: ", member.path, ": ", member.size, " bytes");
    inflate_member(image_, member.path, {fresh.get(), member.size});
    inflated_bytes_ += member.size;
    content = std::move(fresh);
  }
  return {content.get(), member.size};
}

std::span<const std::byte> ArchiveReader::view(const ArchiveMember& member) const {
  return member.deflated ? inflate(member) : member.stored;
}

std::span<const std::byte> ArchiveReader::read(const ArchiveMember& member) const {
  if (member.deflated) return inflate(member);
  check_crc(member, {}, 0, 0);
  return member.stored;
}

// For a stored member, unless it was already compared.
void ArchiveReader::check_crc(const ArchiveMember& member, const Progress& progress, uint64_t before,
                              uint64_t total) const {
  std::atomic<bool>& checked = checked_[member.index];
  if (kind_ != Kind::kArchive || checked.load(std::memory_order_relaxed)) return;
  constexpr size_t kPiece = size_t{16} << 20;
  uint32_t crc = 0;
  for (std::span<const std::byte> left = member.stored; !left.empty();) {
    const size_t bytes = progress ? std::min(kPiece, left.size()) : left.size();
    crc = crc32(left.first(bytes), crc);
    left = left.subspan(bytes);
    if (progress) progress(before + member.stored.size() - left.size(), total);
  }
  SCONCE_CHECK(crc == member.crc, kCorruptPackage, "member's content does not have the recorded CRC: ", member.path);
  checked.store(true, std::memory_order_relaxed);
}

bool ArchiveReader::is_sound(const ArchiveMember& member) const {
  const std::span<const std::byte> bytes = view(member);
  const bool right = kind_ != Kind::kArchive || member.deflated || crc32(bytes) == member.crc;
  return right && (!concerned() || why_lost().empty());
}

std::string_view ArchiveReader::read_text(const ArchiveMember& member) const {
  const std::span<const std::byte> bytes = read(member);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const MappedFile* ArchiveReader::file_of(std::span<const std::byte> bytes) const noexcept {
  for (const MappedFile& file : files_)
    if (starts_in(file.bytes(), bytes)) return lies_in(file.bytes(), bytes) ? &file : nullptr;
  return nullptr;
}

bool ArchiveReader::maps(std::span<const std::byte> bytes) const noexcept {
  return files_.empty() ? lies_in(image_, bytes) : file_of(bytes) != nullptr;
}

bool ArchiveReader::rereadable(std::span<const std::byte> bytes) const noexcept {
  const MappedFile* const file = file_of(bytes);
  return file && file->means() != WriteProtectedFile::Means::kCopy &&
         file->means() != WriteProtectedFile::Means::kCopyOfWritten;
}

void ArchiveReader::give_up_pages(std::span<const std::byte> bytes) const noexcept {
  if (const MappedFile* const file = file_of(bytes)) file->give_up_pages(bytes);
}

void ArchiveReader::check_files() const {
  for (const MappedFile& file : files_) file.check();
}

std::string ArchiveReader::why_lost() const {
  for (const MappedFile& file : files_)
    if (std::string why = file.why_lost(); !why.empty()) return why;
  return {};
}

// A file that was open for writing may mix two contents: only checksums detect that.
void ArchiveReader::check_not_torn() const {
  for (const MappedFile& file : files_)
    if (file.means() == WriteProtectedFile::Means::kCopyOfWritten) {
      SCONCE_CHECK(kind_ == Kind::kArchive, kUnavailable, "file is open for writing: ", path_.native());
      for (const ArchiveMember& member : members_) read(member);
    }
}

void ArchiveReader::verify(const Progress& progress) const {
  if (kind_ == Kind::kArchive) check_with_libzip(image_);
  uint64_t total = 0, done = 0;
  for (const ArchiveMember& member : members_) total += member.size;
  for (const ArchiveMember& member : members_) {
    if (member.deflated)
      inflate(member);
    else
      check_crc(member, progress, done, total);
    done += member.size;
    if (progress) progress(done, total);
  }
}

}  // namespace sconce
