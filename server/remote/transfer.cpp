#include "server/remote/transfer.h"

#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/failure.h"

namespace sconce::server {
namespace {

constexpr int kMostRedirects = 5;
constexpr int kMostTries = 5;
constexpr size_t kMostDocument = size_t{16} << 20;
// Each call of `take` gets at most so much. Larger ones leave the processor's cache before they are written.
constexpr long kBuffer = 256 << 10;
constexpr long kConnectTimeoutMs = 10'000;

// The first call opens libcurl.
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

// Scheme, host and port, as text.
std::string_view origin_of(std::string_view url) {
  const size_t begin = url.find("://");
  return url.substr(0, url.find_first_of("/?#", begin == std::string_view::npos ? 0 : begin + 3));
}

bool is_redirect(int status) noexcept {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// A failure of the moment, rather than one that comes again.
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

// One request under way: libcurl's callbacks get it.
struct Exchanging {
  RemoteAnswer& answer;
  const Transfer::Take& take;
  const std::atomic<bool>* stop;
  std::exception_ptr thrown;
  const char* wrong = nullptr;  // with the head
  bool refused = false;
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
  // The text of an error is of no use, and may be long.
  if (status != 200 && status != 206) return is_redirect(status) || status >= 400 ? size * count : 0;
  under_way.thrown = exception_of(
      [&] { under_way.refused = !under_way.take(under_way.answer, std::as_bytes(std::span(bytes, size * count))); });
  return under_way.thrown || under_way.refused ? 0 : size * count;
}

int look_at_stop(void* object, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) noexcept {
  const Exchanging& under_way = *static_cast<const Exchanging*>(object);
  const bool error_text = under_way.answer.status >= 300 && received > (1 << 20);
  return error_text || (under_way.stop && under_way.stop->load(std::memory_order_relaxed)) ? 1 : 0;
}

}  // namespace

struct Transfer::Handle {
  CURL* curl = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason{};
  ~Handle() {
    if (curl) curl_easy_cleanup(curl);
  }
};

Transfer::Transfer(TransferSettings settings) : settings_(std::move(settings)) {
  require_curl();
  handle_ = std::make_unique<Handle>();
  handle_->curl = curl_easy_init();
  if (!handle_->curl) throw std::bad_alloc();
}

Transfer::~Transfer() = default;

RemoteAnswer Transfer::once(const RemoteRequest& request, std::span<const std::string> fields, const Take& take,
                            const std::string& linked) {
  RemoteAnswer answer;
  answer.request = request;
  answer.linked = linked;
  Exchanging under_way{answer, take, settings_.stop, {}};
  FieldList list;
  for (const std::string& field : request.fields) list.add(field);
  for (const std::string& field : fields) list.add(field);
  CURL* const curl = handle_->curl;
  curl_easy_reset(curl);  // connections stay
  const auto set = [curl](CURLoption option, auto value) {
    const CURLcode code = curl_easy_setopt(curl, option, value);
    SCONCE_CHECK(code == CURLE_OK, kUnavailable, "libcurl has no option ", static_cast<int>(option), ": ",
                 curl_easy_strerror(code), ": install a later version");
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // ranges in parallel have a connection each
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_USERAGENT, "sconce");
  set(CURLOPT_BUFFERSIZE, kBuffer);
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
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
  if (request.netrc) set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!request.signature.empty()) {
    set(CURLOPT_AWS_SIGV4, request.signature.c_str());
    set(CURLOPT_USERPWD, request.user.c_str());
  }
  handle_->reason[0] = '\0';
  const CURLcode code = curl_easy_perform(curl);
  if (under_way.thrown) std::rethrow_exception(under_way.thrown);
  if (under_way.refused) {
    answer.problem = "refused";
  } else if (code != CURLE_OK) {
    SCONCE_CHECK(!settings_.stop || !settings_.stop->load(), kCancelled, "cancelled");
    answer.problem = under_way.wrong           ? under_way.wrong
                     : handle_->reason[0] != 0 ? handle_->reason.data()
                                               : curl_easy_strerror(code);
    answer.again = may_pass(code);
  } else if (answer.status == 408 || answer.status == 429 || answer.status >= 500) {
    answer.again = true;
  }
  return answer;
}

RemoteAnswer Transfer::get(const RemoteRequest& first, std::span<const std::string> fields, const Take& take,
                           const Follow& follow) {
  RemoteRequest request = first;
  std::string linked;
  for (int redirects = 0;; ++redirects) {
    RemoteAnswer answer = once(request, fields, take, linked);
    if (linked.empty()) linked = without_quotes(answer.field("x-linked-etag"));
    if (!is_redirect(answer.status) || !answer.problem.empty()) return answer;
    if (follow && !follow(answer)) return answer;
    const char* target = nullptr;
    curl_easy_getinfo(handle_->curl, CURLINFO_REDIRECT_URL, &target);
    const std::string to = target ? target : "";
    const std::string host(origin_of(to));
    SCONCE_CHECK(!to.empty(), kUnavailable, "a redirect from ", origin_of(request.url), " leads nowhere");
    SCONCE_CHECK(redirects < kMostRedirects, kUnavailable, "more than ", kMostRedirects, " redirects from ",
                 origin_of(first.url));
    SCONCE_CHECK(first.signature.empty(), kUnavailable, origin_of(request.url), " redirects to ", excerpt(host),
                 ": signed requests are not redirected; is AWS_REGION the bucket's?");
    SCONCE_CHECK(to.starts_with("https://") || (is_plain_loopback(to) && is_plain_loopback(request.url)), kForbidden,
                 "a redirect from ", origin_of(request.url), " to ", excerpt(host),
                 " is not followed: it is not https");
    SCONCE_CHECK(host.find('@') == std::string::npos, kForbidden, "a redirect from ", origin_of(request.url),
                 " brings credentials, and is not followed");
    RemoteRequest next;
    next.url = to;
    next.netrc = request.netrc;
    if (host == origin_of(request.url)) next.fields = request.fields;
    request = std::move(next);
  }
}

std::string Transfer::document(const RemoteRequest& request, std::string* next_page) {
  for (int tries = 1;; ++tries) {
    std::string text;
    const RemoteAnswer answer = get(request, {}, [&](const RemoteAnswer&, std::span<const std::byte> bytes) {
      SCONCE_CHECK(text.size() + bytes.size() <= kMostDocument, kUnavailable, "the answer of ", origin_of(request.url),
                   " is larger than ", kMostDocument, " bytes");
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    });
    if (answer.ok()) {
      if (next_page) *next_page = next_link(answer.field("link"));
      return text;
    }
    if (!answer.again || tries == kMostTries) fail_for(answer, origin_of(request.url));
    back_off(tries, settings_.stop);
  }
}

void fail_for(const RemoteAnswer& answer, std::string_view what) {
  SCONCE_CHECK(answer.problem.empty(), kUnavailable, what, ": ", excerpt(answer.problem));
  SCONCE_CHECK(answer.status != 404 && answer.status != 410, kNotFound, "there is no ", what, " (status ",
               answer.status, ")");
  SCONCE_CHECK(answer.status != 401 && answer.status != 403, kForbidden, what, ": the server refuses it (status ",
               answer.status, "): credentials are missing or not sufficient");
  SCONCE_FAIL(kUnavailable, what, ": the server answered with status ", answer.status);
}

void back_off(int tries, const std::atomic<bool>* stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100 << std::min(tries, 6));
  while (std::chrono::steady_clock::now() < end && !(stop && stop->load()))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace sconce::server
