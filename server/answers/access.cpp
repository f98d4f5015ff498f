#include "server/answers/access.h"

#include <boost/asio/ip/address.hpp>
#include <string>
#include <utility>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/log.h"

namespace sconce::server {

namespace {

// Whether a name of the server is one that no web site can take: a page of evil.example whose address is made to be
// this server's has evil.example as its origin and as the requests' Host.
bool is_beyond_dns(std::string_view host) {
  const bool v6 = host.starts_with('[');
  const size_t end = host.find(v6 ? ']' : ':');
  if (v6 && end == std::string_view::npos) return false;
  const std::string_view name = v6 ? host.substr(1, end - 1) : host.substr(0, end);
  boost::system::error_code ec;
  boost::asio::ip::make_address(std::string(name), ec);
  return !ec || name == "localhost";
}

}  // namespace

bool is_own_page(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size()) == host && is_beyond_dns(host);
  return false;
}

CredentialSet::Refusal refusal_of(Service& service, const CredentialSet& known, const Route* route, Listeners listener,
                                  std::string_view authorization, bool from_page) {
  const uint8_t scope = needed_scope(route, listener, service.config.http_admin);
  if (scope == kNoScope) return {};
  CredentialSet::Refusal refusal = known.check(scope, authorization, accepted_scopes(route, listener));
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
