#include "server/registry/remote/credentials/s3_signer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "server/registry/remote/transfer/transfer.h"

namespace sconce::server::registry {
namespace {

class Fixed final : public CredentialProvider {
 public:
  std::string name() const override { return "the test"; }
  std::optional<IssuedCredentials> fetch() override {
    return IssuedCredentials{"K", "S" + std::to_string(++fetches_), ""};
  }

 private:
  int fetches_ = 0;
};

std::shared_ptr<S3Service> service(const std::string& endpoint) {
  return std::make_shared<S3Service>("us-east-1", endpoint,
                                     std::make_shared<CredentialCache>(std::make_unique<Fixed>()));
}

RemoteAnswer refusal(int status, const std::string& code, const std::string& region = "",
                     const std::string& signed_region = "us-east-1") {
  RemoteAnswer answer;
  answer.status = status;
  answer.error = {code, "", region};
  answer.signed_as.issue = 1;
  answer.signed_as.region = signed_region;
  return answer;
}

std::string authorization(const RemoteRequest& request) { return request.fields.back(); }

TEST_CASE("a bucket of another region is asked there, at its host, and others are not") {
  const auto amazon = service("");
  CHECK(amazon->url_of("my.models") == "https://s3.us-east-1.amazonaws.com/my.models");
  S3Signer signer(amazon, "models"), other(amazon, "other");
  RemoteRequest request;
  request.url = amazon->url_of("models") + "/a%20b.pt2";
  CHECK(signer.sign(request).url == "https://models.s3.us-east-1.amazonaws.com/a%20b.pt2");
  CHECK(signer.correct(refusal(301, "PermanentRedirect", "eu-west-1")));
  CHECK_FALSE(signer.correct(refusal(301, "PermanentRedirect", "eu-west-1", "eu-west-1")));
  const RemoteRequest moved = signer.sign(request);
  CHECK(moved.url == "https://models.s3.eu-west-1.amazonaws.com/a%20b.pt2");
  CHECK(authorization(moved).find("/eu-west-1/s3/aws4_request") != std::string::npos);
  CHECK(moved.fields.front() == "host: models.s3.eu-west-1.amazonaws.com");
  CHECK(amazon->url_of("other") == "https://other.s3.us-east-1.amazonaws.com");
  CHECK(service("")->url_of("models").find("us-east-1") != std::string::npos);
  amazon->learn_region("models", "cn-north-1");
  CHECK(amazon->url_of("models") == "https://models.s3.cn-north-1.amazonaws.com.cn");
}

TEST_CASE("at an endpoint of one's own the signature's region changes, and the host does not") {
  S3Signer signer(service("http://minio:9000"), "models");
  RemoteRequest request;
  request.url = "http://minio:9000/models/x.pt2";
  CHECK(signer.correct(refusal(400, "AuthorizationHeaderMalformed", "eu-west-1")));
  const RemoteRequest corrected = signer.sign(request);
  CHECK(corrected.url == request.url);
  CHECK(authorization(corrected).find("/eu-west-1/s3/") != std::string::npos);
}

TEST_CASE("a wrong clock is corrected by the store's, once") {
  S3Signer signer(service("http://minio:9000"), "models");
  RemoteRequest request;
  request.url = "http://minio:9000/models/x.pt2";
  RemoteAnswer skewed = refusal(403, "RequestTimeTooSkewed");
  CHECK_FALSE(signer.correct(skewed));  // it does not say its time
  skewed.fields["date"] = "Sun, 29 Nov 2020 14:56:43 GMT";
  CHECK(signer.correct(skewed));
  const RemoteRequest corrected = signer.sign(request);
  CHECK(authorization(corrected).find("/20201129/") != std::string::npos);
  skewed.signed_as = corrected.signed_as;
  CHECK_FALSE(signer.correct(skewed));
}

TEST_CASE("a refusal of what was signed before another thread learned better is worth another try") {
  const auto shared = service("http://minio:9000");
  S3Signer one(shared, "models"), other(shared, "models");
  RemoteRequest request;
  request.url = "http://minio:9000/models/x.pt2";
  const SignedAs first = one.sign(request).signed_as, second = other.sign(request).signed_as;
  const auto refused = [](const char* code, const char* region, const SignedAs& signed_as) {
    RemoteAnswer answer = refusal(403, code, region);
    answer.fields["date"] = "Sun, 29 Nov 2020 14:56:43 GMT";
    answer.signed_as = signed_as;
    return answer;
  };
  CHECK(one.correct(refused("AuthorizationHeaderMalformed", "eu-west-1", first)));
  CHECK(other.correct(refused("AuthorizationHeaderMalformed", "eu-west-1", second)));
  CHECK(one.correct(refused("RequestTimeTooSkewed", "", first)));
  CHECK(other.correct(refused("RequestTimeTooSkewed", "", second)));
}

TEST_CASE("expired credentials are fetched again, and others are not") {
  S3Signer signer(service("http://minio:9000"), "models");
  RemoteRequest request;
  request.url = "http://minio:9000/models/x.pt2";
  const RemoteRequest first = signer.sign(request);
  RemoteAnswer expired = refusal(400, "ExpiredToken");
  expired.signed_as = first.signed_as;
  CHECK_FALSE(signer.correct(refusal(403, "AccessDenied")));
  CHECK(signer.correct(expired));
  CHECK(signer.sign(request).signed_as.issue == first.signed_as.issue + 1);
}

TEST_CASE("without credentials nothing is signed") {
  const auto open = std::make_shared<S3Service>("us-east-1", "http://minio:9000", nullptr);
  S3Signer signer(open, "models");
  RemoteRequest request;
  request.url = "http://minio:9000/models/x.pt2";
  CHECK(signer.sign(request).fields.empty());
  CHECK(signer.correct(refusal(301, "", "eu-west-1")));
  CHECK_FALSE(signer.correct(refusal(400, "ExpiredToken")));
}

}  // namespace
}  // namespace sconce::server::registry
