#include "server/support/sha256.h"

#include <doctest/doctest.h>

using namespace sconce;
using namespace sconce::server;

TEST_CASE("sha256: the digests of the standards") {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  // FIPS 180-2, B.1; RFC 4231, test case 2.
  CHECK(hex_of(sha256_of(bytes("abc"))) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  Sha256 pieces;
  pieces.update(bytes("a"));
  pieces.update({});
  pieces.update(bytes("bc"));
  CHECK(same_digest(pieces.finish(), sha256_of(bytes("abc"))));
  CHECK(!same_digest(sha256_of(bytes("abd")), sha256_of(bytes("abc"))));
}
