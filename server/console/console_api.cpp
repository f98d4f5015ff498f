#include "server/console/console_api.h"

#include <string>

#include "sconce/version.h"
#include "server/http/query.h"
#include "server/support/json_document.h"
#include "server/weights/store/peer_weights.h"

namespace sconce::server::admin {
namespace {

OrderedJson text_or_null(const std::string& text) { return text.empty() ? OrderedJson(nullptr) : OrderedJson(text); }

}  // namespace

std::string access(Service& service, const AdminRequest& request) {
  const Query query(request.query, {});
  const auto known = service.credentials.snapshot();
  const bool administers = known->check(kAdminScope, request.authorization).status == 0;
  OrderedJson json;
  json["scopes"] = administers ? OrderedJson{"admin", "metrics", "infer"} : OrderedJson{"metrics"};
  json["token_needed"] = known->needs_token(kAdminScope);
  json["read_only"] = !administers;
  json["http"] = text_or_null(service.public_url);
  json["grpc"] = text_or_null(service.grpc_address);
  json["version"] = version();
  json["instance"] = instance_name();
  return dump(json);
}

}  // namespace sconce::server::admin
