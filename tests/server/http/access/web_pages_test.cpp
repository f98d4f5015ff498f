#include "server/http/access/web_pages.h"

#include "tests/errors.h"

namespace sconce::server::http {
namespace {

const std::vector<std::string> kNone, kNames = {"models.example"};

std::string fields_of(const CorsRule& rule, std::string_view origin) {
  std::string fields = "old";
  rule.write_fields(origin, fields);
  return fields;
}

}  // namespace

TEST_CASE("web pages: a page of the server's own address is its own") {
  CHECK(is_own_page("http://127.0.0.1:8003", "127.0.0.1:8003", kNone));
  CHECK(is_own_page("http://localhost:8003", "localhost:8003", kNone));
  CHECK(is_own_page("https://localhost", "localhost", kNone));
  CHECK(is_own_page("http://[::1]:8003", "[::1]:8003", kNone));
  CHECK(is_own_page("https://10.0.0.7:9000", "10.0.0.7:9000", kNone));
  CHECK(is_own_page("http://models.example:8003", "models.example:8003", kNames));
}

TEST_CASE("web pages: other pages are not, nor those whose name may have been made to point here") {
  for (const std::string_view origin :
       {"null", "", "http://127.0.0.1:8004", "http://evil.example", "ftp://127.0.0.1:8003", "127.0.0.1:8003"})
    CHECK_FALSE(is_own_page(origin, "127.0.0.1:8003", kNames));
  CHECK_FALSE(is_own_page("http://evil.example:8003", "evil.example:8003", kNames));
  CHECK_FALSE(is_own_page("http://localhost.evil.example:8003", "localhost.evil.example:8003", kNames));
  CHECK_FALSE(is_own_page("http://127.0.0.1.evil.example", "127.0.0.1.evil.example", kNames));
  CHECK_FALSE(is_own_page("http://", "", kNames));
  CHECK_FALSE(is_own_page("http://[::1", "[::1", kNames));
}

TEST_CASE("web pages: names that a listener on a loopback address takes") {
  for (const std::string_view host : {"", "127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:8000", "[::1]",
                                      "[::1]:8000", "192.168.1.7:8000", "0.0.0.0:8000"})
    CHECK(is_own_host(host, kNone));
  for (const std::string_view host :
       {"evil.example", "evil.example:8000", "1.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
        "xlocalhost", "[evil]", "[::1", ":8000", "models.example"})
    CHECK_FALSE(is_own_host(host, kNone));
  CHECK(is_own_host("Models.Example:8000", kNames));
  CHECK_FALSE(is_own_host("x.models.example", kNames));
  CHECK(is_own_host("evil.example", std::vector<std::string>{"*"}));
}

TEST_CASE("web pages: origins of the setting may read answers") {
  const CorsRule rule({"https://app.example", "http://localhost:3000"});
  CHECK(rule.on());
  CHECK(rule.allows("http://localhost:3000"));
  for (const std::string_view origin : {"", "null", "https://app.example:444", "http://app.example",
                                        "https://app.example.evil", "https://x.app.example"})
    CHECK_FALSE(rule.allows(origin));
  const std::string fields = fields_of(rule, "https://app.example");
  CHECK(contains(fields, "Access-Control-Allow-Origin: https://app.example\r\n"));
  CHECK(contains(fields, "Access-Control-Allow-Credentials: true\r\n"));
  CHECK(contains(fields, "Sconce-Weight-Version"));
  CHECK(contains(fields, "Sconce-Generation"));  // deprecated
  CHECK(contains(fields, "Vary: Origin\r\n"));
  CHECK(fields_of(rule, "https://evil.example") == "Vary: Origin\r\n");
  CHECK(fields_of(rule, "") == "Vary: Origin\r\n");
  CHECK_FALSE(CorsRule({}).on());
}

TEST_CASE("web pages: any origin never has credentials") {
  const CorsRule rule({"*"});
  CHECK(rule.allows("null"));
  const std::string fields = fields_of(rule, "https://evil.example");
  CHECK(contains(fields, "Access-Control-Allow-Origin: *\r\n"));
  CHECK_FALSE(contains(fields, "Credentials"));
  std::string preflight;
  rule.write_preflight("https://evil.example", "POST", "authorization", preflight);
  CHECK(contains(preflight, "Access-Control-Allow-Origin: *\r\n"));
  CHECK_FALSE(contains(preflight, "Credentials"));
}

TEST_CASE("web pages: what a preflight is answered fits into a head") {
  const std::string origin = "https://" + std::string(247, 'a');
  const CorsRule rule({origin});
  std::string fields;
  rule.write_preflight(origin, "GET, HEAD", "content-type,x-mine", fields);
  CHECK(contains(fields, "Access-Control-Allow-Headers: content-type,x-mine\r\n"));
  CHECK(contains(fields, "Access-Control-Allow-Methods: GET, HEAD\r\n"));
  CHECK(contains(fields, "Access-Control-Max-Age: 7200\r\n"));
  CHECK(contains(fields, "Vary: Origin, Access-Control-Request-Headers\r\n"));
  rule.write_preflight(origin, "GET, HEAD", std::string(256, 'x'), fields);
  CHECK(fields.size() <= CorsRule::kMaxBytes);
  rule.write_preflight(origin, "POST", std::string(257, 'x'), fields);
  CHECK(contains(fields, "Inference-Header-Content-Length"));
  CHECK(fields.size() <= CorsRule::kMaxBytes);
  rule.write_fields(origin, fields);
  CHECK(fields.size() <= CorsRule::kMaxBytes);
}

TEST_CASE("web pages: what is no origin is an error of the setting") {
  for (const char* const text :
       {"app.example", "https://", "https://app.example/", "https://app.example/path", "https://*.example",
        "https://App.example", "https://a b", "null", "://x", "https://u@x"})
    CHECK(contains(error_from([&] { CorsRule({text}); }), "http_cors_origins"));
  CHECK(contains(error_from([] { CorsRule({"*", "https://app.example"}); }), "http_cors_origins"));
}

}  // namespace sconce::server::http
