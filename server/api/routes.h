// The table of routes has all properties of each route: the matching requests, who may send them, their maximum size,
// the handler and its thread, and the text of the OpenAPI document. HttpCall dispatches by it; access checks, metric
// labels and the OpenAPI document are derived from it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "server/api/admin_handlers.h"
#include "server/api/handlers.h"
#include "server/codecs/inference.h"
#include "server/console/feed.h"
#include "server/http/access/credentials.h"
#include "server/http/router.h"
#include "server/registry/model_loader.h"
#include "server/rollout/admin_api.h"
#include "server/rollout/trainers/trainer_routes.h"

namespace sconce::server::api {

// Handlers. They hold functions by reference and have no defaults, so that a route without a handler does not compile.

// Runs on the connection's I/O thread.
struct OnIoThread {
  enum Needs : int8_t { kNothing, kModel, kAllModels };
  // kModel: needs the route's model, which is loaded first if it is loaded on demand. kAllModels: the answer describes
  // every model, so with many models it is made on a ThreadPool thread.
  consteval explicit OnIoThread(AnswerOnIoThread& function, Needs needs = kNothing)
      : answer(&function), loads(needs == kModel), tells_all(needs == kAllModels) {}
  AnswerOnIoThread* answer;
  bool loads, tells_all;
};

struct OnAdminThread {
  consteval explicit OnAdminThread(rollout::AdminText& function) : text(&function) {}
  consteval explicit OnAdminThread(rollout::AdminStart& function) : starts(&function) {}
  consteval explicit OnAdminThread(ServerText& function) : of_server(&function) {}
  // kUnavailable.
  void start(const Admission& admission, rollout::Rollout& rollout, const telemetry::Telemetry& telemetry,
             rollout::AdminRequest request, rollout::AdminDone done) const;
  rollout::AdminText* text = nullptr;
  rollout::AdminStart* starts = nullptr;
  ServerText* of_server = nullptr;
};

// Runs on the loader thread, on a model given by name. The body is checked first.
struct OnControlThread {
  using Check = void(std::string_view body);
  using Work = void (registry::ModelLoader::*)(const std::string& model);
  consteval OnControlThread(Check& function, Work member) : check(&function), work(member) {}
  // Not a comparison: with sanitizers, GCC does not take the address of a function for a constant that it can compare.
  OnControlThread(Check& function, std::nullptr_t) = delete;
  Check* check;
  Work work;
};

// Runs a model, on a replica thread or, if its runs are short, on the I/O thread.
struct RunsModel {
  consteval explicit RunsModel(codecs::Inference::Form form) : form(form) {}
  codecs::Inference::Form form;
};

// Streams events, on the connection's I/O thread, until the client or the server ends the stream.
struct EventStream {
  consteval explicit EventStream(console::OpenFeed& function) : open(&function) {}
  console::OpenFeed* open;
};

using Handler = std::variant<OnIoThread, OnAdminThread, OnControlThread, RunsModel, EventStream>;

enum class Access : int8_t {
  kAnyone,          // probes, which carry no token, and the console's page, which asks the user for one
  kOfListener,      // every client with access to the listener
  kReading,         // likewise; on the admin listener a token with scope metrics is sufficient
  kControl,         // administration; on the public listener only if http_admin allows it
  kControlReading,  // likewise; on the admin listener a token with scope metrics is sufficient
};

// Maximum size of the route's body.
enum class BodyLimit : int8_t {
  kText,     // JSON that is parsed on the I/O thread: 64 KiB
  kInputs,   // the maximum size of the model's inputs
  kTensors,  // JSON that names tensors, parsed on an admin thread: 64 MiB
  kWeights,  // by Content-Type: JSON as in kTensors, or a stream of weights that the handler reads
};

// The route's part of the OpenAPI document. Schemas are named as in openapi.cpp; empty: no body.
struct Description {
  std::string_view tag, summary;
  std::string_view request, answer;
  enum Remark : uint8_t {
    kBodyOptional = 1,
    kAnswersBinary = 2,  // may also answer in binary
    kAnswersLater = 4,   // 202
    kTakesSet = 8,       // accepts MODEL@SET in {model}, or has {set}
    kOnlyReads = 16,     // reads only, whatever the method
    kOfHost = 32,        // returns information about the server's host
  };
  uint8_t remarks = 0;
};

// In the form of RoutePattern. Metrics use the first path as the route's name.
class Paths {
 public:
  constexpr Paths(std::initializer_list<std::string_view> paths) : Paths(paths, {}) {}
  // deprecated: former paths, which are answered for one more release.
  constexpr Paths(std::initializer_list<std::string_view> paths, std::initializer_list<std::string_view> deprecated)
      : current_(paths.size()), count_(paths.size() + deprecated.size()) {
    std::copy(deprecated.begin(), deprecated.end(), std::copy(paths.begin(), paths.end(), all_.begin()));
  }
  constexpr const std::string_view* begin() const noexcept { return all_.data(); }
  constexpr const std::string_view* end() const noexcept { return all_.data() + count_; }
  constexpr std::string_view first() const noexcept { return all_.front(); }
  constexpr bool is_deprecated(const std::string_view* path) const noexcept { return path >= begin() + current_; }

