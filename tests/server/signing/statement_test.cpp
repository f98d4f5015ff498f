#include "server/signing/statement.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"
#include "tests/errors.h"

namespace sconce::server::signing {
namespace {

Sha256Digest digest_of(std::string_view text) { return sha256_of(std::as_bytes(std::span(text))); }

Statement statement() {
  Statement made;
  made.subject = "net.pt2";
  made.resources = {{"net/b", digest_of("b")}, {"net/a", digest_of("a")}};
  made.file = SignedBytes{100, digest_of("file")};
  made.head = SignedBytes{10, digest_of("head")};
  return made;
}

// The statement's text with one piece of it in the place of another.
std::string altered(const std::string& piece, const std::string& other) {
  std::string text = statement_text(statement());
  const size_t at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.replace(at, piece.size(), other);
}

void refused(const std::string& text, const char* reason) {
  const std::string said = error_from(ErrorCode::kForbidden, [&] { parse_statement(text); });
  CHECK_MESSAGE(said.find(reason) != std::string::npos, said);
}

}  // namespace

TEST_CASE("statement: written and read") {
  const Statement read = parse_statement(statement_text(statement()));
  CHECK(read.subject == "net.pt2");
  REQUIRE(read.resources.size() == 2);
  CHECK(read.resources[0].name == "net/a");
  CHECK(read.resources[0].digest == digest_of("a"));
  CHECK(read.resources[1].name == "net/b");
  CHECK(read.file == statement().file);
  CHECK(read.head == statement().head);
  CHECK(read.file_digest() == digest_of("file"));
}

TEST_CASE("statement: of another program") {
  Statement one = statement();
  one.file = one.head = {};
  const std::string several = statement_text(one);
  const std::string said = error_from(ErrorCode::kForbidden, [&] { (void)parse_statement(several).file_digest(); });
  CHECK_MESSAGE(said.find("of 2 files") != std::string::npos, said);
  one.resources.resize(1);
  CHECK(parse_statement(statement_text(one)).file_digest() == digest_of("b"));
}

TEST_CASE("statement: what cannot be used") {
  refused("", "cannot be used");
  refused("{}", "it is not https://model_signing/signature/v1.0");
  refused(altered("signature/v1.0", "signature/v9.0"), "it is not");
  refused(altered("Statement/v1", "Statement/v2"), "it is not");
  refused(altered("net/a", "net/b"), "in the statement twice");
  refused(altered("net/a", ""), "no name");
  refused(altered("\"algorithm\":\"sha256\"", "\"algorithm\":\"sha1\""), "must be of sha256");
  refused(altered(to_hex(digest_of("a")), to_hex(digest_of("c"))), "another digest than its resources");
  refused(altered(to_hex(digest_of("a")), "00"), "not a SHA-256");
  refused(altered("\"bytes\":100,", ""), "must have bytes and digest");
  refused(altered("\"head_bytes\":10,", ""), "must have bytes and digest");
  // Twice the one and never the other are not both.
  refused(altered("\"digest\":\"" + to_hex(digest_of("file")) + "\"", "\"bytes\":100"), "must have bytes and digest");
  refused(altered("\"head_digest\":\"" + to_hex(digest_of("head")) + "\"", "\"head_bytes\":10"),
          "must have bytes and digest");
  refused(altered("\"bytes\":100", "\"bytes\":-1"), "cannot be used");
  refused(altered("\"bytes\":100", "\"bytes\":1e400"), "cannot be used");
  refused(altered("\"resources\":[", "\"resources\":[{\"name\":\"x\",\"algorithm\":\"sha256\"},"), "no digest");
  Statement nothing = statement();
  nothing.resources.clear();
  refused(statement_text(nothing), "about nothing");
}

TEST_CASE("statement: text that is cut off") {
  const std::string text = statement_text(statement());
  for (size_t size = 0; size < text.size(); ++size)
    CHECK_THROWS_AS(parse_statement(text.substr(0, size)), const Error&);
}

}  // namespace sconce::server::signing
