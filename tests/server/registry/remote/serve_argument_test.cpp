#include "server/registry/remote/serve_argument.h"

#include <doctest/doctest.h>

namespace sconce::server::registry {
namespace {

TEST_CASE("what looks like an address is told from a path") {
  CHECK(looks_remote("s3://b/k"));
  CHECK(looks_remote("nonsense://x"));
  CHECK_FALSE(looks_remote("models/s3://b"));
  CHECK_FALSE(looks_remote("/srv/models"));
  CHECK_FALSE(looks_remote("://x"));
}

TEST_CASE("an argument of serve is an address with or without a model's name") {
  CHECK(ServeArgument("s3://b/k.pt2").name.empty());
  CHECK(ServeArgument("m=s3://b/k.pt2").name == "m");
  CHECK(ServeArgument("m=s3://b/k.pt2").url == "s3://b/k.pt2");
  CHECK(ServeArgument("m=s3://b/k.pt2").is_remote());
  CHECK(ServeArgument("https://host/k.pt2?name=x").url == "https://host/k.pt2?name=x");
  CHECK_FALSE(ServeArgument("m=/srv/m.pt2").is_remote());
}

}  // namespace
}  // namespace sconce::server::registry
