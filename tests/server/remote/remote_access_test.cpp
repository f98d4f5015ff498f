#include "server/remote/remote_access.h"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <string>

#include "sconce/error.h"
#include "tests/files.h"

namespace sconce::server {
namespace {

using Variables = std::map<std::string, std::string>;

RemoteAccess access_of(const Variables& variables) {
  return read_remote_access([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("a section of an INI file is read") {
  const std::string text = "# c\r\n[default]\r\naws_access_key_id = A\r\n\r\n[ other ]\nname=1 = 2\n; name = 3\n";
  CHECK(ini_value(text, "default", "aws_access_key_id") == "A");
  CHECK(ini_value(text, "other", "name") == "1 = 2");
  CHECK(ini_value(text, "default", "name").empty());
  CHECK(ini_value("name = 1\n", "default", "name").empty());
  CHECK(ini_value("[default\nname = 1", "default", "name").empty());
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
  Variables variables = {{"HOME", home.path().native()}};
  RemoteAccess access = access_of(variables);
  CHECK(access.s3.key == "K");
  CHECK(access.s3.secret == "S");
  CHECK(access.s3.region == "eu-west-1");
  CHECK(access.hub_token == "hf_token");
  CHECK(access.gs.key.empty());
  variables["AWS_PROFILE"] = "work";
  access = access_of(variables);
  CHECK(access.s3.key == "WK");
  CHECK(access.s3.session == "WT");
  CHECK(access.s3.region == "eu-north-1");
  variables["AWS_ACCESS_KEY_ID"] = "E";
  variables["AWS_SECRET_ACCESS_KEY"] = "ES";
  variables["HF_TOKEN"] = "mine";
  access = access_of(variables);
  CHECK(access.s3.key == "E");
  CHECK(access.s3.session.empty());
  CHECK(access.hub_token == "mine");
}

TEST_CASE("nothing in the environment can add to a request's head") {
  CHECK_THROWS_AS(access_of({{"HF_TOKEN", "a\r\nHost: b"}}), Error);
  CHECK_THROWS_AS(access_of({{"AWS_REGION", "a/../b"}}), Error);
  CHECK_THROWS_AS(access_of({{"HF_ENDPOINT", "ftp://x"}}), Error);
  CHECK_THROWS_AS(access_of({{"AWS_ENDPOINT_URL", "https://user@x"}}), Error);
}

TEST_CASE("requests are those of each service") {
  RemoteAccess access = access_of({});
  CHECK(request_for(parse_remote_url("s3://models/a b.pt2"), access).url ==
        "https://models.s3.us-east-1.amazonaws.com/a%20b.pt2");
  CHECK(request_for(parse_remote_url("s3://my.models/x.pt2"), access).url ==
        "https://s3.us-east-1.amazonaws.com/my.models/x.pt2");
  CHECK(request_for(parse_remote_url("gs://models/x.pt2"), access).url ==
        "https://storage.googleapis.com/models/x.pt2");
  CHECK(request_for(parse_remote_url("hf://org/repo@v1/x.pt2"), access).url ==
        "https://huggingface.co/org/repo/resolve/v1/x.pt2");
  CHECK(request_for(parse_remote_url("s3://models/x.pt2"), access).signature.empty());
  access = access_of({{"AWS_ACCESS_KEY_ID", "K"},
                      {"AWS_SECRET_ACCESS_KEY", "S"},
                      {"AWS_SESSION_TOKEN", "T"},
                      {"AWS_ENDPOINT_URL", "http://minio:9000/"},
                      {"HF_TOKEN", "H"}});
  const RemoteRequest signed_one = listing_request(parse_remote_url("s3://models/pre fix"), access, "to+ken");
  CHECK(signed_one.url == "http://minio:9000/models/?continuation-token=to%2Bken&list-type=2&prefix=pre%20fix%2F");
  CHECK(signed_one.signature == "aws:amz:us-east-1:s3");
  CHECK(signed_one.user == "K:S");
  CHECK(signed_one.fields.front() == "Host: minio:9000");
  CHECK(signed_one.fields.back() == "x-amz-security-token: T");
  const RemoteRequest tree = tree_request(parse_remote_url("hf://org/repo/sub"), access);
  CHECK(tree.url == "https://huggingface.co/api/models/org/repo/tree/main/sub?recursive=true");
  CHECK(tree.fields.front() == "Authorization: Bearer H");
}

}  // namespace
}  // namespace sconce::server
