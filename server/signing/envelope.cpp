#include "server/signing/envelope.h"

#include <optional>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json/base64.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/text_buffer.h"

namespace sconce::server::signing {
namespace {

constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";
constexpr const char* kMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json";
constexpr size_t kMaxSignatures = 16;

std::string base64_of(std::string_view bytes) {
  TextBuffer text;
  append_base64(text, reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  return std::string(text.view());
}

std::string decoded(JsonCursor& json, std::string_view what) {
  std::optional<std::string> bytes = decode_base64(json.string(what));
  SCONCE_CHECK(bytes, kInvalidArgument, what, " is not base64");
  return std::move(*bytes);
}

std::string read_signature(JsonCursor& json) {
  std::string signature;
  json.object("a signature", [&](std::string_view key) {
    if (key == "sig")
      signature = decoded(json, "'sig'");
    else
      json.skip();
  });
  return signature;
}

void read_envelope(JsonCursor& json, Envelope& envelope) {
  std::string type;
  json.object("'dsseEnvelope'", [&](std::string_view key) {
    if (key == "payload") {
      envelope.payload = decoded(json, "'payload'");
    } else if (key == "payloadType") {
      type = json.string("'payloadType'");
    } else if (key == "signatures") {
      json.array("'signatures'", [&](size_t) {
        // Counted over all lists with this name, because each signature costs a digest of the payload per key.
        SCONCE_CHECK(envelope.signatures.size() < kMaxSignatures, kInvalidArgument, "more than ", kMaxSignatures,
                     " signatures");
        envelope.signatures.push_back(read_signature(json));
      });
    } else {
      json.skip();
    }
  });
  SCONCE_CHECK(type == kPayloadType, kInvalidArgument, "'payloadType' is not ", kPayloadType);
}

}  // namespace

std::string signed_text(std::string_view payload) {
  std::string text = "DSSEv1 " + std::to_string(kPayloadType.size()) + " ";
  text.append(kPayloadType).append(" ").append(std::to_string(payload.size())).append(" ").append(payload);
  return text;
}

std::string bundle_text(const Envelope& envelope, const std::string& key_id) {
  OrderedJson signatures = OrderedJson::array();
  for (const std::string& signature : envelope.signatures)
    signatures.push_back({{"sig", base64_of(signature)}, {"keyid", ""}});
  OrderedJson json;
  json["mediaType"] = kMediaType;
  json["verificationMaterial"]["publicKey"]["hint"] = key_id;
  json["verificationMaterial"]["tlogEntries"] = OrderedJson::array();
  json["dsseEnvelope"]["payload"] = base64_of(envelope.payload);
  json["dsseEnvelope"]["payloadType"] = std::string(kPayloadType);
  json["dsseEnvelope"]["signatures"] = std::move(signatures);
  return dump(json) + "\n";
}

std::string sign_payload(const std::string& payload, const Key& key) {
  return bundle_text({payload, {key.sign(signed_text(payload))}}, key.id());
}

Envelope parse_bundle(std::string_view text) {
  SCONCE_CHECK(text.size() <= kLargestSignature, kForbidden, "the signature has more than ", kLargestSignature,
               " bytes");
  Envelope envelope;
  bool found = false;
  const std::string problem = problem_of([&] {
    JsonCursor json(text);
    json.object("the bundle", [&](std::string_view key) {
      if (key != "dsseEnvelope") return void(json.skip());
      SCONCE_CHECK(!found, kInvalidArgument, "two envelopes");
      found = true;
      read_envelope(json, envelope);
    });
    json.finish();
  });
  SCONCE_CHECK(problem.empty(), kForbidden, "the signature cannot be read: ", problem);
  SCONCE_CHECK(found, kForbidden, "the signature has no 'dsseEnvelope'");
  return envelope;
}

const Key* verified_by(const Envelope& envelope, std::span<const Key> keys) {
  const std::string text = signed_text(envelope.payload);
  for (const std::string& signature : envelope.signatures)
    for (const Key& key : keys)
      if (key.verifies(text, signature)) return &key;
  return nullptr;
}

}  // namespace sconce::server::signing
