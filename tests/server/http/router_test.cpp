#include "server/http/router.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

namespace sconce::server::http {

using Result = RouteMatch::Result;

namespace {

std::string path_of(std::string_view target) {
  try {
    return canonical_target(target).path;
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kInvalidArgument);
    return "error";
  }
}

}  // namespace

TEST_CASE("router: canonical targets") {
  CHECK(path_of("/v2/models/m/infer") == "/v2/models/m/infer");
  CHECK(path_of("/") == "/");
  CHECK(path_of("/v2?x=1") == "/v2");
  CHECK(path_of("/v2/models/my%20model") == "/v2/models/my model");
  CHECK(path_of("http://host:8000/v2/health/live?x") == "/v2/health/live");
  CHECK(path_of("http://host") == "/");
  CHECK(path_of("/v2/") == "/v2");     // clients and gateways add a slash
  CHECK(path_of("/a%25b") == "/a%b");  // decoded once
  CHECK(canonical_target("/a/ARGS[0]_1/b?c").path == "/a/ARGS[0]_1/b");
  CHECK(canonical_target("/a/ARGS[0]_1/b?c").query == "c");
  CHECK(canonical_target("/v1/models/m:call?tensors=base64&x=%2f").query == "tensors=base64&x=%2f");
}

TEST_CASE("router: targets that could be read in two ways are refused") {
  for (const char* target : {"",
                             "*",
                             "host:80",
                             "v2",
                             "//v2",
                             "/v2//health/live",
                             "/v2/./health",
                             "/v2/../admin",
                             "/v2/..",
                             "/..",
                             "/v2/%2e%2e/x",
                             "/v2%2fhealth",
                             "/%2F",
                             "/v2/a%00b",
                             "/v2/a%0ab",
                             "/v2/a%7f",
                             "/v2/a%5cb",
                             "/v2/a\\b",
                             "/v2/a b",
                             "/v2/%",
                             "/v2/%4",
                             "/v2/%zz",
                             "http://host/a%2fb",
                             "http://host//a",
                             "/a#b",
                             "/\x80"}) {
    CAPTURE(std::string(target));
    CHECK(path_of(target) == "error");
  }
}

namespace {

constexpr RoutePattern kPatterns[] = {
    {Method::kGet, "/", kPublic | kAdmin, 0},
    {Method::kGet, "/models/stats", kPublic, 1},
    {Method::kGet, "/models/{model}", kPublic, 2},
    {Method::kDelete, "/models/{model}", kPublic, 3},
    {Method::kPost, "/models/{model}/versions/{version}:call", kPublic, 4},
    {Method::kPost, "/models/{model}:call", kPublic, 4},
    {Method::kGet, "/regions/{region}/parts/{number}", kAdmin, 5},
    {Method::kGet, "/page/{file}", kAdmin, 6},
};

RouteMatch find(std::string_view path, Method method = Method::kGet, Listeners listener = kPublic) {
  return find_route(kPatterns, path, method, listener);
}

}  // namespace

TEST_CASE("router: patterns, of several that match the first") {
  CHECK(find("/").result == Result::kFound);
  CHECK(find("/").route == 0);
  CHECK(find("/models/stats").route == 1);
  CHECK(find("/models/stats").model.empty());
  CHECK(find("/models/state").route == 2);
  CHECK(find("/models/state").model == "state");
  CHECK(find("/models/stats", Method::kDelete).route == 3);
  CHECK(find("/models/stats", Method::kDelete).model == "stats");
  const RouteMatch call = find("/models/m/versions/7:call", Method::kPost);
  CHECK(call.route == 4);
  CHECK(call.model == "m");
  CHECK(call.version == "7");
  CHECK(find("/models/m:call", Method::kPost).model == "m");
  const RouteMatch part = find("/regions/r/parts/12", Method::kGet, kAdmin);
  CHECK(part.route == 5);
  CHECK(part.region == "r");
  CHECK(part.number == "12");
  CHECK(part.listener == kAdmin);
  CHECK(find("/page/icon.svg", Method::kGet, kAdmin).file == "icon.svg");
  CHECK(find("/page/", Method::kGet, kAdmin).result == Result::kNotFound);
}

TEST_CASE("router: a segment that is written like a variable is a name as any other") {
  CHECK(find("/models/{model}").model == "{model}");
  CHECK(find("/models/{model}:call", Method::kPost).model == "{model}");
  CHECK(find("/regions/{region}/parts/12", Method::kGet, kAdmin).region == "{region}");
  CHECK(find("/regions/r/parts/{number}", Method::kGet, kAdmin).result == Result::kNotFound);
}

TEST_CASE("router: what no pattern matches") {
  for (const char* path : {"/models", "/models/", "/models/m/", "/models/a:b:call", "/models/:call", "/model/stats",
                           "/models/m/versions/v@7:call", "/models/m/versions/:call", "/regions/r/parts/12"}) {
    CAPTURE(std::string(path));
    CHECK(find(path).result == Result::kNotFound);
    CHECK(find(path, Method::kPost).result == Result::kNotFound);
  }
  CHECK(find("/models/m", Method::kGet, kAdmin).result == Result::kNotFound);
}

TEST_CASE("router: dots before a verb or beside a set are no name") {
  for (const char* path : {"/models/..:call", "/models/.:call", "/models/m/versions/..:call", "/models/..@blue:call",
                           "/models/m@..:call", "/models/m@.:call"}) {
    CAPTURE(std::string(path));
    CHECK(find(path, Method::kPost).result == Result::kNotFound);
  }
  CHECK(find("/models/...:call", Method::kPost).model == "...");
  CHECK(find("/models/..m@..b:call", Method::kPost).set == "..b");
}

TEST_CASE("router: what is allowed where the method is another") {
  CHECK(find("/models/m", Method::kPost).result == Result::kMethodNotAllowed);
  CHECK(find("/models/m", Method::kPost).allow == "Allow: GET, HEAD, DELETE\r\n");
  CHECK(find("/models/m:call").allow == "Allow: POST\r\n");
  CHECK(find("/", Method::kOther, kAdmin).allow == "Allow: GET, HEAD\r\n");
}

TEST_CASE("router: query parameters") {
  CHECK(query_value("tensors=base64", "tensors") == "base64");
  CHECK(query_value("a=1&tensors=base64&tensors=x", "tensors") == "base64");
  CHECK(query_value("tensors", "tensors").empty());
  CHECK(query_value("xtensors=1", "tensors").empty());
  CHECK(query_value("", "tensors").empty());
  CHECK(query_value("&&=", "tensors").empty());
}

}  // namespace sconce::server::http
