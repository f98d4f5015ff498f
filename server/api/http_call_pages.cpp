// HttpCall: requests from pages in browsers (http/access/web_pages.h).
#include "server/api/access.h"
#include "server/api/http_call.h"
#include "server/api/routes.h"

namespace sconce::server::api {

// Determines the page's origin, and the header fields of the answer for it.
void HttpCall::look_at_page() {
  const http::RequestHeader& head = reader_.head();
  const Admission& admission = api_.admission();
  const Route* const route = found_route(route_);
  const bool opened = listener_ == http::kPublic && admission.cors.on() && (route == nullptr || opens_to_pages(*route));
  if (opened) admission.cors.write_fields(head.origin, page_fields_);
  foreign_page_ = !head.origin.empty() && !(opened && admission.cors.allows(head.origin)) &&
                  !http::is_own_page(head.origin, head.host, admission.config.allowed_hosts);
}

// Whether Host is a foreign name while only the listener's address restricts access: a page of that name, which was
// pointed at this server, would look like one of this server's own pages.
bool HttpCall::strange_host() {
  const std::string_view host = reader_.head().host;
  if ((api_.admission().checks_host & listener_) == 0 || host == own_host_) [[likely]]
    return false;
  const ServerConfig& config = api_.admission().config;
  if (http::is_own_host(host, config.allowed_hosts)) {
    own_host_.assign(host);
    return false;
  }
  const uint8_t scope = listener_ == http::kPublic    ? http::kInferScope
                        : listener_ == http::kMetrics ? http::kMetricsScope
                                                      : http::kAdminScope;
  return !api_.credentials().needs_token(scope);
}

// Whether the request has a valid token because its route needs one.
bool HttpCall::has_token() const {
  return api_.credentials().needs_token(
      needed_scope(found_route(route_), listener_, api_.admission().config.http_admin));
}

// OPTIONS: a browser asks whether a page may send such a request. This request has no token.
HttpCall::Next HttpCall::answer_preflight() {
  const http::RequestHeader& head = reader_.head();
  const http::CorsRule& cors = api_.admission().cors;
  response_.reset();
  const http::Method asked = head.page_method == "POST"                                ? http::Method::kPost
                             : head.page_method == "GET" || head.page_method == "HEAD" ? http::Method::kGet
                                                                                       : http::Method::kOther;
  const http::RouteMatch match = find_route(cached_path_.path, asked, listener_);
  const Route* const route = found_route(match);
  if (route == nullptr || !opens_to_pages(*route)) return route_request();
  if (!cors.allows(head.origin))
    return refuse(403, "pages of this origin may not call models here: setting http_cors_origins");
  cors.write_preflight(head.origin, asked == http::Method::kPost ? "POST" : "GET, HEAD", head.page_fields,
                       page_fields_);
  response_.status = 204;
  return Next::kAnswer;
}

}  // namespace sconce::server::api
