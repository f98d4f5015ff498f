#include "server/http/router.h"

#include <doctest/doctest.h>

#include <string>

#include "sconce/error.h"

using namespace sconce;
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
  CHECK(path_of("/v2/") == "/v2/");
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

TEST_CASE("router: every route of the public listener") {
  const auto at = [](std::string_view path, Method method = Method::kGet) { return find_route(path, method, kPublic); };
  CHECK(at("/").action == Action::kPage);
  CHECK(at("/v2").action == Action::kServerMetadata);
  CHECK(at("/v2/health/live").action == Action::kLive);
  CHECK(at("/v2/health/ready").action == Action::kReady);
  CHECK(at("/v2/models/stats").action == Action::kStatistics);
  CHECK(at("/v2/models/m").action == Action::kModelMetadata);
  CHECK(at("/v2/models/m").model == "m");
  CHECK(at("/v2/models/m/versions/12/config").action == Action::kModelConfig);
  CHECK(at("/v2/models/m/versions/12/config").version == "12");
  CHECK(at("/v2/models/m.x/versions/3/stats").model == "m.x");
  CHECK(at("/v2/models/m/infer", Method::kPost).action == Action::kInfer);
  CHECK(at("/v2/models/m/infer", Method::kPost).version.empty());
  CHECK(at("/v2/repository/index", Method::kPost).action == Action::kRepositoryIndex);
  CHECK(at("/v2/repository/models/m/load", Method::kPost).action == Action::kModelLoad);
  CHECK(at("/v2/repository/models/m/unload", Method::kPost).action == Action::kModelUnload);
  CHECK(at("/v2/repository/models/m/unload", Method::kPost).model == "m");
  CHECK(at("/v2/repository/models/m/unload", Method::kPost).control);
  CHECK_FALSE(at("/v2/repository/index", Method::kPost).control);
  CHECK(at("/v1/models/m:call", Method::kPost).action == Action::kCall);
  CHECK(at("/v1/models/m:call", Method::kPost).model == "m");
  CHECK(at("/v1/models/m:predict", Method::kPost).action == Action::kPredict);
  CHECK(at("/v1/models/m").action == Action::kModelStatus);
  CHECK(at("/v2/models/m/versions/3/generate", Method::kPost).version == "3");
  CHECK(at("/v2/systemsharedmemory/region/r/status").region == "r");
  CHECK(at("/v2/trace/setting").control);
  const RouteMatch call = at("/v1/models/m/versions/7:call", Method::kPost);
  CHECK(call.action == Action::kCall);
  CHECK(call.version == "7");
}

TEST_CASE("router: unknown paths, wrong methods, other listeners") {
  for (const char* path :
       {"/v2/", "/v3", "/v2/health", "/v2/models", "/v2/models/m/versions/x", "/v2/models/m/versions",
        "/v2/models/m/infer/x", "/v1/models/:call", "/v1/models/a:b:call", "/v1/models/m/versions/v7:call",
        "/v1/models/m/versions/:call", "/metrics", "/V2", "/v2/models//infer"}) {
    CAPTURE(std::string(path));
    CHECK(find_route(path, Method::kGet, kPublic).result == Result::kNotFound);
    CHECK(find_route(path, Method::kPost, kPublic).result == Result::kNotFound);
  }
  RouteMatch wrong = find_route("/v2/models/m/infer", Method::kGet, kPublic);
  CHECK(wrong.result == Result::kMethodNotAllowed);
  CHECK(wrong.allow == "Allow: POST\r\n");
  wrong = find_route("/v2/health/live", Method::kOther, kPublic);
  CHECK(wrong.result == Result::kMethodNotAllowed);
  CHECK(wrong.allow == "Allow: GET, HEAD\r\n");
  CHECK(find_route("/metrics", Method::kGet, kMetrics).action == Action::kMetricsText);
  CHECK(find_route("/v2/models/m/infer", Method::kPost, kMetrics).result == Result::kNotFound);
  CHECK(find_route("/v2/models/m/infer", Method::kPost, kAdmin).result == Result::kNotFound);
  CHECK(find_route("/v2/health/ready", Method::kGet, kAdmin).result == Result::kFound);
}

TEST_CASE("router: administration, on its own listener only") {
  struct Row {
    Method method;
    const char* tail;
    Action action;
  };
  constexpr Row kRows[] = {{Method::kGet, "/constants", Action::kConstants},
                           {Method::kGet, "/weights", Action::kWeights},
                           {Method::kPost, "/weights", Action::kStageWeights},
                           {Method::kPost, "/weights/commit", Action::kCommitWeights},
                           {Method::kPost, "/weights/abort", Action::kAbortWeights},
                           {Method::kPost, "/weights/rollback", Action::kRollbackWeights},
                           {Method::kPost, "/weights/release", Action::kReleaseWeights},
                           {Method::kGet, "/replicas", Action::kReplicas},
                           {Method::kPost, "/replicas", Action::kAddReplicas},
                           {Method::kDelete, "/replicas", Action::kRemoveReplica},
                           {Method::kDelete, "/replicas/12", Action::kRemoveReplica}};
  for (const Row& row : kRows) {
    for (const std::string start : {"/v2/admin/models/m", "/v2/admin/models/m/versions/3"}) {
      const std::string path = start + row.tail;
      CAPTURE(path);
      const RouteMatch match = find_route(path, row.method, kAdmin);
      REQUIRE(match.result == Result::kFound);
      CHECK(match.action == row.action);
      CHECK(match.model == "m");
      CHECK(match.version == (start.size() > 20 ? "3" : ""));
      CHECK(match.number == (path.ends_with("12") ? "12" : ""));
      CHECK(find_route(path, row.method, kPublic).result == Result::kNotFound);
      CHECK(find_route(path, row.method, kMetrics).result == Result::kNotFound);
    }
  }
  CHECK(find_route("/v2/admin/operations", Method::kGet, kAdmin).action == Action::kOperations);
  CHECK(find_route("/v2/admin/operations/7", Method::kGet, kAdmin).number == "7");
  CHECK(find_route("/v2/admin/operations/7", Method::kDelete, kAdmin).action == Action::kCancelOperation);
  CHECK(find_route("/v2/admin/operations/x", Method::kGet, kAdmin).result == Result::kNotFound);
  CHECK(find_route("/v2/admin/models/m/weights", Method::kDelete, kAdmin).allow == "Allow: GET, HEAD, POST\r\n");
  CHECK(find_route("/v2/admin/models/m/replicas", Method::kOther, kAdmin).allow ==
        "Allow: GET, HEAD, POST, DELETE\r\n");
}

TEST_CASE("router: query parameters") {
  CHECK(query_value("tensors=base64", "tensors") == "base64");
  CHECK(query_value("a=1&tensors=base64&tensors=x", "tensors") == "base64");
  CHECK(query_value("tensors", "tensors").empty());
  CHECK(query_value("xtensors=1", "tensors").empty());
  CHECK(query_value("", "tensors").empty());
  CHECK(query_value("&&=", "tensors").empty());
}
