#include "package_format/archive/zip_inflater.h"

#include <zip.h>

#include <memory>

#include "sconce/check.h"

namespace sconce {
namespace {

// A zip_error_t that libzip fills; frees it.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ZipError(const ZipError&) = delete;
  ~ZipError() { zip_error_fini(&error_); }
  zip_error_t* get() noexcept { return &error_; }
  const char* text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_;
};

struct DiscardArchive {
  void operator()(zip_t* archive) const noexcept { zip_discard(archive); }
};
struct CloseFile {
  void operator()(zip_file_t* file) const noexcept { zip_fclose(file); }
};

// Reports a corrupt archive, unless memory ran out: libzip may call that "not a zip archive", but the directory was
// already read successfully.
template <class... Parts>
[[noreturn]] void fail(const zip_error_t* error, const Parts&... parts) {
  const int code = zip_error_code_zip(error);
  const bool memory = code == ZIP_ER_MEMORY || code == ZIP_ER_NOZIP;
  detail::fail(memory ? ErrorCode::kOutOfMemory : ErrorCode::kCorruptPackage, parts...);
}

std::unique_ptr<zip_t, DiscardArchive> open_archive(std::span<const std::byte> bytes, int flags) {
  ZipError error;
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, error.get());
  SCONCE_CHECK(source != nullptr, kOutOfMemory, "cannot read archive: ", error.text());
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY | flags, error.get());
  if (archive == nullptr) {
    zip_source_free(source);
    fail(error.get(), "archive is not consistent: ", error.text());
  }
  return std::unique_ptr<zip_t, DiscardArchive>(archive);
}

}  // namespace

void inflate_member(std::span<const std::byte> bytes, const std::string& path, std::span<std::byte> out) {
  const auto archive = open_archive(bytes, 0);
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen(archive.get(), path.c_str(), ZIP_FL_ENC_RAW));
  if (!file) fail(zip_get_error(archive.get()), "member cannot be read: ", path, ": ", zip_strerror(archive.get()));
  size_t done = 0;
  while (done < out.size()) {
    const zip_int64_t got = zip_fread(file.get(), out.data() + done, out.size() - done);
    if (got < 0)
      fail(zip_file_get_error(file.get()), "member cannot be inflated: ", path, ": ", zip_file_strerror(file.get()));
    SCONCE_CHECK(got > 0, kCorruptPackage, "member cannot be inflated: ", path, ": it ends early");
    done += static_cast<size_t>(got);
  }
  // Reads one more byte, which detects content that is too long and makes libzip compare the CRC.
  std::byte beyond;
  const zip_int64_t got = zip_fread(file.get(), &beyond, 1);
  if (got < 0)
    fail(zip_file_get_error(file.get()), "member cannot be inflated: ", path, ": ", zip_file_strerror(file.get()));
  SCONCE_CHECK(got == 0, kCorruptPackage, "member cannot be inflated: ", path,
               ": it is longer than the directory says");
}

void check_with_libzip(std::span<const std::byte> bytes) { open_archive(bytes, ZIP_CHECKCONS); }

}  // namespace sconce
