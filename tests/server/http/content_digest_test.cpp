// The digest of "abc": FIPS 180-2 appendix B.
#include "server/http/content_digest.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

namespace sconce::server::http {
namespace {

constexpr const char* kHex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kField = "sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:";

}  // namespace

TEST_CASE("content_digest: of the field, and of hexadecimal digits") {
  const Sha256Digest digest = digest_from_hex(kHex);
  CHECK(digest_from_hex("sha-256:" + std::string(kHex)) == digest);
  CHECK(digest_from_hex("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD") == digest);
  CHECK(content_digest(kField) == digest);
  CHECK(content_digest(" sha-512=:AAAA: ,  " + kField + " ") == digest);
  CHECK(!content_digest(""));
  CHECK(!content_digest("  "));
}

TEST_CASE("content_digest: what is none is refused") {
  for (const std::string& field :
       {std::string("sha-256"), std::string("sha-256=ungW"), std::string("sha-256=::"), std::string("sha-256=:AAAA:"),
        std::string("sha-512=:AAAA:"), std::string(","), kField + "," + kField,
        "sha-256=:" + std::string(43, 'A') + ":", "sha-256=:" + std::string(44, '*') + ":",
        "sha-256=:" + std::string(44, 'A') + ":"}) {
    CAPTURE(field);
    CHECK_THROWS_AS((void)content_digest(field), Error);
  }
  for (const std::string& text : {std::string(), std::string(63, '0'), std::string(65, '0'), std::string(64, 'g')}) {
    CAPTURE(text);
    CHECK_THROWS_AS((void)digest_from_hex(text), Error);
  }
}

}  // namespace sconce::server::http
