// The functions of this room, for a build without it (server/support/left_out.h). Without keys a SignatureRule works:
// no signature is required. With keys it cannot be constructed.
#include "server/support/left_out.h"

#include "server/signing/sign_file.h"
#include "server/signing/signature_rule.h"
#include "server/signing/stream_digests.h"

namespace sconce::server::signing {
namespace {

const LeftOut kSigning("signing", "SCONCE_SIGNING", {"require_signature", "sign"});

}  // namespace

SignatureRule::SignatureRule(std::span<const std::string> files) {
  if (!files.empty()) kSigning.fail("setting require_signature");
}
SignatureRule::Keys SignatureRule::keys() const { kSigning.fail(); }
void SignatureRule::refresh(bool) {}
SignedFile SignatureRule::read(const std::filesystem::path&) const { kSigning.fail(); }
std::filesystem::path SignatureRule::verified_copy(const std::filesystem::path& file) const { return file; }
void SignatureRule::refuse_unsigned(std::string_view) const {}

std::vector<Key> read_keys(const std::string&, Key::Kind) { kSigning.fail(); }
std::filesystem::path signature_beside(const std::filesystem::path&) { kSigning.fail(); }
Verified verify_bundle(std::string_view, std::span<const Key>) { kSigning.fail(); }
SignedFile read_signed(const std::filesystem::path&, const std::filesystem::path&, std::span<const Key>) {
  kSigning.fail();
}
const Sha256Digest& Statement::file_digest() const { kSigning.fail(); }
HeadCheck::HeadCheck(const Statement&) { kSigning.fail(); }
void HeadCheck::see(std::span<const std::byte>) { kSigning.fail(); }

void sign_beside(const std::filesystem::path&, const Key&, const std::filesystem::path&) { kSigning.fail(); }
void sign_inside(const std::filesystem::path&, const Key&) { kSigning.fail(); }
SignedStream sign_stream(const std::string&, const std::function<size_t(std::span<std::byte>)>&, const std::string&) {
  kSigning.fail("option --sign");
}

}  // namespace sconce::server::signing
