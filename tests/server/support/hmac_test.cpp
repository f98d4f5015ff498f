#include "server/support/hmac.h"

#include <doctest/doctest.h>

#include "src/support/hex.h"
#include "src/support/sha256.h"

using namespace sconce;
using namespace sconce::server;

TEST_CASE("hmac: the digests of the standards") {
  // RFC 4231, test case 2.
  CHECK(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(same_digest(sha256_of("abc"), sha256_of("abc")));
  CHECK(!same_digest(sha256_of("abd"), sha256_of("abc")));
}
