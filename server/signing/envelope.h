// A signature as text: OpenSSF's model_signing writes a bundle in Sigstore's format, which holds a DSSE envelope
// (https://github.com/secure-systems-lab/dsse). The signature covers the envelope's payload and its type.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/signing/keys.h"

namespace sconce::server::signing {

// Largest text that is read as a signature; enough for the digests of 100,000 members.
constexpr size_t kLargestSignature = size_t{32} << 20;

struct Envelope {
  std::string payload;                  // a statement as JSON
  std::vector<std::string> signatures;  // one per key
};

// The bytes that are signed for a payload (DSSE's "pre-authentication encoding").
std::string signed_text(std::string_view payload);

std::string sign_payload(const std::string& payload, const Key& key);
// The bundle as text, always in the same form.
std::string bundle_text(const Envelope& envelope, const std::string& key_id);
// kForbidden with the defect of the text. The payload is not parsed.
Envelope parse_bundle(std::string_view text);
// The key whose signature is valid; null: none.
const Key* verified_by(const Envelope& envelope, std::span<const Key> keys);

}  // namespace sconce::server::signing
