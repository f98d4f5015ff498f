#include "server/registry/remote/remote_url.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sconce/error.h"
#include "server/support/config.h"
#include "tests/files.h"

namespace sconce::server::registry {
namespace {

TEST_CASE("every form of an address is in the settings and in the documentation") {
  const std::string settings = annotated_configuration(), page = content_of(source_path("docs/remote.md"));
  std::string one_line = settings;
  for (size_t at = 0; (at = one_line.find("\n# ", at)) != std::string::npos;) one_line.replace(at, 3, " ");
  std::string refusal;
  try {
    parse_remote_url("ftp://host/x");
  } catch (const Error& error) {
    refusal = error.what();
  }
  for (const std::string_view form : kRemoteForms) {
    CAPTURE(form);
    CHECK(one_line.find(form) != std::string::npos);
    CHECK(page.find("| `" + std::string(form) + "` |") != std::string::npos);
    CHECK(refusal.find(form.substr(0, form.find('/') + 2)) != std::string::npos);
  }
}

TEST_CASE("an address is taken apart") {
  const RemoteUrl s3 = parse_remote_url("s3://models/a b/digits.pt2");
  CHECK(s3.scheme == RemoteScheme::kS3);
  CHECK(s3.origin == "models");
  CHECK(s3.path == "a b/digits.pt2");
  CHECK(s3.is_package());
  CHECK(s3.file() == "digits.pt2");
  CHECK(s3.beside(".sig").shown() == "s3://models/a b/digits.pt2.sig");
  CHECK_FALSE(parse_remote_url("gs://models/prefix/").is_package());
  CHECK(parse_remote_url("gs://models").path.empty());

  const RemoteUrl hub = parse_remote_url("hf://org/repo@v1.0/sub/x.pt2");
  CHECK(hub.origin == "org/repo");
  CHECK(hub.revision == "v1.0");
  CHECK(hub.path == "sub/x.pt2");
  CHECK(parse_remote_url("hf://org/repo/x.pt2").revision == "main");
  CHECK(parse_remote_url("hf://org/repo").path.empty());

  const RemoteUrl web = parse_remote_url("https://host:8443/a%20b.pt2?token=secret");
  CHECK(web.origin == "https://host:8443");
  CHECK(web.file() == "a b.pt2");
  CHECK(web.shown() == "https://host:8443/a%20b.pt2");
  CHECK(web.key() == "https://host:8443/a%20b.pt2?token=secret");
  CHECK(parse_remote_url("https://[::1]:1/x").origin == "https://[::1]:1");
  CHECK(parse_remote_url("http://127.0.0.1:1/x.pt2").origin == "http://127.0.0.1:1");
}

TEST_CASE("a container of Azure has two forms") {
  for (const char* text : {"az://acct/models/a b/x.pt2", "https://acct.blob.core.windows.net/models/a%20b/x.pt2"}) {
    CAPTURE(text);
    const RemoteUrl url = parse_remote_url(text);
    CHECK(url.scheme == RemoteScheme::kAzure);
    CHECK(url.origin == "acct/models");
    CHECK(url.path == "a b/x.pt2");
    CHECK(url.shown() == "az://acct/models/a b/x.pt2");
  }
  CHECK(parse_remote_url("az://acct/models").path.empty());
  CHECK(parse_remote_url("https://acct.blob.core.windows.net/models/x.pt2?sig=s").scheme == RemoteScheme::kHttps);
  for (const char* wrong : {"az://", "az://acct", "az://Acct/models", "az://a/models", "az://acct/models/../x",
                            "az://acct/-/x", "https://a-b.blob.core.windows.net/models/x"})
    CHECK_THROWS_AS(parse_remote_url(wrong), Error);
}

TEST_CASE("a hub's revision may have slashes") {
  const auto check = [](const std::string& text, const std::string& revision, const std::string& path) {
    CAPTURE(text);
    const RemoteUrl url = parse_remote_url(text);
    CHECK(url.revision == revision);
    CHECK(url.path == path);
    const RemoteUrl again = parse_remote_url(url.shown());
    CHECK(again.revision == revision);
    CHECK(again.path == path);
  };
  check("hf://org/m@refs/pr/1/m.pt2", "refs/pr/1", "m.pt2");
  check("hf://org/m@refs/pr/12", "refs/pr/12", "");
  check("hf://org/m@refs%2Fpr%2F1/a/m.pt2", "refs/pr/1", "a/m.pt2");
  check("hf://org/m@refs/convert/parquet/m.pt2", "refs/convert/parquet", "m.pt2");
  check("hf://org/m@feature%2Fx/m.pt2", "feature/x", "m.pt2");
  check("hf://org/m@refs/heads/m.pt2", "refs", "heads/m.pt2");
  check("hf://org/m@refs/pr/x/m.pt2", "refs", "pr/x/m.pt2");
}

TEST_CASE("a hostile or wrong address is refused") {
  const std::vector<std::string> wrong = {"",
                                          "s3:",
                                          "s3:/b/k",
                                          "s3://",
                                          "s3://B/k",
                                          "s3://b/k",
                                          "s3://bucket/../k",
                                          "s3://bucket//k",
                                          "s3://bucket/a/./k",
                                          "s3://bucket/.hidden",
                                          "s3://-bucket/k",
                                          "s3://bu..cket/k",
                                          std::string("s3://bucket/a\nb"),
                                          std::string("s3://bucket/a\0b", 15),
                                          "s3://bucket/" + std::string(3000, 'a'),
                                          "s3://bucket/" + std::string(256, 'a'),
                                          "hf://org",
                                          "hf://org/",
                                          "hf://org/repo@",
                                          "hf://org/repo@a b/x",
                                          "hf://org/repo@../x",
                                          "hf://org/repo@..%2F..%2Fx/y",
                                          "hf://org/repo@a%2F%2Fb/y",
                                          "hf://org/repo@a%0Ab/y",
                                          "hf://org/repo@%2/y",
                                          "hf://../repo/x",
                                          "hf://org/repo/../x",
                                          "https://",
                                          "https://host",
                                          "https://host/",
                                          "https://user:secret@host/x.pt2",
                                          "https://host:0/x",
                                          "https://host:65536/x",
                                          "https://host:/x",
                                          "https://host:1a/x",
                                          "https://[::1/x",
                                          "https://[]/x",
                                          "https://host/a b",
                                          "https://host/x#f",
                                          "https://host/%2e%2e/x",
                                          "https://host/a/..%2fx",
                                          "https://host/%00",
                                          "https://host/%zz",
                                          "http://host/x.pt2",
                                          "http://127.0.0.1.evil.example/x",
                                          "http://localhost@evil.example/x",
                                          "http://evil.example/x?http://127.0.0.1/",
                                          "ftp://host/x",
                                          "file:///etc/passwd",
                                          "HTTPS://host/x"};
  for (const std::string& text : wrong) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_remote_url(text), Error);
  }
}

TEST_CASE("a refusal does not repeat a query, which may hold a secret") {
  std::string said;
  try {
    parse_remote_url("https://host/a b?secret=1");
  } catch (const Error& error) {
    said = error.what();
  }
  CHECK(said.find("host/a b") != std::string::npos);
  CHECK(said.find("secret") == std::string::npos);
}

}  // namespace
}  // namespace sconce::server::registry
