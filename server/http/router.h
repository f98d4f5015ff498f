// Router: finds the route of a request. It makes the path canonical once, and everything is decided on that. It knows
// patterns of paths only; the routes themselves are in server/api/routes.cpp.
//
// Pure functions, no state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sconce::server {

enum class Method : int8_t { kGet, kPost, kDelete, kPut, kOther };  // HEAD is kGet

// The listeners that have a route, as a set.
enum Listeners : uint8_t { kPublic = 1, kMetrics = 2, kAdmin = 4 };

// A path of a route. {model}, {region}, {set}, {file}: any segment; {version}: digits or a label; {number}: digits.
// What follows an '@' in {model} is a set's name. The first pattern that matches wins.
struct RoutePattern {
  std::string_view path;
  Method method = Method::kOther;
  uint8_t listeners = 0;
  uint8_t segments = 0;
  uint16_t literal_bytes = 0;  // before the first variable
  size_t route = 0;            // an index whose meaning the pattern's maker defines

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
  size_t route = 0;          // of the pattern found, if kFound
  std::string_view model;    // from the canonical path; empty if the route has none
  std::string_view version;  // digits or a label; empty: the default
  std::string_view set;      // named set of weights
  std::string_view region;   // of shared memory
  std::string_view number;   // digits: of an operation or a replica
  std::string_view file;     // of the console's page
  std::string_view allow;    // for kMethodNotAllowed: the Allow field with its CRLF
};

RouteMatch find_route(std::span<const RoutePattern> patterns, std::string_view path, Method method,
                      Listeners listener) noexcept;

// A request-target in the router's form.
struct CanonicalTarget {
  std::string path;   // decoded once; starts with '/', without empty, '.' or '..' segments and control bytes
  std::string query;  // as sent, without the '?'
};

// Accepts the origin form and the absolute form. kInvalidArgument for everything that could be read in two ways.
CanonicalTarget canonical_target(std::string_view target);

// First value of a query parameter; empty if it is absent. Does not decode: values that need it match nothing.
std::string_view query_value(std::string_view query, std::string_view key) noexcept;

}  // namespace sconce::server
