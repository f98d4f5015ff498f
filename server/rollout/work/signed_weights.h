// Weights that must be signed (setting require_signature): an upload, and a file below weights_dir.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/rollout/work/weights_dir.h"
#include "server/signing/signature_rule.h"

namespace sconce::server {

// The signature of a body that has not come yet. field: Sconce-Signature, which has a .sig file in base64. sha256: of
// the body, as the client says; becomes the one that was signed. kForbidden with the reason.
Verified verify_upload(const SignatureRule& signatures, std::string_view field, std::optional<Sha256Digest>& sha256);

// The file as it is now, if its signature is good: name.sig below `directory`, or inside. name: the client's, for
// errors. kForbidden with the reason.
std::shared_ptr<const PrivateCopy> read_signed_weights(const SignatureRule& signatures, const std::string& directory,
                                                       const std::string& name, const WeightsFile& file);

}  // namespace sconce::server
