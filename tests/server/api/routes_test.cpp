// The table of routes: which handler answers which path on which listener, and the token it needs.
#include "server/api/routes.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "server/api/openapi.h"
#include "server/rollout/sets_api.h"

namespace sconce::server::api {

using http::kAdmin;
using http::kPublic;
using http::Method;
using Result = http::RouteMatch::Result;

namespace {

template <class Kind>
const Kind* handler_of(const http::RouteMatch& match) {
  const Route* const route = found_route(match);
  return route != nullptr ? std::get_if<Kind>(&route->handler) : nullptr;
}

bool runs(const http::RouteMatch& match, AnswerOnIoThread& function) {
  const OnIoThread* const handler = handler_of<OnIoThread>(match);
  return handler != nullptr && handler->answer == &function;
}
bool runs(const http::RouteMatch& match, rollout::AdminText& function) {
  const OnAdminThread* const handler = handler_of<OnAdminThread>(match);
  return handler != nullptr && handler->text == &function && handler->starts == nullptr;
}
bool runs(const http::RouteMatch& match, rollout::AdminStart& function) {
  const OnAdminThread* const handler = handler_of<OnAdminThread>(match);
  return handler != nullptr && handler->starts == &function && handler->text == nullptr;
}
bool runs(const http::RouteMatch& match, OnControlThread::Work work) {
  const OnControlThread* const handler = handler_of<OnControlThread>(match);
  return handler != nullptr && handler->work == work;
}
bool runs(const http::RouteMatch& match, codecs::Inference::Form form) {
  const RunsModel* const handler = handler_of<RunsModel>(match);
  return handler != nullptr && handler->form == form;
}

}  // namespace

TEST_CASE("routes: those of the public listener") {
  const auto at = [](std::string_view path, Method method = Method::kGet) { return find_route(path, method, kPublic); };
  CHECK(runs(at("/"), answers::page));
  CHECK(runs(at("/page.css"), answers::page_style));
  CHECK(runs(at("/v2"), answers::server_metadata));
  CHECK(runs(at("/v2/health/live"), answers::live));
  CHECK(runs(at("/v2/health/ready"), answers::ready));
  CHECK(runs(at("/v2/models/stats"), answers::statistics));
  CHECK(runs(at("/v2/models/m"), answers::model_metadata));
  CHECK(at("/v2/models/m").model == "m");
  CHECK(runs(at("/v2/models/m/versions/12/config"), answers::model_config));
  CHECK(at("/v2/models/m/versions/12/config").version == "12");
  CHECK(at("/v2/models/m.x/versions/3/stats").model == "m.x");
  CHECK(runs(at("/v2/models/m/infer", Method::kPost), codecs::Inference::Form::kInfer));
  CHECK(at("/v2/models/m/infer", Method::kPost).version.empty());
  CHECK(runs(at("/v2/repository/index", Method::kPost), answers::repository_index));
  CHECK(runs(at("/v2/repository/models/m/load", Method::kPost), &registry::ModelLoader::load_model));
  CHECK(runs(at("/v2/repository/models/m/unload", Method::kPost), &registry::ModelLoader::unload_model));
  CHECK(at("/v2/repository/models/m/unload", Method::kPost).model == "m");
  CHECK(route_of(at("/v2/repository/models/m/unload", Method::kPost)).access == Access::kControl);
  CHECK(route_of(at("/v2/repository/index", Method::kPost)).access == Access::kReading);
  CHECK(runs(at("/v1/models/m:call", Method::kPost), codecs::Inference::Form::kCall));
  CHECK(at("/v1/models/m:call", Method::kPost).model == "m");
  CHECK(runs(at("/v1/models/m:predict", Method::kPost), codecs::Inference::Form::kPredict));
  CHECK(runs(at("/v1/models/m"), answers::model_status));
  CHECK(at("/v2/models/m/versions/3/generate", Method::kPost).version == "3");
  CHECK(at("/v2/systemsharedmemory/region/r/status").region == "r");
  CHECK(route_of(at("/v2/trace/setting")).access == Access::kControlReading);
  const http::RouteMatch call = at("/v1/models/m/versions/7:call", Method::kPost);
  CHECK(runs(call, codecs::Inference::Form::kCall));
  CHECK(call.version == "7");
}

TEST_CASE("routes: a set of weights after the model's name, and in a place of its own") {
  const auto at = [](const char* path, Method method = Method::kGet, http::Listeners listener = kPublic) {
    return find_route(path, method, listener);
  };
  const http::RouteMatch infer = at("/v2/models/m@tenant-a/versions/3/infer", Method::kPost);
  CHECK(runs(infer, codecs::Inference::Form::kInfer));
  CHECK(infer.model == "m");
  CHECK(infer.set == "tenant-a");
  CHECK(infer.version == "3");
  CHECK(takes_set(route_of(infer)));
  CHECK(at("/v1/models/m@s:predict", Method::kPost).set == "s");
  CHECK(at("/v2/models/m@a@b/infer", Method::kPost).set == "a@b");  // no set can have this name
  CHECK(at("/v2/models/m/infer", Method::kPost).set.empty());
  for (const char* path : {"/v2/models/@s/ready", "/v2/models/m@/ready"}) {
    CHECK(at(path).set.empty());
    CHECK(at(path).model.find('@') != std::string_view::npos);  // and no model can have this one
  }
  CHECK(takes_set(route_of(at("/v2/models/m@s/ready"))));
  CHECK_FALSE(takes_set(route_of(at("/v2/models/m@s/config"))));
  CHECK_FALSE(takes_set(route_of(at("/v2/repository/models/m@s/load", Method::kPost))));
  const http::RouteMatch promote = at("/v2/admin/models/m/sets/a.b/promote", Method::kPost, kAdmin);
  CHECK(runs(promote, rollout::admin::promote_set));
  CHECK(promote.set == "a.b");
  CHECK(runs(at("/v2/admin/models/m/sets/a", Method::kPost, kAdmin), rollout::admin::stage_weights));
  CHECK(runs(at("/v2/admin/models/m/routes", Method::kPut, kAdmin), rollout::admin::change_routes));
  CHECK(at("/v2/admin/models/m/routes", Method::kPost, kAdmin).allow == "Allow: GET, HEAD, PUT\r\n");
  CHECK(at("/v2/admin/models/m@x/sets/a", Method::kGet, kAdmin).result == Result::kNotFound);
}

TEST_CASE("routes: unknown paths, wrong methods, other listeners") {
  for (const char* path :
       {"/v2//", "/v3", "/v2/health", "/v2/models/m/versions/x@1", "/v2/models/m/versions", "/v2/models/m/infer/x",
        "/v1/models/:call", "/v1/models/a:b:call", "/v1/models/m/versions/v@7:call", "/v1/models/m/versions/:call",
        "/metrics", "/V2", "/v2/models//infer"}) {
    CAPTURE(std::string(path));
    CHECK(find_route(path, Method::kGet, kPublic).result == Result::kNotFound);
    CHECK(find_route(path, Method::kPost, kPublic).result == Result::kNotFound);
  }
  http::RouteMatch wrong = find_route("/v2/models/m/infer", Method::kGet, kPublic);
  CHECK(wrong.result == Result::kMethodNotAllowed);
  CHECK(wrong.allow == "Allow: POST\r\n");
  wrong = find_route("/v2/health/live", Method::kOther, kPublic);
  CHECK(wrong.result == Result::kMethodNotAllowed);
  CHECK(wrong.allow == "Allow: GET, HEAD\r\n");
  CHECK(runs(find_route("/metrics", Method::kGet, http::kMetrics), answers::metrics_text));
  CHECK(find_route("/v2/models/m/infer", Method::kPost, http::kMetrics).result == Result::kNotFound);
  CHECK(runs(find_route("/v2/models/m/infer", Method::kPost, kAdmin), codecs::Inference::Form::kInfer));
  CHECK(runs(find_route("/v1/models/m:call", Method::kPost, kAdmin), codecs::Inference::Form::kCall));
  CHECK(find_route("/v1/models/m:predict", Method::kPost, kAdmin).result == Result::kNotFound);
  CHECK(find_route("/v2/health/ready", Method::kGet, kAdmin).result == Result::kFound);
}

TEST_CASE("routes: administration, on its own listener only") {
  struct Row {
    Method method;
    const char* tail;
    rollout::AdminText* text;  // null: the one that starts its thread itself
  };
  constexpr Row kRows[] = {{Method::kGet, "/constants", rollout::admin::constants},
                           {Method::kGet, "/weights", rollout::admin::weights},
                           {Method::kPost, "/weights", nullptr},
                           {Method::kPost, "/weights/commit", rollout::admin::commit_weights},
                           {Method::kPost, "/weights/abort", rollout::admin::abort_weights},
                           {Method::kPost, "/weights/rollback", rollout::admin::rollback_weights},
                           {Method::kPost, "/weights/set-version", rollout::admin::set_weight_version},
                           {Method::kPost, "/weights/renew", rollout::admin::renew_push},
                           {Method::kPost, "/sets/t/set-version", rollout::admin::set_version_of_set},
                           {Method::kPost, "/weights/renumber", rollout::admin::set_weight_version},  // deprecated
                           {Method::kPost, "/weights/prolong", rollout::admin::renew_push},           // deprecated
                           {Method::kPost, "/sets/t/renumber", rollout::admin::set_version_of_set},   // deprecated
                           {Method::kPost, "/weights/release", rollout::admin::release_weights},
                           {Method::kGet, "/replicas", rollout::admin::replicas},
                           {Method::kPost, "/replicas", rollout::admin::add_replicas},
                           {Method::kDelete, "/replicas", rollout::admin::remove_replica},
                           {Method::kDelete, "/replicas/12", rollout::admin::remove_replica}};
  for (const Row& row : kRows) {
    for (const std::string start : {"/v2/admin/models/m", "/v2/admin/models/m/versions/3"}) {
      const std::string path = start + row.tail;
      CAPTURE(path);
      const http::RouteMatch match = find_route(path, row.method, kAdmin);
      REQUIRE(match.result == Result::kFound);
      CHECK((row.text != nullptr ? runs(match, *row.text) : runs(match, rollout::admin::stage_weights)));
      CHECK(match.model == "m");
      CHECK(match.version == (start.size() > 20 ? "3" : ""));
      CHECK(match.number == (path.ends_with("12") ? "12" : ""));
      CHECK(find_route(path, row.method, kPublic).result == Result::kNotFound);
      CHECK(find_route(path, row.method, http::kMetrics).result == Result::kNotFound);
    }
  }
  CHECK(runs(find_route("/v2/admin/operations", Method::kGet, kAdmin), rollout::admin::operations));
  CHECK(find_route("/v2/admin/operations/7", Method::kGet, kAdmin).number == "7");
  CHECK(runs(find_route("/v2/admin/operations/7", Method::kDelete, kAdmin), rollout::admin::cancel_operation));
  CHECK(find_route("/v2/admin/operations/x", Method::kGet, kAdmin).result == Result::kNotFound);
  CHECK(find_route("/v2/admin/models/m/weights", Method::kDelete, kAdmin).allow == "Allow: GET, HEAD, POST\r\n");
  CHECK(find_route("/v2/admin/models/m/replicas", Method::kOther, kAdmin).allow ==
        "Allow: GET, HEAD, POST, DELETE\r\n");
}

TEST_CASE("routes: every one is found by its own paths, and the document has it") {
  for (const http::Listeners listener : {kPublic, http::kMetrics, kAdmin}) {
    const std::string document = openapi_document(listener);
    for (const Route& route : kRoutes) {
      for (const std::string_view path : route.paths) {
        CAPTURE(std::string(path));
        std::string asked(path);
        for (const auto& [variable, value] : {std::pair("{model}", "m"),
                                              {"{version}", "3"},
                                              {"{region}", "r"},
                                              {"{number}", "4"},
                                              {"{file}", "a.js"}}) {
          if (const size_t at = asked.find(variable); at != std::string::npos)
            asked.replace(at, std::string_view(variable).size(), value);
        }
        const http::RouteMatch match = find_route(asked, route.method, listener);
        const bool has = (route.listeners & listener) != 0;
        CHECK(found_route(match) == (has ? &route : nullptr));
        const std::string key = std::string("\"").append(path).append("\":{");
        if (has) CHECK(document.find(key) != std::string::npos);
      }
    }
  }
}

TEST_CASE("routes: the document marks former paths as deprecated, and no others") {
  const auto paths = nlohmann::json::parse(openapi_document(kAdmin))["paths"];
  size_t deprecated = 0;
  for (const auto& [path, methods] : paths.items()) {
    CAPTURE(path);
    const bool former = path.ends_with("/renumber") || path.ends_with("/prolong");  // deprecated
    for (const auto& [method, operation] : methods.items()) {
      if (method == "parameters") continue;
      CHECK(operation.value("deprecated", false) == former);
      deprecated += former;
    }
  }
  CHECK(deprecated == 6);
}

TEST_CASE("routes: no two take the same requests") {
  std::set<std::pair<Method, std::string_view>> seen;
  for (const http::RoutePattern& pattern : kRoutePatterns) {
    CAPTURE(std::string(pattern.path));
    CHECK(seen.emplace(pattern.method, pattern.path).second);
  }
}

TEST_CASE("routes: what a token must be good for") {
  const auto scope = [](std::string_view path, Method method, http::Listeners listener, bool http_admin = false) {
    const http::RouteMatch match = find_route(path, method, listener);
    return needed_scope(found_route(match), listener, http_admin);
  };
  for (const http::Listeners listener : {kPublic, http::kMetrics, kAdmin}) {
    CHECK(scope("/v2/health/live", Method::kGet, listener) == http::kNoScope);
    CHECK(scope("/v2/health/ready", Method::kGet, listener) == http::kNoScope);
    const uint8_t own = listener == kPublic          ? http::kInferScope
                        : listener == http::kMetrics ? http::kMetricsScope
                                                     : http::kAdminScope;
    CHECK(scope("/", Method::kGet, listener) == own);
    CHECK(scope("/nothing", Method::kGet, listener) == own);
    CHECK(scope("/v2/health/live", Method::kPost, listener) == own);
  }
  CHECK(scope("/v2/models/m/infer", Method::kPost, kPublic, true) == http::kInferScope);
  CHECK(scope("/v2/logging", Method::kPost, kPublic, true) == http::kAdminScope);
  CHECK(scope("/v2/logging", Method::kPost, kPublic, false) == http::kInferScope);  // refused whatever the token
  const Route& logging = route_of(find_route("/v2/logging", Method::kPost, kPublic));
  CHECK(is_forbidden(logging, kPublic, false));
  CHECK_FALSE(is_forbidden(logging, kPublic, true));
  CHECK_FALSE(is_forbidden(logging, kAdmin, false));
}

TEST_CASE("routes: what a token of scope metrics may read on the admin listener") {
  const auto reads = [](std::string_view path, Method method = Method::kGet, http::Listeners listener = kAdmin) {
    const Route* const route = found_route(find_route(path, method, listener));
    return accepted_scopes(route, listener) == http::kMetricsScope;
  };
  for (const char* path :
       {"/", "/v2", "/v2/models/m", "/v2/models/m/config", "/v2/models/stats", "/v2/trace/setting", "/v2/logging",
        "/v2/admin/access", "/v2/admin/audit", "/v2/admin/operations/7", "/v2/admin/models/m/constants",
        "/v2/admin/models/m/weights", "/v2/admin/models/m/weights/diff", "/v2/admin/models/m/sets/a"}) {
    CAPTURE(std::string(path));
    CHECK(reads(path));
  }
  CHECK(reads("/v2/repository/index", Method::kPost));
  for (const char* path : {"/v2/admin/models/m/weights/active", "/v2/admin/models/m/sets/a/weights",
                           "/v2/admin/models/m/golden/recording", "/nowhere"}) {
    CAPTURE(std::string(path));
    CHECK_FALSE(reads(path));
  }
  for (const Route& route : kRoutes) {
    CAPTURE(std::string(route.paths.first()));
    const bool reading = route.access == Access::kReading || route.access == Access::kControlReading;
    if (reading) CHECK((route.method == Method::kGet || route.paths.first() == "/v2/repository/index"));
  }
  // Elsewhere the same routes are for the listener's own tokens.
  CHECK_FALSE(reads("/v2/models/m", Method::kGet, kPublic));
  CHECK_FALSE(reads("/v2/logging", Method::kGet, kPublic));
  CHECK(is_forbidden(route_of(find_route("/v2/logging", Method::kGet, kPublic)), kPublic, false));
  CHECK(accepted_scopes(nullptr, kAdmin) == http::kNoScope);
  for (const char* path : {"/console", "/console/console.js"}) {
    const http::RouteMatch match = find_route(path, Method::kGet, kAdmin);
    CHECK(needed_scope(found_route(match), kAdmin, false) == http::kNoScope);
    CHECK(find_route(path, Method::kGet, kPublic).result == Result::kNotFound);
  }
}

}  // namespace sconce::server::api
