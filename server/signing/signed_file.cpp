#include "server/signing/signed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "sconce/check.h"
#include "server/signing/archive_signature.h"
#include "server/signing/envelope.h"
#include "server/support/hmac.h"
#include "src/support/error_context.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {
namespace {

constexpr const char* kNoSignature = "it has no signature, neither beside it (.sig) nor inside";
// The maximum length of an archive's comment, plus the preceding part of the end record.
constexpr size_t kLongestEnd = 22 + UINT16_MAX;

// The file's size, and its last bytes.
struct End {
  uint64_t bytes = 0;
  std::string text;
};

// nullopt if it is not a regular file or cannot be opened; copying it then reports the error.
std::optional<End> end_of(const std::filesystem::path& file) {
  const Descriptor source(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (source.get() < 0 || ::fstat(source.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  End end;
  end.bytes = static_cast<uint64_t>(status.st_size);
  end.text.resize(static_cast<size_t>(std::min<uint64_t>(end.bytes, kLongestEnd)));
  ssize_t count = 0;
  do {
    count =
        ::pread(source.get(), end.text.data(), end.text.size(), status.st_size - static_cast<off_t>(end.text.size()));
  } while (count < 0 && errno == EINTR);
  end.text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return end;
}

void check_size(uint64_t bytes, uint64_t were_signed) {
  SCONCE_CHECK(bytes == were_signed, kForbidden, "it has ", bytes, " bytes, but ", were_signed, " were signed");
}

// Maximum bytes of a copy of the file. An untrusted file may have any size, so the signature limits the memory. A
// signature of another program (without `Statement::file`) does not; then the limit is the file's size.
uint64_t most_bytes(const std::filesystem::path& file, const std::optional<Verified>& beside,
                    std::span<const Key> keys) {
  const std::optional<End> found = end_of(file);
  if (!found) return 0;
  const End& end = *found;
  if (beside) {
    if (beside->statement.file) check_size(end.bytes, beside->statement.file->bytes);
    return end.bytes;
  }
  const auto inside = find_archive_signature(std::as_bytes(std::span<const char>(end.text)));
  SCONCE_CHECK(inside, kForbidden, kNoSignature);
  const Verified verified = verify_bundle(inside->bundle, keys);
  // The original archive ends with the two length bytes of an empty comment.
  const uint64_t archive = end.bytes - (end.text.size() - inside->archive.size()) + 2;
  check_size(archive, verified.statement.file ? verified.statement.file->bytes : 0);
  return end.bytes;
}

// The text of a signature inside an archive is not itself signed, so it must have the exact form that `sconce sign`
// writes.
void check_own_form(std::string_view bundle, const Verified& verified) {
  const Envelope envelope = parse_bundle(bundle);
  SCONCE_CHECK(bundle_text(envelope, verified.key_id) == bundle, kForbidden,
               "the text of the signature inside was changed");
}

}  // namespace

std::filesystem::path signature_beside(const std::filesystem::path& file) {
  std::filesystem::path signature = file;
  signature += ".sig";
  return signature;
}

Verified verify_bundle(std::string_view bundle, std::span<const Key> keys) {
  const Envelope envelope = parse_bundle(bundle);
  const Key* const key = verified_by(envelope, keys);
  SCONCE_CHECK(key, kForbidden, "the signature is not by a key that is asked for (", keys.size(),
               keys.size() == 1 ? " key)" : " keys)");
  return {parse_statement(envelope.payload), key->id(), key->where()};
}

Verified verify_bytes(std::span<const std::byte> bytes, const std::optional<Verified>& beside,
                      std::span<const Key> keys) {
  if (beside) {
    const Statement& statement = beside->statement;
    if (statement.file) check_size(bytes.size(), statement.file->bytes);
    SCONCE_CHECK(same_digest(sha256_of(bytes), statement.file_digest()), kForbidden,
                 "its bytes are not those that were signed");
    return *beside;
  }
  const std::optional<ArchiveSignature> inside = find_archive_signature(bytes);
  SCONCE_CHECK(inside, kForbidden, kNoSignature);
  Verified verified = verify_bundle(inside->bundle, keys);
  check_own_form(inside->bundle, verified);
  SCONCE_CHECK(verified.statement.file == signed_archive(inside->archive), kForbidden,
               "its bytes are not those that were signed");
  return verified;
}

SignedFile read_signed(const std::filesystem::path& file, const std::filesystem::path& signature,
                       std::span<const Key> keys) {
  const ErrorContext context(file.native());
  std::error_code ignored;
  std::optional<Verified> beside;
  if (std::filesystem::exists(signature, ignored))
    beside = verify_bundle(PrivateCopy(signature, kLargestSignature).text(), keys);
  auto copy = std::make_shared<const PrivateCopy>(file, most_bytes(file, beside, keys));
  Verified verified = verify_bytes(copy->bytes(), beside, keys);
  return {std::move(copy), std::move(verified)};
}

}  // namespace sconce::server::signing
