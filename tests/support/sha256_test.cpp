// Expected values: FIPS 180-2 appendix B; the last one by Python's hashlib.
#include "src/support/sha256.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/support/hex.h"

using namespace sconce;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string digest_of(std::string_view text) {
  Sha256 digest;
  digest.update(bytes_of(text));
  return to_hex(digest.finish());
}

}  // namespace

TEST_CASE("sha256: published vectors") {
  CHECK(digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(digest_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(digest_of(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256: the pieces in which bytes pass make no difference; a finished one begins anew") {
  std::string text(200'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  Sha256 digest;
  for (const size_t step : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{4096}, text.size()}) {
    CAPTURE(step);
    for (size_t at = 0; at < text.size(); at += step) digest.update(bytes_of(std::string_view(text).substr(at, step)));
    CHECK(to_hex(digest.finish()) == "e870fec3223bac8f6147b08b31e6e6e4bb9abd783820bcd212b7737af6a02174");
  }
}

TEST_CASE("sha256: pieces without bytes, and the digest of a whole") {
  Sha256 pieces;
  pieces.update(bytes_of("a"));
  pieces.update({});
  pieces.update(bytes_of("bc"));
  CHECK(pieces.finish() == sha256_of("abc"));
  CHECK(sha256_of(bytes_of("abc")) == sha256_of("abc"));
  CHECK(sha256_of("abd") != sha256_of("abc"));
}

TEST_CASE("sha256: a moved one goes on") {
  Sha256 first;
  first.update(bytes_of("a"));
  Sha256 second = std::move(first);
  second.update(bytes_of("bc"));
  CHECK(to_hex(second.finish()) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
