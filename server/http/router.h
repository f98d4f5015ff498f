// Router: finds the route of a request. It makes the path canonical once, and all decisions use the canonical path. It
// knows only patterns of paths; server/api/routes.cpp defines the routes.
//
// Pure functions, no state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sconce::server::http {

enum class Method : int8_t { kGet, kPost, kDelete, kPut, kOther };  // HEAD counts as kGet

// A set of listeners that serve a route.
enum Listeners : uint8_t { kPublic = 1, kMetrics = 2, kAdmin = 4 };

// The path of a route. {model}, {region}, {set} and {file} match any segment; {version} matches digits or a label;
// {number} matches digits. In {model}, the text after '@' is the name of a weight set. The first matching pattern wins.
struct RoutePattern {
  std::string_view path;
  Method method = Method::kOther;
  uint8_t listeners = 0;
  uint8_t segments = 0;
  uint16_t literal_bytes = 0;  // before the first variable
  size_t route = 0;            // an index; its meaning is defined by the owner of the patterns

  constexpr RoutePattern() = default;
  constexpr RoutePattern(Method method, std::string_view path, uint8_t listeners, size_t route)
      : path(path), method(method), listeners(listeners), route(route) {
    for (const char c : path) segments += c == '/';
    literal_bytes = static_cast<uint16_t>(std::min(path.find('{'), path.size()));
  }
};

struct RouteMatch {
  enum class Result : int8_t { kFound, kNotFound, kMethodNotAllowed };
  Result result = Result::kNotFound;
  Listeners listener = kPublic;
  size_t route = 0;          // of the matching pattern, if kFound
  std::string_view model;    // from the canonical path; empty if the route has none
  std::string_view version;  // digits or a label; empty: the default version
  std::string_view set;      // named weight set
  std::string_view region;   // shared-memory region
  std::string_view number;   // digits: an operation or a replica
  std::string_view file;     // a file of the console's page
  std::string_view allow;    // for kMethodNotAllowed: the Allow field with CRLF
};

RouteMatch find_route(std::span<const RoutePattern> patterns, std::string_view path, Method method,
                      Listeners listener) noexcept;

// A request target in canonical form.
struct CanonicalTarget {
  std::string path;   // decoded once; starts with '/'; has no empty, '.' or '..' segments and no control bytes
  std::string query;  // as sent, without the '?'
};

// Accepts the origin form and the absolute form. kInvalidArgument for every ambiguous target.
CanonicalTarget canonical_target(std::string_view target);

// First value of a query parameter; empty if the parameter is absent. Values are not decoded, so an encoded value
// matches nothing.
std::string_view query_value(std::string_view query, std::string_view key) noexcept;

}  // namespace sconce::server::http
