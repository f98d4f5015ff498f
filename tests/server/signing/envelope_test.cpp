#include "server/signing/envelope.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/server/signing/signing_keys.h"

namespace sconce::server::signing {

using namespace sconce::test;

namespace {

std::string refusal(const std::string& text) {
  return error_from(ErrorCode::kForbidden, [&] { parse_bundle(text); });
}

void refused(const std::string& text, const char* reason) {
  const std::string said = refusal(text);
  CHECK_MESSAGE(said.find(reason) != std::string::npos, said);
}

std::string with_envelope(const std::string& members) { return R"({"dsseEnvelope": {)" + members + "}}"; }

const std::string kType = R"("payloadType": "application/vnd.in-toto+json")";

}  // namespace

TEST_CASE("envelope: what is signed is the payload with its type") {
  CHECK(signed_text("{}") == "DSSEv1 28 application/vnd.in-toto+json 2 {}");
}

TEST_CASE("envelope: one of several keys has signed") {
  const std::vector<Key> all = public_keys(kSecondPublic + kEcdsaPublic + kFirstPublic);
  for (const std::string& pem : {kFirst, kSecond, kEcdsa}) {
    const Key key = private_key(pem);
    const Envelope envelope = parse_bundle(sign_payload("{\"a\": 1}", key));
    CHECK(envelope.payload == "{\"a\": 1}");
    const Key* const found = verified_by(envelope, all);
    REQUIRE(found);
    CHECK(found->id() == key.id());
    // ECDSA draws a number for each signature.
    CHECK((bundle_text(envelope, key.id()) == sign_payload("{\"a\": 1}", key)) == (pem != kEcdsa));
    CHECK(!verified_by({envelope.payload + " ", envelope.signatures}, all));
    CHECK(!verified_by({envelope.payload, {}}, all));
    CHECK(!verified_by(envelope, {}));
  }
}

TEST_CASE("envelope: several signatures, one of them good") {
  const Key first = private_key(kFirst), second = private_key(kSecond);
  const std::string text = signed_text("{}");
  const Envelope envelope = parse_bundle(bundle_text({"{}", {second.sign(text), "", first.sign(text)}}, ""));
  CHECK(verified_by(envelope, public_keys(kFirstPublic))->id() == first.id());
  CHECK(!verified_by(envelope, public_keys(kEcdsaPublic)));
}

TEST_CASE("envelope: text that is no signature") {
  refused("", "cannot be read");
  refused("[]", "cannot be read");
  refused("{}", "no 'dsseEnvelope'");
  refused(R"({"dsseEnvelope": 1})", "cannot be read");
  refused(with_envelope(R"("payload": "e30=")"), "'payloadType' is not");
  refused(with_envelope(R"("payload": "e30", )" + kType), "not base64");
  refused(with_envelope(R"("payload": "e31=", )" + kType), "not base64");
  refused(with_envelope(R"("payload": 7, )" + kType), "cannot be read");
  refused(with_envelope(kType + R"(, "signatures": [{"sig": "?"}])"), "not base64");
  refused(with_envelope(kType + R"(, "signatures": {})"), "cannot be read");
  refused(with_envelope(kType) + "x", "cannot be read");
  refused(R"({"dsseEnvelope": {)" + kType + R"(}, "dsseEnvelope": {)" + kType + "}}", "two envelopes");
  refused("{\"x\": " + std::string(100'000, '['), "nested deeper");
  refused("{\"dsseEnvelope\": {\"x\": " + std::string(100'000, '{'), "cannot be read");
  std::string many = "{}";
  for (int i = 0; i < 16; ++i) many += ", {}";
  refused(with_envelope(kType + ", \"signatures\": [" + many + "]"), "more than 16 signatures");
  std::string lists = kType;
  for (int i = 0; i < 17; ++i) lists += ", \"signatures\": [{}]";
  refused(with_envelope(lists), "more than 16 signatures");
  refused(std::string(kLargestSignature + 1, ' '), "more than");
}

TEST_CASE("envelope: a bundle that is cut off is no signature") {
  const std::string bundle = sign_payload("{}", private_key(kFirst));
  for (size_t size = 0; size + 1 < bundle.size(); ++size) CHECK(refusal(bundle.substr(0, size)) != "no error");
}

}  // namespace sconce::server::signing
