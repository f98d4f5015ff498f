#include "server/http/access/credentials.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/support/trim.h"

namespace sconce::server::http {
namespace {

constexpr size_t kShortestToken = 16, kLongestToken = 4096, kLargestFile = 1 << 20;
constexpr std::string_view kBlanks = " \t\r\n";

std::string read_text(const char* setting, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestFile + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  SCONCE_CHECK(file.is_open() && !file.bad(), kIo, "setting ", setting, ": ", path,
               " cannot be read: ", std::strerror(errno));
  text.resize(static_cast<size_t>(file.gcount()));
  SCONCE_CHECK(text.size() <= kLargestFile, kInvalidArgument, "setting ", setting, ": ", path, " is too large");
  return text;
}

// The certificates in a PEM file, as base64 without blanks.
std::vector<std::string> certificates_of(const std::string& path) {
  const std::string text = read_text("tls_client_ca", path);
  constexpr std::string_view kBegin = "-----BEGIN ", kDashes = "-----";
  std::vector<std::string> found;
  for (size_t at = 0; (at = text.find(kBegin, at)) != std::string::npos;) {
    const size_t body = text.find(kDashes, at + kBegin.size());
    const size_t end = body == std::string::npos ? body : text.find(kDashes, body + kDashes.size());
    if (end == std::string::npos) break;
    const bool certificate = text.substr(at, body - at).ends_with("CERTIFICATE");
    std::string base64 = text.substr(body + kDashes.size(), end - body - kDashes.size());
    std::erase_if(base64, [](char c) { return kBlanks.find(c) != std::string_view::npos; });
    if (certificate) found.push_back(std::move(base64));
    at = end + kDashes.size();
  }
  return found;
}

bool share_a_certificate(const std::string& one, const std::string& other) {
  if (one == other) return true;
  const std::vector<std::string> a = certificates_of(one), b = certificates_of(other);
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& c) { return std::find(b.begin(), b.end(), c) != b.end(); });
}

bool is_token(std::string_view text) noexcept {
  return text.size() >= kShortestToken && text.size() <= kLongestToken &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

uint8_t scopes_from(std::string_view names) noexcept {
  uint8_t scopes = 0;
  for (;;) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const uint8_t scope = name == "infer"     ? kInferScope
                          : name == "metrics" ? kMetricsScope
                          : name == "admin"   ? kAdminScope
                                              : kNoScope;
    if (scope == kNoScope) return kNoScope;
    scopes |= scope;
    if (comma == std::string_view::npos) return scopes;
    names.remove_prefix(comma + 1);
  }
}

void append_tokens(const std::string& path, std::vector<CredentialSet::Token>& tokens) {
  const std::string text = read_text("token_file", path);
  const size_t before = tokens.size();
  size_t number = 0;
  for (std::string_view left = text; !left.empty();) {
    ++number;
    const size_t end = left.find('\n');
    const std::string_view line = trim(left.substr(0, end), kBlanks);
    left.remove_prefix(end == std::string_view::npos ? left.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = line.find_first_of(kBlanks);
    const uint8_t scopes = scopes_from(line.substr(0, blank));
    const std::string_view token =
        blank == std::string_view::npos ? std::string_view() : trim(line.substr(blank), kBlanks);
    // The message does not show the line, which may be a secret.
    SCONCE_CHECK(scopes != kNoScope && is_token(token), kInvalidArgument, "setting token_file: ", path, ":", number,
                 ": expected SCOPES TOKEN, with scopes of infer, metrics, admin and a token of 16 to 4096 printable "
                 "characters without spaces");
    tokens.push_back({std::string(token), scopes});
  }
  SCONCE_CHECK(tokens.size() > before, kInvalidArgument, "setting token_file: ", path, " holds no token");
}

// Takes a time that depends only on the length of `given`.
bool same_token(std::string_view given, std::string_view token) noexcept {
  volatile unsigned char difference = given.size() != token.size();
  for (size_t i = 0; i < given.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (given[i] ^ token[i % token.size()]));
  }
  return difference == 0;
}

}  // namespace

CredentialSet::Refusal CredentialSet::check(uint8_t scope, std::string_view authorization,
                                            uint8_t accepted) const noexcept {
  if (!needs_token(scope)) return {};
  constexpr std::string_view kScheme = "Bearer ";
  const boost::beast::string_view scheme(authorization.data(), std::min(authorization.size(), kScheme.size()));
  if (!boost::beast::iequals(scheme, {kScheme.data(), kScheme.size()}))
    return {401, "a token is needed: Authorization: Bearer TOKEN"};
  const std::string_view given = trim(authorization.substr(kScheme.size()), kBlanks);
  // Compares with all tokens, even after a match.
  uint8_t scopes = 0;
  for (const Token& token : tokens_) scopes |= static_cast<uint8_t>(same_token(given, token.text) * token.scopes);
  if ((scopes & (scope | accepted)) != 0) return {};
  if (scopes != 0) return {403, "the token is good for other requests, not for this one"};
  return {403, "not a token of this server"};
}

const TlsContext* CredentialSet::tls(Listeners listener) const noexcept {
  return tls_[listener == kPublic ? 0 : listener == kMetrics ? 1 : 2].get();
}

Credentials::Credentials(const ServerConfig& config) : config_(config) {
  const auto add = [&](const std::string& path, bool of_tls) {
    if (!path.empty()) files_.push_back({StampedFile(path), of_tls});
  };
  add(config.token_file, false);
  add(config.admin_token_file, false);
  add(config.tls_certificate, true);
  add(config.tls_key, true);
  for (const std::string* ca :
       {&config.tls_client_ca, &config.http_tls_client_ca, &config.metrics_tls_client_ca, &config.admin_tls_client_ca})
    add(*ca, true);
  CredentialSet set;
  set.tokens_ = read_tokens();
  read_certificates(set);
  publish(std::move(set));
}

