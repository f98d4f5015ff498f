#include "server/registry/remote/credentials/environment.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

namespace sconce::server::registry {
namespace {

TEST_CASE("a section of an INI file is read") {
  const std::string text = "# c\r\n[default]\r\naws_access_key_id = A\r\n\r\n[ other ]\nname=1 = 2\n; name = 3\n";
  CHECK(ini_value(text, "default", "aws_access_key_id") == "A");
  CHECK(ini_value(text, "other", "name") == "1 = 2");
  CHECK(ini_value(text, "default", "name").empty());
  CHECK(ini_value("name = 1\n", "default", "name").empty());
  CHECK(ini_value("[default\nname = 1", "default", "name").empty());
  CHECK(has_section(text, "other"));
  CHECK_FALSE(has_section(text, "name"));
}

TEST_CASE("an endpoint is a plain URL") {
  CHECK(checked_endpoint("http://minio:9000//", "X") == "http://minio:9000");
  CHECK(checked_endpoint("", "X").empty());
  for (const char* wrong : {"ftp://x", "minio:9000", "https://user@x", "https://x?y", "https://x\r\nHost: y"})
    CHECK_THROWS_AS(checked_endpoint(wrong, "X"), Error);
}

}  // namespace
}  // namespace sconce::server::registry
