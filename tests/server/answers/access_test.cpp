#include "server/answers/access.h"

#include <doctest/doctest.h>

using namespace sconce::server;

TEST_CASE("access: the console is the server's own page") {
  CHECK(is_own_page("http://127.0.0.1:8003", "127.0.0.1:8003"));
  CHECK(is_own_page("http://localhost:8003", "localhost:8003"));
  CHECK(is_own_page("https://localhost", "localhost"));
  CHECK(is_own_page("http://[::1]:8003", "[::1]:8003"));
  CHECK(is_own_page("https://10.0.0.7:9000", "10.0.0.7:9000"));
}

TEST_CASE("access: other pages are not") {
  for (const char* origin : {"", "null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:8000",
                             "ftp://127.0.0.1:8003", "127.0.0.1:8003", "http://localhost:8003"}) {
    CAPTURE(std::string(origin));
    CHECK_FALSE(is_own_page(origin, "127.0.0.1:8003"));
  }
  // A name that a web site has chosen, whatever its address is.
  CHECK_FALSE(is_own_page("http://evil.example:8003", "evil.example:8003"));
  CHECK_FALSE(is_own_page("http://localhost.evil.example:8003", "localhost.evil.example:8003"));
  CHECK_FALSE(is_own_page("http://127.0.0.1.evil.example", "127.0.0.1.evil.example"));
  CHECK_FALSE(is_own_page("http://", ""));
  CHECK_FALSE(is_own_page("http://[::1", "[::1"));
}