 private:
  std::array<std::string_view, 4> all_{};
  size_t current_, count_;
};

struct Route {
  http::Method method;
  Paths paths;
  uint8_t listeners;
  Access access;
  Handler handler;
  Description description;
  BodyLimit body = BodyLimit::kText;
};

extern const std::span<const Route> kRoutes;
extern const std::span<const http::RoutePattern> kRoutePatterns;
extern const std::span<const std::string_view> kRouteNames;  // of kRoutes, for the metrics

inline http::RouteMatch find_route(std::string_view path, http::Method method, http::Listeners listener) noexcept {
  return http::find_route(kRoutePatterns, path, method, listener);
}
inline const Route& route_of(const http::RouteMatch& match) noexcept { return kRoutes[match.route]; }
// Null if no route matched.
inline const Route* found_route(const http::RouteMatch& match) noexcept {
  return match.result == http::RouteMatch::Result::kFound ? &route_of(match) : nullptr;
}

// nullopt if the route runs no model.
constexpr std::optional<codecs::Inference::Form> form_of(const Route& route) noexcept {
  const RunsModel* const run = std::get_if<RunsModel>(&route.handler);
  return run != nullptr ? std::optional(run->form) : std::nullopt;
}
constexpr bool is_inference(const Route& route) noexcept { return std::holds_alternative<RunsModel>(route.handler); }

constexpr bool takes_set(const Route& route) noexcept {
  return is_inference(route) || (route.description.remarks & Description::kTakesSet) != 0;
}

constexpr bool is_control(const Route& route) noexcept {
  return route.access == Access::kControl || route.access == Access::kControlReading;
}
// Whether the server's settings disable the route on this listener.
constexpr bool is_forbidden(const Route& route, http::Listeners listener, bool http_admin) noexcept {
  return is_control(route) && listener == http::kPublic && !http_admin;
}
// Whether pages of the origins in http_cors_origins may use the route: inference and read-only routes, except those
// about the server's settings or its host's memory.
constexpr bool opens_to_pages(const Route& route) noexcept {
  if ((route.listeners & http::kPublic) == 0 || is_control(route)) return false;
  if (route.method == http::Method::kGet) return (route.description.remarks & Description::kOfHost) == 0;
  return is_inference(route) || (route.description.remarks & Description::kOnlyReads) != 0;
}
// The scope that a token must have; if no token has that scope, none is needed. route: null if no route matched.
constexpr uint8_t needed_scope(const Route* route, http::Listeners listener, bool http_admin) noexcept {
  if (route != nullptr && route->access == Access::kAnyone) return http::kNoScope;
  if (listener == http::kMetrics) return http::kMetricsScope;
  if (listener == http::kAdmin) return http::kAdminScope;
  return route != nullptr && is_control(*route) && http_admin ? http::kAdminScope : http::kInferScope;
}
// Other scopes that are sufficient. route: null if no route matched.
constexpr uint8_t accepted_scopes(const Route* route, http::Listeners listener) noexcept {
  const bool reading =
      route != nullptr && (route->access == Access::kReading || route->access == Access::kControlReading);
  return reading && listener == http::kAdmin ? http::kMetricsScope : http::kNoScope;
}

}  // namespace sconce::server::api
