// Checks signatures of weights (setting require_signature): of an upload, and of a file below weights_dir.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/rollout/work/weights_dir.h"
#include "server/signing/signature_rule.h"

namespace sconce::server::rollout {

// Verifies the signature of a body before it arrives. field: Sconce-Signature, which has a .sig file in base64. sha256:
// the digest that the client states; becomes the signed one. kForbidden with the reason.
signing::Verified verify_upload(const signing::SignatureRule& signatures, std::string_view field,
                                std::optional<Sha256Digest>& sha256);

// The current content of the file, if its signature is valid: in name.sig below `directory`, or inside the file. name:
// the client's, for errors. kForbidden with the reason.
std::shared_ptr<const PrivateCopy> read_signed_weights(const signing::SignatureRule& signatures,
                                                       const std::string& directory, const std::string& name,
                                                       const WeightsFile& file);

}  // namespace sconce::server::rollout
