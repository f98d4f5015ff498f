#include "server/registry/remote/remote_access.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

using Variables = std::map<std::string, std::string>;

RemoteAccess access_of(const Variables& variables) {
  return read_remote_access(Environment([variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }));
}

std::string signature(const std::string& url, const RemoteAccess& access) {
  RemoteRequest request = request_for(parse_remote_url(url), access);
  request = request.signer->sign(request);
  return request.fields.empty() ? "" : request.fields.back();
}

bool signs_with(const std::string& key, const std::string& region, const RemoteAccess& access) {
  const std::string signed_by = signature("s3://models/x.pt2", access);
  return signed_by.find("Credential=" + key + "/") != std::string::npos &&
         signed_by.find("/" + region + "/s3/") != std::string::npos;
}

TEST_CASE("credentials come from the environment, else from the files of other programs") {
  const TempFolder home;
  std::filesystem::create_directories(home.path() / ".aws");
  std::filesystem::create_directories(home.path() / ".cache/huggingface");
  std::ofstream(home.path() / ".aws/credentials")
      << "[default]\naws_access_key_id = K\naws_secret_access_key = S\n"
         "[work]\naws_access_key_id = WK\naws_secret_access_key = WS\naws_session_token = WT\n";
  std::ofstream(home.path() / ".aws/config") << "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-north-1\n";
  std::ofstream(home.path() / ".cache/huggingface/token") << "hf_token\n";
  Variables variables = {{"HOME", home.path().native()}, {"AWS_EC2_METADATA_DISABLED", "true"}};
  RemoteAccess access = access_of(variables);
  CHECK(signs_with("K", "eu-west-1", access));
  CHECK(access.hub_token() == "hf_token");
  CHECK(signature("gs://models/x.pt2", access).empty());
  variables["AWS_PROFILE"] = "work";
  CHECK(signs_with("WK", "eu-north-1", access_of(variables)));
  variables["AWS_ACCESS_KEY_ID"] = "E";
  variables["AWS_SECRET_ACCESS_KEY"] = "ES";
  variables["HF_TOKEN"] = "mine";
  access = access_of(variables);
  CHECK(signs_with("E", "eu-north-1", access));
  CHECK(access.hub_token() == "mine");
}

TEST_CASE("nothing in the environment can add to a request's head") {
  CHECK_THROWS_AS(access_of({{"HF_TOKEN", "a\r\nHost: b"}}), Error);
  CHECK_THROWS_AS(access_of({{"AWS_REGION", "a/../b"}}), Error);
  const RemoteAccess split = access_of({{"AWS_ACCESS_KEY_ID", "a\r\nb"}, {"AWS_SECRET_ACCESS_KEY", "S"}});
  CHECK_THROWS_AS(signature("s3://models/x.pt2", split), Error);
  CHECK_THROWS_AS(access_of({{"HF_ENDPOINT", "ftp://x"}}), Error);
  CHECK_THROWS_AS(access_of({{"AWS_ENDPOINT_URL", "https://user@x"}}), Error);
}

TEST_CASE("requests are those of each service") {
  RemoteAccess access = access_of({{"AWS_EC2_METADATA_DISABLED", "true"}});
  CHECK(request_for(parse_remote_url("s3://models/a b.pt2"), access).url ==
        "https://models.s3.us-east-1.amazonaws.com/a%20b.pt2");
  CHECK(request_for(parse_remote_url("s3://my.models/x.pt2"), access).url ==
        "https://s3.us-east-1.amazonaws.com/my.models/x.pt2");
  CHECK(request_for(parse_remote_url("gs://models/x.pt2"), access).url ==
        "https://storage.googleapis.com/models/x.pt2");
  CHECK(request_for(parse_remote_url("hf://org/repo@v1/x.pt2"), access).url ==
        "https://huggingface.co/org/repo/resolve/v1/x.pt2");
  CHECK(request_for(parse_remote_url("hf://org/repo@refs/pr/1/x.pt2"), access).url ==
        "https://huggingface.co/org/repo/resolve/refs%2Fpr%2F1/x.pt2");
  CHECK(signature("s3://models/x.pt2", access).empty());
  access = access_of({{"AWS_ACCESS_KEY_ID", "K"},
                      {"AWS_SECRET_ACCESS_KEY", "S"},
                      {"AWS_SESSION_TOKEN", "T"},
                      {"AWS_ENDPOINT_URL", "http://minio:9000/"},
                      {"HF_TOKEN", "H"}});
  const RemoteRequest page = listing_request(parse_remote_url("s3://models/pre fix"), "pre fix/", access, "to+ken");
  CHECK(page.url ==
        "http://minio:9000/models/?continuation-token=to%2Bken&encoding-type=url&list-type=2&prefix=pre%20fix%2F");
  const std::vector<std::string> fields = page.signer->sign(page).fields;
  CHECK(fields.front() == "host: minio:9000");
  CHECK(std::count(fields.begin(), fields.end(), "x-amz-security-token: T") == 1);
  const RemoteRequest tree = tree_request(parse_remote_url("hf://org/repo/sub"), access);
  CHECK(tree.url == "https://huggingface.co/api/models/org/repo/tree/main/sub?recursive=true");
  CHECK(tree.fields.front() == "Authorization: Bearer H");
}

}  // namespace
}  // namespace sconce::server::registry
