#include "server/registry/remote/transfer/transfer.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "sconce/check.h"
#include "server/http/client/url_text.h"
#include "src/support/excerpt.h"

namespace sconce::server::registry {
namespace {

constexpr int kMaxRedirects = 5;
constexpr int kMaxCorrections = 4;
constexpr size_t kMaxDocument = size_t{16} << 20;

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

http::ClientTls tls_of(const TransferSettings& settings) {
  const char* const bundle = std::getenv("CURL_CA_BUNDLE");
  http::ClientTls tls;
  tls.ca = settings.ca.empty() && bundle ? bundle : settings.ca;
  return tls;
}

}  // namespace

Transfer::Transfer(TransferSettings settings)
    : settings_(std::move(settings)),
      client_(tls_of(settings_), {.connect = settings_.connect, .slow = settings_.stall}) {}

RemoteAnswer Transfer::once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                            const std::string& linked) {
  RemoteRequest sent = request;
  sent.fields.insert(sent.fields.end(), fields.begin(), fields.end());
  sent.repeatable = true;
  if (request.signer) sent = request.signer->sign(std::move(sent));
  RemoteAnswer answer;
  answer.request = request;
  answer.signed_as = sent.signed_as;
  answer.linked = linked;
  const auto goes_on = [this] {
    SCONCE_CHECK(!settings_.stop || !settings_.stop->load(std::memory_order_relaxed), kCancelled, "cancelled");
    return true;
  };
  http::AnswerSink sink;
  sink.head = [&](const http::Answer& head) {
    static_cast<http::Answer&>(answer) = head;
    return true;
  };
  sink.body = [&](std::span<const std::byte> bytes) { return goes_on() && take(answer, bytes); };
  static_cast<http::Answer&>(answer) = client_.ask(sent, goes_on, sink);
  answer.temporary |= answer.status == 408 || answer.status == 429 || answer.status >= 500;
  if (answer.status >= 300) answer.error = parse_store_error(answer.body, answer.fields);
  return answer;
}

RemoteAnswer Transfer::get(const RemoteRequest& first, std::span<const std::string> fields, const Take& take,
                           const Follow& follow) {
  RemoteRequest request = first;
  std::string linked;
  for (int redirects = 0, corrections = 0;; ++redirects) {
    RemoteAnswer answer = once(request, fields, take, linked);
    if (request.signer) {
      const bool refused = answer.problem.empty() && answer.status >= 300 && answer.status != 304;
      if (!refused || corrections++ == kMaxCorrections || !request.signer->correct(answer)) return answer;
      continue;
    }
    if (linked.empty()) linked = http::without_quotes(answer.field("x-linked-etag"));
    if (!is_redirect(answer.status) || !answer.problem.empty()) return answer;
    if (follow && !follow(answer)) return answer;
    const std::string& to = answer.redirect;
    const std::string host(http::origin_of(to));
    SCONCE_CHECK(!to.empty(), kUnavailable, "a redirect from ", http::origin_of(request.url), " leads nowhere");
    SCONCE_CHECK(redirects < kMaxRedirects, kUnavailable, "more than ", kMaxRedirects, " redirects from ",
                 http::origin_of(first.url));
    SCONCE_CHECK(to.starts_with("https://") || (http::is_plain_loopback(to) && http::is_plain_loopback(request.url)),
                 kForbidden, "a redirect from ", http::origin_of(request.url), " to ", excerpt(host),
                 " is not followed: it is not https");
    SCONCE_CHECK(host.find('@') == std::string::npos, kForbidden, "a redirect from ", http::origin_of(request.url),
                 " carries credentials, and is not followed");
    RemoteRequest next;
    next.url = to;
    next.netrc = request.netrc;
    if (host == http::origin_of(request.url)) next.fields = request.fields;
    request = std::move(next);
  }
}

std::string Transfer::document(const RemoteRequest& request, std::string_view what, std::string* next_page) {
  const std::string_view named = what.empty() ? http::origin_of(request.url) : what;
  for (int tries = 1;; ++tries) {
    std::string text;
    const RemoteAnswer answer = get(request, {}, [&](const RemoteAnswer&, std::span<const std::byte> bytes) {
      SCONCE_CHECK(text.size() + bytes.size() <= kMaxDocument, kUnavailable, "the answer of ", named,
                   " is larger than ", kMaxDocument, " bytes");
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    });
    if (answer.has_content()) {
      if (next_page) *next_page = http::next_link(answer.field("link"));
      return text;
    }
    if (!answer.temporary || tries >= settings_.tries) fail_for(answer, named);
    back_off(tries, settings_.stop);
  }
}

void fail_for(const RemoteAnswer& answer, std::string_view what) {
  SCONCE_CHECK(answer.problem.empty(), kUnavailable, what, ": ", excerpt(answer.problem));
  const StoreError& error = answer.error;
  std::string said = "status " + std::to_string(answer.status);
  for (const std::string* part : {&error.code, &error.message})
    if (!part->empty()) said += (part == &error.code ? ", " : ": ") + excerpt(*part);
  std::string remedy = remedy_for(error);
  const bool is_missing = answer.status == 404 || answer.status == 410;
  const bool is_refused = answer.status == 401 || answer.status == 403 || remedy.find("credentials") != remedy.npos;
  if (remedy.empty() && is_redirect(answer.status)) remedy = "a redirect of a signed request is not followed";
  if (remedy.empty() && is_refused && !is_missing) remedy = "credentials are missing or not sufficient";
  if (is_refused && answer.request.signer) remedy += " (" + answer.request.signer->describe() + ")";
  if (!remedy.empty()) remedy = ": " + remedy;
  SCONCE_CHECK(!is_missing, kNotFound, "there is no ", what, " (", said, ")", remedy);
  SCONCE_CHECK(!is_refused, kForbidden, what, ": the server refuses it (", said, ")", remedy);
  SCONCE_FAIL(kUnavailable, what, ": the server answered with ", said, remedy);
}

void back_off(int tries, const std::atomic<bool>* stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100 << std::min(tries, 6));
  while (std::chrono::steady_clock::now() < end && !(stop && stop->load()))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace sconce::server::registry
