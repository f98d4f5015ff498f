#include "server/rollout/work/signed_weights.h"

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/hmac.h"
#include "server/support/json/base64.h"

namespace sconce::server::rollout {

signing::Verified verify_upload(const signing::SignatureRule& signatures, std::string_view field,
                                std::optional<Sha256Digest>& sha256) {
  SCONCE_CHECK(!field.empty(), kForbidden,
               "require_signature is set: the body must come with a Sconce-Signature field, its .sig file in base64");
  const std::optional<std::string> bundle = decode_base64(field);
  SCONCE_CHECK(bundle, kForbidden, "Sconce-Signature is not base64");
  signing::Verified verified = signing::verify_bundle(*bundle, *signatures.keys());
  const Sha256Digest& digest = verified.statement.file_digest();
  SCONCE_CHECK(!sha256 || same_digest(*sha256, digest), kForbidden, "Content-Digest is not the digest that was signed");
  sha256 = digest;
  return verified;
}

std::shared_ptr<const PrivateCopy> read_signed_weights(const signing::SignatureRule& signatures,
                                                       const std::string& directory, const std::string& name,
                                                       const WeightsFile& file) {
  std::optional<WeightsFile> signature;
  const std::exception_ptr problem = exception_of([&] { signature.emplace(directory, name + ".sig"); });
  if (problem && describe_failure(problem).code != ErrorCode::kNotFound) std::rethrow_exception(problem);
  return signing::read_signed(file.path(), signature ? signature->path() : std::filesystem::path(), *signatures.keys())
      .copy;
}

}  // namespace sconce::server::rollout
