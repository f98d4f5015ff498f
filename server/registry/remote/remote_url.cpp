#include "server/registry/remote/remote_url.h"

#include <algorithm>
#include <charconv>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr size_t kLongest = 2048;
constexpr size_t kLongestName = 255;  // of a path component, as in file systems

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_plain(char c) noexcept {
  return is_letter(c) || is_digit(c) || std::string_view("-._~").find(c) != std::string_view::npos;
}
bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

[[noreturn]] void refuse(std::string_view text, std::string_view reason) {
  SCONCE_FAIL(kInvalidArgument, "not an address: '", excerpt(std::string(text.substr(0, text.find('?')))),
              "': ", reason);
}

int hex_digit(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Empty for a malformed percent-encoding.
std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1,
              low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

// Removes and returns the text before the first `end`.
std::string_view take_until(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::string_view without_last_slash(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool is_bucket(std::string_view name) noexcept {
  const auto inner = [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.' || c == '_'; };
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), inner) &&
         (is_letter(name.front()) || is_digit(name.front())) && (is_letter(name.back()) || is_digit(name.back())) &&
         name.find("..") == std::string_view::npos;
}

bool is_hub_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 96 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_plain(c) && c != '~'; });
}

// HOST[:PORT], where HOST may be [IPV6].
bool is_authority(std::string_view text) noexcept {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    host = text.substr(1, end - 1);
    std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return false;
    if (!rest.empty() && rest.size() == 1) return false;
    if (!rest.empty()) port = rest.substr(1);
    if (host.empty() ||
        !std::all_of(host.begin(), host.end(), [](char c) { return hex_digit(c) >= 0 || c == ':' || c == '.'; }))
      return false;
  } else {
    if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      host = text.substr(0, colon);
      port = text.substr(colon + 1);
      if (port.empty()) return false;
    }
    if (host.empty() || host.size() > 253 || host.front() == '.' || host.front() == '-' ||
        !std::all_of(host.begin(), host.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.'; }))
      return false;
  }
  if (port.empty()) return true;
  unsigned number = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
  return problem == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65535;
}

RemoteUrl parse_bucket(RemoteScheme scheme, std::string_view text, std::string_view rest) {
  RemoteUrl url;
  url.scheme = scheme;
  url.origin = take_until(rest, '/');
  if (!is_bucket(url.origin)) refuse(text, "not a bucket's name");
  url.path = without_last_slash(rest);
  if (!url.path.empty() && !is_safe_path(url.path)) refuse(text, "a part of the key is empty, hidden or too long");
  return url;
}

// Removes and returns the revision at the beginning of the text: up to the next slash, with its own slashes as %2F, or
// verbatim refs/pr/NUMBER or refs/convert/NAME, like huggingface_hub.
std::string take_revision(std::string_view& text) {
  for (const std::string_view special : {std::string_view("refs/pr/"), std::string_view("refs/convert/")}) {
    if (!text.starts_with(special)) continue;
    std::string_view rest = text.substr(special.size());
    const std::string_view name = take_until(rest, '/');
    const bool fits = std::all_of(name.begin(), name.end(), [&](char c) {
      return is_digit(c) || (special == "refs/convert/" && (is_letter(c) || c == '_'));
    });
    if (name.empty() || !fits) continue;
    text = rest;
    return std::string(special) + std::string(name);
  }
  return decoded(take_until(text, '/'));
}

bool is_revision(std::string_view revision) noexcept {
  if (revision.empty() || revision.size() > kLongestName) return false;
  for (;;) {
    const size_t slash = std::min(revision.find('/'), revision.size());
    if (!is_hub_name(revision.substr(0, slash))) return false;
    if (slash == revision.size()) return true;
    revision.remove_prefix(slash + 1);
  }
}

RemoteUrl parse_hub(std::string_view text, std::string_view rest) {
  RemoteUrl url;
  url.scheme = RemoteScheme::kHub;
  const std::string_view owner = take_until(rest, '/');
  const std::string_view name = rest.substr(0, rest.find_first_of("@/"));
  rest.remove_prefix(name.size());
  const bool has_revision = rest.starts_with('@');
  if (!rest.empty()) rest.remove_prefix(1);
  if (!is_hub_name(owner) || !is_hub_name(name)) refuse(text, "it must begin hf://ORGANISATION/REPOSITORY");
  url.origin = std::string(owner) + "/" + std::string(name);
  url.revision = has_revision ? take_revision(rest) : "main";
  if (!is_revision(url.revision)) refuse(text, "not a revision after @ (a slash in it is %2F)");
  url.path = without_last_slash(rest);
  if (!url.path.empty() && !is_safe_path(url.path)) refuse(text, "a part of the path is empty, hidden or too long");
  return url;
}

