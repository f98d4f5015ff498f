#include "server/http/router.h"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "sconce/check.h"
#include "server/support/config.h"

namespace sconce::server::http {
namespace {

// Removes the first segment of a path that starts with '/'.
std::string_view next_segment(std::string_view& path) noexcept {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

// Whether a name, or the part before its "@", is "." or "..". canonical_target() refuses segments of dots; this is for
// "..:call", "..@set" and "m@..", which are no such segments.
bool is_dots(std::string_view name) noexcept {
  if (!name.starts_with('.')) return false;  // nearly all names
  name = name.substr(0, name.find('@'));
  return name == "." || name == "..";
}

bool match_variable(std::string_view segment, std::string_view pattern, std::string_view name,
                    std::string_view& value) noexcept {
  if (!pattern.starts_with(name)) return false;
  const std::string_view suffix = pattern.substr(name.size());
  if (!segment.ends_with(suffix) || segment.size() == suffix.size()) return false;
  value = segment.substr(0, segment.size() - suffix.size());
  // A name has no colon; a verb follows the colon.
  return value.find(':') == std::string_view::npos;
}

bool match(std::string_view path, std::string_view pattern, RouteMatch& found) noexcept {
  found.model = found.set = found.version = found.region = found.number = found.file = {};
  while (!path.empty() && !pattern.empty()) {
    const std::string_view segment = next_segment(path);
    const std::string_view expected = next_segment(pattern);
    if (!expected.starts_with('{')) {
      if (segment == expected) continue;
      return false;
    }
    if (match_variable(segment, expected, "{model}", found.model)) {
      const size_t at = found.model.find('@');
      if (at == std::string_view::npos || at == 0 || at + 1 == found.model.size()) continue;
      found.set = found.model.substr(at + 1);
      found.model = found.model.substr(0, at);
      continue;
    }
    if (found.set.empty() && match_variable(segment, expected, "{set}", found.set)) continue;
    if (match_variable(segment, expected, "{region}", found.region)) continue;
    if (match_variable(segment, expected, "{file}", found.file)) continue;
    if (match_variable(segment, expected, "{version}", found.version)) {
      if (!is_model_name(found.version)) return false;
      continue;
    }
    std::string_view& digits = found.number;
    if (!match_variable(segment, expected, "{number}", digits)) return false;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!std::all_of(digits.begin(), digits.end(), is_digit)) return false;
  }
  if (!path.empty() || !pattern.empty()) return false;
  const auto names = {found.model, found.set, found.region, found.file, found.version};
  return std::none_of(names.begin(), names.end(), is_dots);
}

}  // namespace

CanonicalTarget canonical_target(std::string_view target) {
  // Triton's C++ client names shared memory regions after tensors and does not encode the brackets.
  std::string encoded_brackets;
  const std::string_view path = target.substr(0, target.find('?'));
  if (target.starts_with('/') && path.find_first_of("[]") != std::string_view::npos) [[unlikely]] {
    for (const char c : path) {
      if (c == '[' || c == ']') {
        encoded_brackets += c == '[' ? "%5B" : "%5D";
      } else {
        encoded_brackets += c;
      }
    }
    target = encoded_brackets += target.substr(path.size());
  }
  const boost::core::string_view text(target.data(), target.size());
  const auto parsed =
      target.starts_with('/') ? boost::urls::parse_origin_form(text) : boost::urls::parse_absolute_uri(text);
  SCONCE_CHECK(parsed.has_value(), kInvalidArgument, "request target is not a path or an absolute URI");
  const boost::urls::url_view& url = *parsed;
  if (!target.starts_with('/')) {
    const bool http = url.scheme_id() == boost::urls::scheme::http || url.scheme_id() == boost::urls::scheme::https;
    SCONCE_CHECK(http && url.has_authority() && !url.has_userinfo(), kInvalidArgument,
                 "request target is not a path or an http URI without a user's name");
  }
  CanonicalTarget canonical;
  url.path().swap(canonical.path);
  if (canonical.path.empty()) canonical.path.push_back('/');
  const auto encoded = url.encoded_query();
  canonical.query.assign(encoded.data(), encoded.size());

  // After decoding, an encoded slash cannot be distinguished, so slashes are counted before.
  const auto raw = url.encoded_path();
  SCONCE_CHECK(canonical.path[0] == '/' && std::count(canonical.path.begin(), canonical.path.end(), '/') ==
                                               std::max<ptrdiff_t>(std::count(raw.begin(), raw.end(), '/'), 1),
               kInvalidArgument, "request path has an encoded '/'");
  const auto forbidden = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  SCONCE_CHECK(std::none_of(canonical.path.begin(), canonical.path.end(), forbidden), kInvalidArgument,
               "request path has a control character or a backslash");
  // One trailing slash is ignored, because some clients and gateways add it.
  if (canonical.path.size() > 2 && canonical.path.back() == '/') canonical.path.pop_back();
  for (std::string_view rest = canonical.path; !rest.empty();) {
    const std::string_view segment = next_segment(rest);
    SCONCE_CHECK(segment != "." && segment != ".." && (!segment.empty() || canonical.path.size() == 1),
                 kInvalidArgument, "request path has an empty, '.' or '..' segment");
  }
  return canonical;
}

RouteMatch find_route(std::span<const RoutePattern> patterns, std::string_view path, Method method,
                      Listeners listener) noexcept {
  // Indexed by a set of methods: GET 1, POST 2, DELETE 4, PUT 8.
  constexpr std::string_view kAllow[] = {"",
                                         "Allow: GET, HEAD\r\n",
                                         "Allow: POST\r\n",
                                         "Allow: GET, HEAD, POST\r\n",
                                         "Allow: DELETE\r\n",
                                         "Allow: GET, HEAD, DELETE\r\n",
                                         "Allow: POST, DELETE\r\n",
                                         "Allow: GET, HEAD, POST, DELETE\r\n",
                                         "Allow: PUT\r\n",
                                         "Allow: GET, HEAD, PUT\r\n",
                                         "Allow: POST, PUT\r\n",
                                         "Allow: GET, HEAD, POST, PUT\r\n",
                                         "Allow: DELETE, PUT\r\n",
                                         "Allow: GET, HEAD, DELETE, PUT\r\n",
                                         "Allow: POST, DELETE, PUT\r\n",
                                         "Allow: GET, HEAD, POST, DELETE, PUT\r\n"};
  RouteMatch found;
  unsigned allowed = 0;
  const auto segments = std::count(path.begin(), path.end(), '/');
  for (const RoutePattern& pattern : patterns) {
    if ((pattern.listeners & listener) == 0 || pattern.segments != segments) continue;
    if (!path.starts_with(pattern.path.substr(0, pattern.literal_bytes))) continue;
    RouteMatch candidate;
    if (!match(path, pattern.path, candidate)) continue;
    if (pattern.method == method) {
      candidate.result = RouteMatch::Result::kFound;
      candidate.route = pattern.route;
      candidate.listener = listener;
      return candidate;
    }
    found.result = RouteMatch::Result::kMethodNotAllowed;
    allowed |= 1U << static_cast<unsigned>(pattern.method);
  }
  found.allow = kAllow[allowed];
  return found;
}

std::string_view query_value(std::string_view query, std::string_view key) noexcept {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(query.size(), end + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) == key) return pair.substr(std::min(pair.size(), equals + 1));
  }
  return {};
}

}  // namespace sconce::server::http
