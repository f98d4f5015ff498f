#include "server/registry/remote/transfer/store_error.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace sconce::server::registry {
namespace {

using Fields = std::map<std::string, std::string>;

TEST_CASE("a store's own code, message and region are read") {
  const StoreError s3 = parse_store_error(
      "<?xml version=\"1.0\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code><Message>expecting &apos;eu&apos; &lt;"
      "</Message><Region>eu-west-1</Region></Error>",
      {});
  CHECK(s3.code == "AuthorizationHeaderMalformed");
  CHECK(s3.message == "expecting 'eu' <");
  CHECK(s3.region == "eu-west-1");
  CHECK(remedy_for(s3) == "set AWS_REGION to the bucket's region, eu-west-1");
  CHECK(parse_store_error("", {{"x-amz-bucket-region", "eu-north-1"}}).region == "eu-north-1");
  const StoreError hub =
      parse_store_error("{\"error\":\"Access to it is restricted\"}", {{"x-error-code", "GatedRepo"}});
  CHECK(hub.code == "GatedRepo");
  CHECK(hub.message == "Access to it is restricted");
  const StoreError google = parse_store_error(R"({"error": {"code": 403, "message": "no", "status": "DENIED"}})", {});
  CHECK(google.code == "DENIED");
  CHECK(google.message == "no");
  const StoreError oauth = parse_store_error(R"({"error": "invalid_grant", "error_description": "expired"})", {});
  CHECK(oauth.code == "invalid_grant");
  CHECK(oauth.message == "expired");
}

TEST_CASE("whatever a server sends, an error stays short, and a region a region") {
  CHECK(parse_store_error("<Code>" + std::string(100'000, 'x') + "</Code>", {}).empty());
  CHECK(parse_store_error("<Code>" + std::string(5000, 'x') + "</Code>", {}).code.size() < 200);
  CHECK(parse_store_error("<Code><Code></Code>", {}).code.empty());
  CHECK(parse_store_error("<Code>", {}).empty());
  CHECK(parse_store_error("{\"error\":", {}).empty());
  CHECK(parse_store_error("{\"error\":[1]}", {}).empty());
  CHECK(parse_store_error("", {{"x-amz-bucket-region", "a/../b"}}).region.empty());
  CHECK(parse_store_error("", {{"x-amz-bucket-region", std::string(50, 'a')}}).region.empty());
  CHECK(parse_store_error("<Region>evil.example#</Region>", {}).region.empty());
}

}  // namespace
}  // namespace sconce::server::registry
