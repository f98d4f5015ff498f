#include "server/registry/remote/transfer/transfer.h"

#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "sconce/check.h"
#include "server/registry/remote/transfer/url_text.h"
#include "server/support/failure.h"
#include "src/support/excerpt.h"

namespace sconce::server {
namespace {

constexpr int kMaxRedirects = 5;
constexpr int kMaxCorrections = 4;
constexpr size_t kMaxDocument = size_t{16} << 20;
constexpr size_t kMaxRefusal = size_t{1} << 20;  // of an error page, which is read so that the connection can be reused
// Maximum bytes per call of `take`. Larger pieces leave the processor's cache before they are written.
constexpr long kBuffer = 256 << 10;

// The first call loads libcurl.
void require_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    SCONCE_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, kUnavailable, "libcurl cannot be initialised");
  });
}

class FieldList {
 public:
  ~FieldList() { curl_slist_free_all(list_); }
  FieldList() = default;
  FieldList(const FieldList&) = delete;
  FieldList& operator=(const FieldList&) = delete;
  void add(const std::string& field) {
    curl_slist* const longer = curl_slist_append(list_, field.c_str());
    if (!longer) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const noexcept { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Whether the failure is temporary.
bool may_pass(CURLcode code) noexcept {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

}  // namespace

// The request in progress, for libcurl's callbacks.
struct Exchanging {
  RemoteAnswer& answer;
  const Transfer::Take& take;
  const std::atomic<bool>* stop;
  std::exception_ptr thrown;
  const char* wrong = nullptr;  // defect of the header
  std::string error_text;       // the beginning
  size_t error_bytes = 0;
  bool refused = false;
  // Whether enough of an error was read.
  bool has_refusal() const noexcept { return error_bytes > kMaxRefusal; }
};

namespace {

size_t take_line(const char* text, size_t size, size_t count, void* object) noexcept {
  Exchanging& under_way = *static_cast<Exchanging*>(object);
  under_way.thrown = exception_of([&] { under_way.wrong = under_way.answer.take({text, size * count}); });
  return under_way.thrown || under_way.wrong ? 0 : size * count;
}

size_t take_bytes(const char* bytes, size_t size, size_t count, void* object) noexcept {
  Exchanging& under_way = *static_cast<Exchanging*>(object);
  const int status = under_way.answer.status;
  if (status != 200 && status != 206) {
    // The text may be long; its beginning has the reason.
    std::string& text = under_way.error_text;
    under_way.error_bytes += size * count;
    under_way.thrown = exception_of([&] { text.append(bytes, std::min(size * count, kMaxErrorText - text.size())); });
    const bool wanted = (is_redirect(status) || status >= 400) && !under_way.has_refusal();
    return !under_way.thrown && wanted ? size * count : 0;
  }
  under_way.thrown = exception_of(
      [&] { under_way.refused = !under_way.take(under_way.answer, std::as_bytes(std::span(bytes, size * count))); });
  return under_way.thrown || under_way.refused ? 0 : size * count;
}

int look_at_stop(void* object, curl_off_t, curl_off_t, curl_off_t, curl_off_t) noexcept {
  const Exchanging& under_way = *static_cast<const Exchanging*>(object);
  return under_way.stop && under_way.stop->load(std::memory_order_relaxed) ? 1 : 0;
}

}  // namespace

struct Transfer::Handle {
  CURL* curl = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason{};
  Handle() : curl(curl_easy_init()) {
    if (!curl) throw std::bad_alloc();
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { curl_easy_cleanup(curl); }
};

Transfer::Transfer(TransferSettings settings) : settings_(std::move(settings)) {
  require_curl();
  handle_ = std::make_unique<Handle>();
}

Transfer::~Transfer() = default;

RemoteAnswer Transfer::once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                            const std::string& linked) {
  RemoteRequest sent = request;
  sent.fields.insert(sent.fields.end(), fields.begin(), fields.end());
  if (request.signer) sent = request.signer->sign(std::move(sent));
  RemoteAnswer answer;
  answer.request = request;
  answer.signed_as = sent.signed_as;
  answer.linked = linked;
  Exchanging under_way{answer, take, settings_.stop, {}, nullptr, {}};
  FieldList list;
  for (const std::string& field : sent.fields) list.add(field);
  CURL* const curl = handle_->curl;
  curl_easy_reset(curl);  // keeps connections
  const auto set = [curl](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(curl, option, value);
    SCONCE_CHECK(code == CURLE_OK, kUnavailable, "libcurl has no option ", static_cast<int>(option), ": ",
                 curl_easy_strerror(code), ": install a later version");
  };
  set(CURLOPT_URL, sent.url.c_str());
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // parallel ranges need separate connections
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_USERAGENT, "sconce");
  set(CURLOPT_BUFFERSIZE, kBuffer);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(kSlowest));
  set(CURLOPT_LOW_SPEED_TIME, std::max<long>(1, static_cast<long>(settings_.stall.count() / 1000)));
  set(CURLOPT_ERRORBUFFER, handle_->reason.data());
  set(CURLOPT_HEADERFUNCTION, &take_line);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&under_way));
  set(CURLOPT_WRITEFUNCTION, &take_bytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&under_way));
  set(CURLOPT_XFERINFOFUNCTION, &look_at_stop);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&under_way));
  set(CURLOPT_NOPROGRESS, 0L);
  const char* const bundle = std::getenv("CURL_CA_BUNDLE");
  const std::string ca = settings_.ca.empty() && bundle ? bundle : settings_.ca;
  if (!ca.empty()) set(CURLOPT_CAINFO, ca.c_str());
  if (sent.netrc) set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (sent.direct) set(CURLOPT_PROXY, "");
  if (!sent.body.empty()) {
    set(CURLOPT_POSTFIELDS, sent.body.c_str());
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(sent.body.size()));
  }
  if (!sent.method.empty()) set(CURLOPT_CUSTOMREQUEST, sent.method.c_str());
  handle_->reason[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  const std::string reason = handle_->reason[0] != 0 ? handle_->reason.data() : curl_easy_strerror(code);
  const char* target = nullptr;
  if (is_redirect(answer.status)) curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &target);
  if (target) answer.redirect = target;
  // libcurl 7.88 no longer accepts CURLOPT_BUFFERSIZE after a failed name lookup.
  if (code != CURLE_OK) handle_ = std::make_unique<Handle>();
  if (under_way.thrown) std::rethrow_exception(under_way.thrown);
  if (under_way.refused) {
    answer.problem = "refused";
  } else if (code != CURLE_OK && !under_way.has_refusal()) {
    SCONCE_CHECK(!settings_.stop || !settings_.stop->load(), kCancelled, "cancelled");
    answer.problem = under_way.wrong ? under_way.wrong : reason;
    answer.again = may_pass(code);
  } else if (answer.status == 408 || answer.status == 429 || answer.status >= 500) {
    answer.again = true;
  }
  if (answer.status >= 300) answer.error = parse_store_error(under_way.error_text, answer.fields);
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
    if (linked.empty()) linked = without_quotes(answer.field("x-linked-etag"));
    if (!is_redirect(answer.status) || !answer.problem.empty()) return answer;
    if (follow && !follow(answer)) return answer;
    const std::string& to = answer.redirect;
    const std::string host(origin_of(to));
    SCONCE_CHECK(!to.empty(), kUnavailable, "a redirect from ", origin_of(request.url), " leads nowhere");
    SCONCE_CHECK(redirects < kMaxRedirects, kUnavailable, "more than ", kMaxRedirects, " redirects from ",
                 origin_of(first.url));
    SCONCE_CHECK(to.starts_with("https://") || (is_plain_loopback(to) && is_plain_loopback(request.url)), kForbidden,
                 "a redirect from ", origin_of(request.url), " to ", excerpt(host),
                 " is not followed: it is not https");
    SCONCE_CHECK(host.find('@') == std::string::npos, kForbidden, "a redirect from ", origin_of(request.url),
                 " carries credentials, and is not followed");
    RemoteRequest next;
    next.url = to;
    next.netrc = request.netrc;
    if (host == origin_of(request.url)) next.fields = request.fields;
    request = std::move(next);
  }
}

std::string Transfer::document(const RemoteRequest& request, std::string_view what, std::string* next_page) {
  const std::string_view named = what.empty() ? origin_of(request.url) : what;
  for (int tries = 1;; ++tries) {
    std::string text;
    const RemoteAnswer answer = get(request, {}, [&](const RemoteAnswer&, std::span<const std::byte> bytes) {
      SCONCE_CHECK(text.size() + bytes.size() <= kMaxDocument, kUnavailable, "the answer of ", named,
                   " is larger than ", kMaxDocument, " bytes");
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    });
    if (answer.ok()) {
      if (next_page) *next_page = next_link(answer.field("link"));
      return text;
    }
    if (!answer.again || tries >= settings_.tries) fail_for(answer, named);
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

}  // namespace sconce::server
