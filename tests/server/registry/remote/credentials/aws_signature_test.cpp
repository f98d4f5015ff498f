#include "server/registry/remote/credentials/aws_signature.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace sconce::server::registry {
namespace {

// From Amazon's documentation of the signature in the Authorization header: "GET Bucket (List Objects)".
TEST_CASE("a signature is that of Amazon's own example") {
  const auto time = parse_iso_time("2013-05-24T00:00:00Z");
  REQUIRE(time);
  RemoteRequest request;
  request.url = "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J";
  sign_for_aws(request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""}, "us-east-1", "s3",
               *time);
  CHECK(request.fields.back() ==
        "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("a session's token is signed, and a body changes the signature") {
  const auto time = *parse_iso_time("2013-05-24T00:00:00Z");
  RemoteRequest request, other;
  request.url = other.url = "http://sts:9000";
  other.body = "Action=AssumeRole";
  sign_for_aws(request, {"K", "S", "T"}, "eu-west-1", "sts", time);
  sign_for_aws(other, {"K", "S", "T"}, "eu-west-1", "sts", time);
  CHECK(std::count(request.fields.begin(), request.fields.end(), "x-amz-security-token: T") == 1);
  CHECK(request.fields.front() == "host: sts:9000");
  CHECK(request.fields.back() != other.fields.back());
}

TEST_CASE("times of heads and of documents are read") {
  const auto time = std::chrono::sys_days(std::chrono::year(2026) / 11 / 29) + std::chrono::hours(14) +
                    std::chrono::minutes(56) + std::chrono::seconds(43);
  CHECK(parse_http_date("Sun, 29 Nov 2026 14:56:43 GMT") == time);
  for (const char* wrong : {"", "Sun, 29 Nov 2026 14:56:43", "Sun, 29 Nox 2026 14:56:43 GMT",
                            "Sun, 31 Feb 2026 14:56:43 GMT", "Sun, 29 Nov 2026 25:56:43 GMT"})
    CHECK_FALSE(parse_http_date(wrong));
  CHECK(parse_iso_time("2026-11-29T14:56:43Z") == time);
  CHECK(parse_iso_time("2026-11-29T14:56:43.123456Z") == time);
  CHECK(parse_iso_time("2026-11-29T14:56:43+00:00") == time);
  CHECK(parse_iso_time("2026-11-29T16:56:43+0200") == time);
  for (const char* wrong : {"", "2026-11-29", "2026-13-29T14:56:43Z", "2026-11-29T14:56:43x"})
    CHECK_FALSE(parse_iso_time(wrong));
}

}  // namespace
}  // namespace sconce::server::registry
