#include "server/http/client/url_text.h"

#include <doctest/doctest.h>

namespace sconce::server::http {
namespace {

TEST_CASE("paths and values are percent-encoded as signatures need them") {
  CHECK(encoded_path("a b/c+d~e.pt2") == "a%20b/c%2Bd~e.pt2");
  CHECK(encoded_value("a/b=\xc3\xa4") == "a%2Fb%3D%C3%A4");
}

TEST_CASE("what forms encode is decoded") {
  CHECK(decoded_form("a+b%2Bc%01/%c3%A4") == "a b+c\x01/\xc3\xa4");
  CHECK(decoded_form("") == "");
  for (const char* const text : {"%", "%4", "a%g1", "%+1", "%4g"}) CHECK_FALSE(decoded_form(text));
}

TEST_CASE("an origin and an authority are parts of a URL") {
  CHECK(origin_of("https://host:1/a?b#c") == "https://host:1");
  CHECK(origin_of("http://[::1]:9000") == "http://[::1]:9000");
  CHECK(authority_of("https://host:1/a") == "host:1");
  CHECK(authority_of("https://host?x") == "host");
}

}  // namespace
}  // namespace sconce::server::http
