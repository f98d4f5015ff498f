#include "server/answers/access.h"

#include <utility>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/log.h"

namespace sconce::server {

CredentialSet::Refusal refusal_of(Service& service, const CredentialSet& known, const Route* route, Listeners listener,
                                  std::string_view authorization, bool from_page) {
  const uint8_t scope = needed_scope(route, listener, service.config.http_admin);
  if (scope == kNoScope) return {};
  CredentialSet::Refusal refusal = known.check(scope, authorization);
  if (scope == kAdminScope && !known.needs_token(scope) && from_page)
    refusal = {403, "requests of web pages need a token: token_file"};
  if (refusal.status != 0) log_warn(service.refusals, "request refused with {}: {}", refusal.status, refusal.message);
  return refusal;
}

void start_control(Service& service, const OnControlThread& handler, std::string_view model, std::string_view body,
                   const RequestId& id, const std::string& peer, Control::Done done) {
  handler.check(body);
  SCONCE_CHECK(is_model_name(model), kInvalidArgument, "not a model's name: '", excerpt(model), "'");
  SCONCE_CHECK(!service.draining.load(std::memory_order_relaxed), kUnavailable, "the server is ending");
  Control& control = service.control;
  control.submit(
      [&control, work = handler.work, name = std::string(model), id, peer] {
        const LogRequest log_request(id, peer);
        (control.*work)(name);
      },
      std::move(done));
}

}  // namespace sconce::server
