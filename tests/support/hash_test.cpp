// Published values: of FNV-1a by draft-eastlake-fnv, appendix C; of splitmix64 by its authors' C code from state
// 1234567.
#include "src/support/hash.h"

#include <doctest/doctest.h>

using namespace sconce;

TEST_CASE("hash: FNV-1a") {
  CHECK(fnv1a("") == 0xcbf29ce484222325);
  CHECK(fnv1a("a") == 0xaf63dc4c8601ec8c);
  CHECK(fnv1a("foobar") == 0x85944171f73967e8);
  CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
}

TEST_CASE("hash: splitmix64") {
  uint64_t state = 1234567;
  for (const uint64_t drawn :
       {6457827717110365317u, 3203168211198807973u, 9817491932198370423u, 4593380528125082431u}) {
    CHECK(splitmix64(state) == drawn);
    state += kGoldenStep;
    CHECK(mixed_bits(state) == drawn);
  }
}
