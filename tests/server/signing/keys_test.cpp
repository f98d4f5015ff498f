#include "server/signing/keys.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"
#include "tests/server/signing/signing_keys.h"

namespace sconce::server::signing {

using namespace sconce::test;

TEST_CASE("keys: each kind signs, and only its public key verifies") {
  const std::vector<Key> all = public_keys(kFirstPublic + kSecondPublic + kEcdsaPublic);
  REQUIRE(all.size() == 3);
  const std::string* const pems[] = {&kFirst, &kSecond, &kEcdsa};
  for (size_t i = 0; i < 3; ++i) {
    const Key key = private_key(*pems[i]);
    CHECK(key.id() == all[i].id());
    const std::string signature = key.sign("text");
    for (size_t k = 0; k < 3; ++k) CHECK(all[k].verifies("text", signature) == (i == k));
    CHECK(!all[i].verifies("Text", signature));
    CHECK(!all[i].verifies("text", ""));
    CHECK(!all[i].verifies("text", signature.substr(1)));
    CHECK(!all[i].verifies("text", signature + "x"));
  }
  CHECK(all[0].id() == kFirstId);
}

TEST_CASE("keys: what is between them is passed over") {
  CHECK(public_keys("# ours\n" + kFirstPublic + "\n# theirs\n" + kSecondPublic).size() == 2);
}

TEST_CASE("keys: a file that has no such keys") {
  const auto refused = [](const std::string& pem, Key::Kind kind, const char* reason) {
    const std::string said = error_from(ErrorCode::kInvalidArgument, [&] { keys_from(pem, kind); });
    CHECK_MESSAGE(said.find(reason) != std::string::npos, said);
    CHECK_MESSAGE(said.find("keys.pem") != std::string::npos, said);
  };
  refused("", Key::Kind::kPublic, "has no public key");
  refused("no key", Key::Kind::kPrivate, "has no private key");
  refused(kFirst, Key::Kind::kPublic, "expected public keys");
  refused(kFirstPublic, Key::Kind::kPrivate, "expected private keys");
  refused(kFirstPublic + kFirst, Key::Kind::kPublic, "expected public keys");
  refused(kFirstPublic.substr(0, 60), Key::Kind::kPublic, "has no end");
  refused("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", Key::Kind::kPublic, "expected public keys");
  refused(
      "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
      "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjB5irEakd8TAICCAAw\n"
      "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECKskZt+HkhHhUrpW2Vn6X0EQHdn\n"
      "bYZGOe1CcOwGGzbW5oN2K4pq67MCTKBnO2GL09Amb/syMhLeqFCyFRr+zBApYxvl\n"
      "382rt8/7jLDQb+sUhp8=\n"
      "-----END ENCRYPTED PRIVATE KEY-----\n",
      Key::Kind::kPrivate, "without a passphrase");
  refused(
      "-----BEGIN PUBLIC KEY-----\n"
      "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEJa+dphEsr+N9r4a0hBKlbewSj4RTtsO7\n"
      "bh1qwiIRJX8FLE41WfuO9shU29a/ncLcAKQosmclsVRuRQOSF1qlOKXMUzKKHC2i\n"
      "fbV1S+C9uYeYtx9APz6htOcARLdbkvjj\n"
      "-----END PUBLIC KEY-----\n",
      Key::Kind::kPublic, "of Ed25519 or of ECDSA on P-256");
}

TEST_CASE("keys: a file that is not there") {
  CHECK(error_from(ErrorCode::kIo, [] {
          read_keys("/nowhere/key.pem", Key::Kind::kPublic);
        }).find("/nowhere/key.pem") != std::string::npos);
}

}  // namespace sconce::server::signing
