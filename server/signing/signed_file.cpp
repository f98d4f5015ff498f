#include "server/signing/signed_file.h"

#include <system_error>

#include "sconce/check.h"
#include "sconce/error_context.h"
#include "server/signing/archive_signature.h"
#include "server/signing/envelope.h"
#include "server/signing/sha256.h"

namespace sconce::server {
namespace {

// The text of a signature inside an archive is not signed itself, so it must be the one that `sconce sign` writes.
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
    SCONCE_CHECK(!statement.file || statement.file->bytes == bytes.size(), kForbidden, "it has ", bytes.size(),
                 " bytes, but ", statement.file->bytes, " were signed");
    SCONCE_CHECK(same_digest(sha256_of(bytes), statement.file_digest()), kForbidden,
                 "its bytes are not those that were signed");
    return *beside;
  }
  const std::optional<ArchiveSignature> inside = find_archive_signature(bytes);
  SCONCE_CHECK(inside, kForbidden, "it has no signature, neither beside it (.sig) nor inside");
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
  auto copy = std::make_shared<const PrivateCopy>(file);
  Verified verified = verify_bytes(copy->bytes(), beside, keys);
  return {std::move(copy), std::move(verified)};
}

}  // namespace sconce::server
