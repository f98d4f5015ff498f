#include "server/api/admin_handlers.h"

#include "sconce/version.h"
#include "server/http/query.h"
#include "server/rollout/admin_api.h"
#include "server/support/json_document.h"
#include "server/weights/store/peer_weights.h"

namespace sconce::server::api::admin {
namespace {

OrderedJson text_or_null(const std::string& text) { return text.empty() ? OrderedJson(nullptr) : OrderedJson(text); }

}  // namespace

std::string access(const Admission& admission, const telemetry::Telemetry& /*telemetry*/,
                   const rollout::AdminRequest& request) {
  const http::Query query(request.query, {});
  const auto known = admission.credentials.snapshot();
  const bool administers = known->check(http::kAdminScope, request.authorization).status == 0;
  OrderedJson json;
  json["scopes"] = administers ? OrderedJson{"admin", "metrics", "infer"} : OrderedJson{"metrics"};
  json["token_needed"] = known->needs_token(http::kAdminScope);
  json["read_only"] = !administers;
  json["http"] = text_or_null(admission.public_url);
  json["grpc"] = text_or_null(admission.grpc_address);
  json["version"] = version();
  json["instance"] = weights::instance_name();
  return dump(json);
}

std::string traces(const Admission& /*admission*/, const telemetry::Telemetry& telemetry,
                   const rollout::AdminRequest& request) {
  const http::Query query(request.query, {"model", "limit"});
  return telemetry.tracer.records(query.text("model").value_or(""), rollout::limit_of(query));
}

}  // namespace sconce::server::api::admin
