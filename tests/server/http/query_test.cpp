#include "server/http/query.h"

#include <doctest/doctest.h>

#include "sconce/error.h"

namespace sconce::server::http {

TEST_CASE("query: decoded, and strict") {
  const Query query("label=a%20b%2Fc&commit=true&dry_run&async=0", {"label", "commit", "dry_run", "async", "mode"});
  CHECK(query.text("label") == "a b/c");
  CHECK(!query.text("mode"));
  CHECK(query.flag("commit"));
  CHECK(query.flag("dry_run"));
  CHECK(!query.flag("async"));
  CHECK(!query.flag("mode"));
  CHECK_THROWS_AS((void)query.flag("label"), Error);
  CHECK(!Query("", {}).text("x"));
  for (const char* text : {"other=1", "label=1&label=2", "label=%", "label=%zz", "la bel=1"}) {
    CAPTURE(std::string(text));
    CHECK_THROWS_AS(Query(text, {"label"}), Error);
  }
}

}  // namespace sconce::server::http
