// A signature as text: OpenSSF's model_signing writes a bundle of Sigstore's format, which holds a DSSE envelope
// (https://github.com/secure-systems-lab/dsse). What is signed is the envelope's payload, together with its type.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/signing/keys.h"

namespace sconce::server {

// Largest text that is read as a signature: with the digests of 100,000 members.
constexpr size_t kLargestSignature = size_t{32} << 20;

struct Envelope {
  std::string payload;                  // a statement as JSON
  std::vector<std::string> signatures;  // each by some key
};

// What is signed in the place of a payload (DSSE's "pre-authentication encoding").
std::string signed_text(std::string_view payload);

std::string sign_payload(const std::string& payload, const Key& key);
// The bundle, in the one form in which it is written here.
std::string bundle_text(const Envelope& envelope, const std::string& key_id);
// kForbidden with what is wrong with the text. Nothing of the payload is looked at.
Envelope parse_bundle(std::string_view text);
// The key whose signature is good; null: none is.
const Key* verified_by(const Envelope& envelope, std::span<const Key> keys);

}  // namespace sconce::server
