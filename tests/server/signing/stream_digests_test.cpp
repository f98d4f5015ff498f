#include "server/signing/stream_digests.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "src/support/sha256.h"
#include "tests/errors.h"

namespace sconce::server::signing {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

const std::string kJson = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
const std::string kHead = std::string(1, static_cast<char>(kJson.size())) + std::string(7, '\0') + kJson;
const std::string kFile = kHead + "\1\2\3\4";

Statement statement_of(const std::string& file) {
  StreamDigests digests;
  digests.update(bytes(file));
  Statement statement;
  statement.file = digests.whole();
  statement.head = digests.head();
  return statement;
}

// What is said of a body that comes in pieces of so many bytes; "": nothing. seen: bytes that passed.
std::string check(const Statement& statement, const std::string& body, size_t piece, size_t& seen) {
  try {
    HeadCheck check(statement);
    for (seen = 0; seen < body.size(); seen += piece) check.see(bytes(std::string_view(body).substr(seen, piece)));
  } catch (const Error& problem) {
    CHECK(problem.code() == ErrorCode::kForbidden);
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("stream digests: in pieces of any size") {
  for (size_t piece = 1; piece <= kFile.size(); ++piece) {
    StreamDigests digests;
    for (size_t at = 0; at < kFile.size(); at += piece)
      digests.update(bytes(std::string_view(kFile).substr(at, piece)));
    CHECK(digests.whole() == SignedBytes{kFile.size(), sha256_of(bytes(kFile))});
    CHECK(digests.head() == SignedBytes{kHead.size(), sha256_of(bytes(kHead))});
  }
}

TEST_CASE("stream digests: what is no safetensors file has no head") {
  for (const std::string& file :
       {std::string(), std::string("x"), std::string("PK\3\4 and more of an archive"), std::string(8, '\0') + "{",
        std::string(8, '\xff') + "{}", kHead.substr(0, kHead.size() - 1), std::string("\2\0\0\0\0\0\0\0[]", 10)})
    CHECK(!statement_of(file).head);
}

TEST_CASE("head check: the body that was signed, in pieces of any size") {
  const Statement statement = statement_of(kFile);
  size_t seen = 0;
  for (size_t piece = 1; piece <= kFile.size(); ++piece) CHECK(check(statement, kFile, piece, seen).empty());
}

TEST_CASE("head check: a changed byte of the head is seen before the head has passed") {
  const Statement statement = statement_of(kFile);
  size_t seen = 0;
  for (size_t at = 0; at < kHead.size(); ++at) {
    std::string body = kFile;
    body[at] = static_cast<char>(body[at] ^ 1);
    for (const size_t piece : {size_t{1}, size_t{7}, body.size()}) {
      CHECK(!check(statement, body, piece, seen).empty());
      CHECK(seen < kHead.size());
      // The length is not used before it is compared.
      if (at < 8 && piece == 1) CHECK(seen < 8);
    }
  }
}

TEST_CASE("head check: a signature without the digest of a head") {
  Statement statement = statement_of(kFile);
  statement.head.reset();
  size_t seen = 0;
  CHECK(check(statement, kFile, 1, seen).find("sconce sign") != std::string::npos);
}

}  // namespace sconce::server::signing
