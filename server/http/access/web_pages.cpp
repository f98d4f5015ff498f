#include "server/http/access/web_pages.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce::server::http {
namespace {

constexpr size_t kMaxOrigin = 255, kMaxRequested = 256;
// Fields that scripts may read, in addition to those that every answer may show them.
constexpr std::string_view kExposed =
    "Access-Control-Expose-Headers: Inference-Header-Content-Length, Sconce-Weight-Version, Sconce-Generation, "
    "Sconce-Weights, X-Request-Id, Server-Timing, Retry-After\r\n";
// Request fields that are allowed if the preflight's own list is not repeated.
constexpr std::string_view kKnownFields =
    "Authorization, Content-Type, Content-Encoding, Inference-Header-Content-Length, X-Request-Id, traceparent, "
    "Sconce-Weights, Sconce-Affinity";

std::string_view without_port(std::string_view host) noexcept {
  const bool v6 = host.starts_with('[');
  const size_t end = host.find(v6 ? ']' : ':');
  if (v6) return end == std::string_view::npos ? std::string_view() : host.substr(1, end - 1);
  return host.substr(0, end);
}

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

void check_origin(const std::string& origin) {
  const size_t slashes = origin.find("://");
  const bool plain = std::all_of(origin.begin(), origin.end(),
                                 [](char c) { return c > 0x20 && c < 0x7f && c != ',' && !(c >= 'A' && c <= 'Z'); });
  SCONCE_CHECK(plain && origin.size() <= kMaxOrigin && slashes != std::string::npos && slashes > 0 &&
                   slashes + 3 < origin.size() && origin.find_first_of("/?#@*", slashes + 3) == std::string::npos,
               kInvalidArgument,
               "setting http_cors_origins: not an origin such as https://app.example or http://localhost:3000 "
               "(lower case, without a path), nor '*': ",
               excerpt(origin));
}

}  // namespace

bool is_own_host(std::string_view host, std::span<const std::string> allowed) {
  if (host.empty()) return true;
  const std::string_view name = without_port(host);
  if (same_name(name, "localhost")) return true;
  for (const std::string& one : allowed)
    if (one == "*" || same_name(one, name)) return true;
  // Only addresses begin like this; a name need not be parsed.
  const bool maybe = host.front() == '[' || (!name.empty() && name.front() >= '0' && name.front() <= '9');
  if (!maybe) return false;
  boost::system::error_code ec;
  boost::asio::ip::make_address(std::string(name), ec);
  return !ec;
}

bool is_own_page(std::string_view origin, std::string_view host, std::span<const std::string> allowed) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme))
      return !host.empty() && origin.substr(scheme.size()) == host && is_own_host(host, allowed);
  return false;
}

CorsRule::CorsRule(std::vector<std::string> origins) : origins_(std::move(origins)) {
  any_ = origins_.size() == 1 && origins_.front() == "*";
  if (!any_)
    for (const std::string& origin : origins_) check_origin(origin);
}

bool CorsRule::allows(std::string_view origin) const noexcept {
  if (origin.empty()) return false;
  return any_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

void CorsRule::write_fields(std::string_view origin, std::string& fields) const {
  fields.clear();
  if (any_) {
    // Never with credentials, because a page of any origin must not act in a visitor's name.
    fields.append("Access-Control-Allow-Origin: *\r\n").append(kExposed);
    return;
  }
  if (allows(origin)) {
    fields.append("Access-Control-Allow-Origin: ").append(origin);
    fields.append("\r\nAccess-Control-Allow-Credentials: true\r\n").append(kExposed);
  }
  fields.append("Vary: Origin\r\n");
}

void CorsRule::write_preflight(std::string_view origin, std::string_view methods, std::string_view requested,
                               std::string& fields) const {
  fields.clear();
  fields.append("Access-Control-Allow-Origin: ").append(any_ ? "*" : origin);
  if (!any_) fields.append("\r\nAccess-Control-Allow-Credentials: true");
  fields.append("\r\nAccess-Control-Allow-Methods: ").append(methods);
  fields.append("\r\nAccess-Control-Allow-Headers: ");
  fields.append(requested.empty() || requested.size() > kMaxRequested ? kKnownFields : requested);
  fields.append("\r\nAccess-Control-Max-Age: 7200\r\nVary: Origin, Access-Control-Request-Headers\r\n");
}

}  // namespace sconce::server::http