std::shared_ptr<const CredentialSet> Credentials::snapshot() const {
  const MutexLock lock(mutex_);
  return set_;
}

std::vector<CredentialSet::Token> Credentials::read_tokens() const {
  std::vector<CredentialSet::Token> tokens;
  if (!config_.token_file.empty()) append_tokens(config_.token_file, tokens);
  if (!config_.admin_token_file.empty()) {
    const std::string text = read_text("admin_token_file", config_.admin_token_file);
    const std::string_view token = trim(text, kBlanks);
    SCONCE_CHECK(is_token(token), kInvalidArgument, "setting admin_token_file: ", config_.admin_token_file,
                 " must hold one token of 16 to 4096 printable characters without spaces");
    tokens.push_back({std::string(token), kAdminScope});
  }
  return tokens;
}

void Credentials::read_certificates(CredentialSet& set) const {
  struct One {
    const char* name;
    TlsMode mode;
    const std::string& own_ca;
    const std::string& ca;  // the CA file of the mode
  };
  const auto one = [&](const char* name, TlsMode mode, const std::string& own_ca) {
    return One{name, mode, own_ca, own_ca.empty() ? config_.tls_client_ca : own_ca};
  };
  const One listeners[] = {one("http", config_.http_tls, config_.http_tls_client_ca),
                           one("metrics", config_.metrics_tls, config_.metrics_tls_client_ca),
                           one("admin", config_.admin_tls, config_.admin_tls_client_ca)};
  const std::string &certificate = config_.tls_certificate, &key = config_.tls_key;
  std::array<std::shared_ptr<const TlsContext>, 3> contexts;
  for (size_t i = 0; i < contexts.size(); ++i) {
    const One& of = listeners[i];
    const bool mutual = of.mode == TlsMode::kMutual;
    SCONCE_CHECK(mutual || of.own_ca.empty(), kInvalidArgument, "setting ", of.name, "_tls_client_ca needs ", of.name,
                 "_tls = mutual");
    if (of.mode == TlsMode::kOff) continue;
    SCONCE_CHECK(!certificate.empty() && !key.empty(), kInvalidArgument,
                 "TLS needs the settings tls_certificate and tls_key");
    SCONCE_CHECK(!mutual || !of.ca.empty(), kInvalidArgument, "mutual TLS needs the setting tls_client_ca or ", of.name,
                 "_tls_client_ca");
    contexts[i] = TlsContext::of_server(certificate, key, mutual ? of.ca : std::string(), of.name);
  }
  const bool admin_token = std::any_of(set.tokens_.begin(), set.tokens_.end(),
                                       [](const CredentialSet::Token& t) { return (t.scopes & kAdminScope) != 0; });
  const One& admin = listeners[2];
  if (admin.mode == TlsMode::kMutual && !admin_token) {
    for (const One& other : {listeners[0], listeners[1]}) {
      SCONCE_CHECK(other.mode != TlsMode::kMutual || !share_a_certificate(admin.ca, other.ca), kInvalidArgument,
                   "clients of ", other.name, " would be administrators: ", admin.ca, " and ", other.ca,
                   " have a certificate in common; set admin_tls_client_ca to one of its own, or use a token of scope "
                   "admin");
    }
  }
  set.tls_ = std::move(contexts);
}

void Credentials::publish(CredentialSet set) {
  set.needed_ = 0;
  for (const CredentialSet::Token& token : set.tokens_) set.needed_ |= token.scopes;
  auto next = std::make_shared<const CredentialSet>(std::move(set));
  const MutexLock lock(mutex_);
  set_ = std::move(next);
  revision_.fetch_add(1, std::memory_order_release);
}

void Credentials::refresh(bool all) {
  const MutexLock lock(refreshing_);
  const auto changed = [](Reading& reading) {
    reading.stale = true;
    reading.problem.clear();
  };
  for (File& file : files_)
    if (file.file.changed()) changed(file.of_tls ? certificates_ : tokens_);
  if (all) {
    changed(certificates_);
    changed(tokens_);
  }
  if (!tokens_.stale && !certificates_.stale) return;
  CredentialSet next = *snapshot();
  const auto attempt = [](const char* what, Reading& reading, auto&& read) {
    std::string problem = problem_of(read);
    if (problem.empty())
      log_info("{} were read again", what);
    else if (problem != reading.problem)
      log_warn("{} stay as they were: {}", what, printable(problem));
    reading.problem = std::move(problem);
  };
  if (tokens_.stale) {
    attempt("tokens", tokens_, [&] {
      std::vector<CredentialSet::Token> found = read_tokens();
      const auto has = [](const auto& list, uint8_t scope) {
        return std::any_of(list.begin(), list.end(), [&](const auto& token) { return (token.scopes & scope) != 0; });
      };
      // A scope that was protected must not become open because a line is missing.
      for (const uint8_t scope : {kInferScope, kMetricsScope, kAdminScope})
        SCONCE_CHECK(!has(next.tokens_, scope) || has(found, scope), kInvalidArgument,
                     "no token is left for a scope that needs one; restart the server to open it to everybody");
      next.tokens_ = std::move(found);
    });
  }
  if (certificates_.stale) attempt("certificates", certificates_, [&] { read_certificates(next); });
  publish(std::move(next));
  tokens_.stale = !tokens_.problem.empty();
  certificates_.stale = !certificates_.problem.empty();
}

}  // namespace sconce::server::http
