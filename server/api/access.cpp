#include "server/api/access.h"

#include <string>
#include <utility>

#include "sconce/check.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {

namespace {

// Whether a request to the route can have side effects. For inference that depends on the request.
bool may_change(const Route* route, uint8_t scope) noexcept {
  if (route == nullptr) return false;
  if (route->method == http::Method::kGet) return false;
  return scope == http::kAdminScope || !opens_to_pages(*route);
}

}  // namespace

http::CredentialSet::Refusal refusal_of(const ServerConfig& config, telemetry::Telemetry& telemetry,
                                        const http::CredentialSet& known, const Route* route, http::Listeners listener,
                                        std::string_view authorization, bool foreign_page) {
  const uint8_t scope = needed_scope(route, listener, config.http_admin);
  if (scope == http::kNoScope) return {};
  http::CredentialSet::Refusal refusal = known.check(scope, authorization, accepted_scopes(route, listener));
  if (foreign_page && !known.needs_token(scope) && may_change(route, scope))
    refusal = {403, "requests of web pages of other origins need a token: token_file"};
  if (refusal.status != 0) log_warn(telemetry.refusals, "request refused with {}: {}", refusal.status, refusal.message);
  return refusal;
}

void check_route(const Admission& admission, const http::RouteMatch& match) {
  const Route& route = route_of(match);
  SCONCE_CHECK(!is_forbidden(route, match.listener, admission.config.http_admin), kForbidden,
               "this is for the administration listener (settings admin and http_admin)");
  SCONCE_CHECK(match.set.empty() || takes_set(route), kNotFound, "Request for unknown model: '", excerpt(match.model),
               "@", excerpt(match.set), "' is not found");
}

bool needs_load(const Admission& admission, const registry::Catalog& catalog, std::string_view model) {
  const registry::OnDemand* const models = admission.loader.on_demand();
  return models != nullptr && models->is_missing(catalog, model);
}

void start_control(Admission& admission, const OnControlThread& handler, const http::RouteMatch& match,
                   std::string_view body, const RequestId& id, const std::string& peer,
                   registry::ModelLoader::Done done) {
  check_route(admission, match);
  handler.check(body);
  const std::string_view model = match.model;
  SCONCE_CHECK(is_model_name(model), kInvalidArgument, "not a model's name: '", excerpt(model), "'");
  SCONCE_CHECK(!admission.draining.load(std::memory_order_relaxed), kUnavailable, "the server is ending");
  registry::ModelLoader& loader = admission.loader;
  loader.submit(
      [&loader, work = handler.work, name = std::string(model), id, peer] {
        const LogRequest log_request(id, peer);
        (loader.*work)(name);
      },
      [&admission, done = std::move(done)](std::exception_ptr problem) {
        ++admission.controls;
        done(std::move(problem));
      });
}

}  // namespace sconce::server::api