// ACCOUNT/CONTAINER/PATH.
RemoteUrl parse_azure(std::string_view text, std::string_view account, std::string_view rest) {
  RemoteUrl url;
  url.scheme = RemoteScheme::kAzure;
  const std::string_view container = take_until(rest, '/');
  const bool is_account =
      account.size() >= 3 && account.size() <= 24 &&
      std::all_of(account.begin(), account.end(), [](char c) { return (c >= 'a' && c <= 'z') || is_digit(c); });
  if (!is_account) refuse(text, "not the name of a storage account");
  if (container != "$web" && container != "$root" && !is_bucket(container)) refuse(text, "not a container's name");
  url.origin = std::string(account) + "/" + std::string(container);
  url.path = without_last_slash(rest);
  if (!url.path.empty() && !is_safe_path(url.path)) refuse(text, "a part of the path is empty, hidden or too long");
  return url;
}

RemoteUrl parse_web(std::string_view text, std::string_view scheme, std::string_view rest) {
  RemoteUrl url;
  if (rest.find('#') != std::string_view::npos) refuse(text, "it has a fragment (#)");
  for (const char c : rest)
    if (!is_plain(c) && std::string_view("/:[]%?&=+,;@!$'()*").find(c) == std::string_view::npos)
      refuse(text, "a character that a URL must have percent-encoded");
  const size_t question = rest.find('?');
  if (question != std::string_view::npos) {
    url.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  const std::string_view authority = take_until(rest, '/');
  if (authority.find('@') != std::string_view::npos)
    refuse(text, "credentials belong into ~/.netrc, not into an address");
  if (!is_authority(authority)) refuse(text, "not a host and port");
  url.origin = std::string(scheme) + "://" + std::string(authority);
  url.path = rest;
  // With a signature in its query it is a file like any other.
  if (constexpr std::string_view kAzure = ".blob.core.windows.net";
      scheme == "https" && authority.ends_with(kAzure) && url.query.empty() && !rest.empty())
    return parse_azure(text, authority.substr(0, authority.size() - kAzure.size()), decoded(rest));
  if (url.path.empty() || !is_safe_path(decoded(url.path))) refuse(text, "it names no file");
  if (scheme == "http" && !http::is_plain_loopback(text)) refuse(text, "plain http is for this host alone; use https");
  return url;
}

}  // namespace

bool RemoteUrl::is_package() const { return scheme == RemoteScheme::kHttps || path.ends_with(".pt2"); }

std::string RemoteUrl::file() const {
  const std::string name = path.substr(path.rfind('/') + 1);
  return scheme == RemoteScheme::kHttps ? decoded(name) : name;
}

std::string RemoteUrl::shown() const {
  const std::string below = path.empty() ? "" : "/" + path;
  switch (scheme) {
    case RemoteScheme::kS3:
      return "s3://" + origin + below;
    case RemoteScheme::kGs:
      return "gs://" + origin + below;
    case RemoteScheme::kAzure:
      return "az://" + origin + below;
    case RemoteScheme::kHub:
      return "hf://" + origin + "@" + http::encoded_value(revision) + below;
    default:
      return origin + below;
  }
}

std::string RemoteUrl::key() const { return query.empty() ? shown() : shown() + "?" + query; }

RemoteUrl RemoteUrl::with_path(std::string other) const {
  RemoteUrl url = *this;
  url.path = std::move(other);
  return url;
}

RemoteUrl parse_remote_url(std::string_view text) {
  if (text.size() > kLongest) refuse(text, "too long");
  if (std::any_of(text.begin(), text.end(), is_control)) refuse(text, "it has a control character");
  std::string_view rest = text;
  const std::string_view scheme = take_until(rest, ':');
  constexpr std::string_view kBegins = "it must begin with s3://, gs://, az://, hf:// or https://";
  if (!rest.starts_with("//")) refuse(text, kBegins);
  rest.remove_prefix(2);
  if (scheme == "s3") return parse_bucket(RemoteScheme::kS3, text, rest);
  if (scheme == "gs") return parse_bucket(RemoteScheme::kGs, text, rest);
  if (scheme == "az") {
    const std::string_view account = take_until(rest, '/');
    return parse_azure(text, account, rest);
  }
  if (scheme == "hf") return parse_hub(text, rest);
  if (scheme == "https" || scheme == "http") return parse_web(text, scheme, rest);
  refuse(text, kBegins);
}

bool is_safe_path(std::string_view path) noexcept {
  if (path.empty() || path.size() > kLongest || std::any_of(path.begin(), path.end(), is_control)) return false;
  for (size_t at = 0;;) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    if (part.empty() || part.front() == '.' || part.size() > kLongestName) return false;
    if (slash == path.size()) return true;
    at = slash + 1;
  }
}

}  // namespace sconce::server::registry
