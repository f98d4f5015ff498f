#include "server/http/client/http_client.h"

#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include "sconce/check.h"
#include "sconce/version.h"
#include "server/http/tls.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"

namespace sconce::server::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSliceMs = 50;
constexpr size_t kMaxError = size_t{1} << 20;  // of an error's text, which is read so that the connection can be reused
// Maximum bytes per call of a sink. Larger pieces leave the processor's cache before they are written.
constexpr long kBuffer = 256 << 10;
constexpr long kUpload = 1 << 20;  // bytes that libcurl copies of a piece at a time
constexpr char kSilent[] = "nothing happened for too long";

// The first call loads libcurl.
void require_curl() {
  static std::once_flag once;
  std::call_once(once, [] {
    SCONCE_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, kUnavailable, "libcurl cannot be initialised");
  });
}

bool has_content(int status) noexcept { return status == 200 || status == 206; }

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
      return true;
    default:
      return false;
  }
}

}  // namespace

ClientTls checked_tls(const std::string& ca, const std::string& certificate, const std::string& key) {
  TlsContext::check_client(ca, certificate, key);
  return {ca, certificate, key, TlsContext::kCiphers};
}

std::string Answer::reason() const {
  if (status == 0) return problem;
  std::string text;
  const OrderedJson json = OrderedJson::parse(body, nullptr, false);
  if (json.is_object())
    if (const auto at = json.find("error"); at != json.end() && at->is_string()) text = at->get<std::string>();
  if (text.empty()) text = body.substr(0, 200);
  // Control characters must not reach the terminal.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return std::to_string(status) + (text.empty() ? "" : ": " + text);
}

struct HttpClient::Handles {
  CURL* curl = nullptr;
  CURLM* multi = nullptr;
  std::array<char, CURL_ERROR_SIZE> reason{};
  bool failed = false;

  Handles() : curl(curl_easy_init()), multi(curl_multi_init()) {
    if (curl && multi) return;
    close();
    throw std::bad_alloc();
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  ~Handles() { close(); }

 private:
  void close() noexcept {
    curl_easy_cleanup(curl);
    curl_multi_cleanup(multi);
  }
};

// A request in progress. Uses the handles and the sink, and the body of the request.
class HttpClient::Exchange {
 public:
  // bytes: of a body that comes by send().
  Exchange(Handles& handles, const ClientTls& tls, const HttpLimits& limits, const HttpRequest& request, Check check,
           const AnswerSink* sink, const uint64_t* bytes);
  // Closes the connection of an answer that is not complete.
  ~Exchange() {
    if (!ended_) handles_.failed = true;
    curl_multi_remove_handle(handles_.multi, handles_.curl);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Runs until done() or the end of the exchange. False: it has ended.
  template <class Done>
  bool run(const Done& done);
  bool begin() {
    run([this] { return waits_; });
    return waits_ || (left_ == 0 && answer_.status < 300);
  }
  bool send(std::span<const std::byte> piece);
  Answer answer();
  void set_silence(std::chrono::milliseconds silence) noexcept { silence_ = silence; }

 private:
  static size_t take_line(const char* text, size_t size, size_t count, void* object) noexcept;
  static size_t take_bytes(const char* bytes, size_t size, size_t count, void* object) noexcept;
  static size_t give_bytes(char* room, size_t size, size_t count, void* object) noexcept;
  template <class Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(handles_.curl, option, value);
    SCONCE_CHECK(code == CURLE_OK, kUnavailable, "libcurl has no option ", static_cast<int>(option), ": ",
                 curl_easy_strerror(code), ": install a later version");
  }
  void set_tls(const ClientTls& tls);
  bool take(std::span<const std::byte> bytes);
  template <class Value>
  Value info(CURLINFO name) const {
    Value value{};
    curl_easy_getinfo(handles_.curl, name, &value);
    return value;
  }
  uint64_t uploaded() const { return static_cast<uint64_t>(info<curl_off_t>(CURLINFO_SIZE_UPLOAD_T)); }
  uint64_t sent() const { return static_cast<uint64_t>(info<long>(CURLINFO_REQUEST_SIZE)) + uploaded(); }
  std::string problem() const;
  void end(std::string problem) {
    problem_ = std::move(problem);
    ended_ = handles_.failed = true;
  }

  struct FreeList {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
  };
  using List = std::unique_ptr<curl_slist, FreeList>;
  static void add(List& list, const std::string& text) {
    curl_slist* const longer = curl_slist_append(list.get(), text.c_str());
    if (!longer) throw std::bad_alloc();
    (void)list.release();
    list.reset(longer);
  }

  Handles& handles_;
  const Check check_;
  const AnswerSink* const sink_;
  std::chrono::milliseconds silence_;
  const uint64_t body_bytes_;
  List fields_, addresses_;
  Answer answer_;
  std::exception_ptr thrown_;    // by the caller's functions
  const char* wrong_ = nullptr;  // a defect of the answer
  bool begun_ = false;           // the header is complete
  bool stopped_ = false;         // by the caller
  size_t error_bytes_ = 0;
  // A body that comes by send().
  std::span<const std::byte> piece_;
  uint64_t left_ = 0;
  bool waits_ = false;  // for the next piece
  uint64_t sent_ = 0;
  Clock::time_point heard_;  // when the last byte came or went
  CURLcode code_ = CURLE_OK;
  std::string problem_;  // found here and not by libcurl
  bool ended_ = false;
};

size_t HttpClient::Exchange::take_line(const char* text, size_t size, size_t count, void* object) noexcept {
  Exchange& self = *static_cast<Exchange*>(object);
  self.heard_ = Clock::now();
  self.thrown_ = exception_of([&] {
    const std::string_view line(text, size * count);
    self.wrong_ = self.answer_.take(line);
    if (self.wrong_ || self.begun_ || self.answer_.status < 200 || (line != "\r\n" && line != "\n")) return;
    self.begun_ = true;
    if (self.sink_->head && has_content(self.answer_.status)) self.stopped_ = !self.sink_->head(self.answer_);
  });
  return self.thrown_ || self.wrong_ || self.stopped_ ? 0 : size * count;
}

size_t HttpClient::Exchange::take_bytes(const char* bytes, size_t size, size_t count, void* object) noexcept {
  Exchange& self = *static_cast<Exchange*>(object);
  self.heard_ = Clock::now();
  bool goes_on = false;
  self.thrown_ = exception_of([&] { goes_on = self.take(std::as_bytes(std::span(bytes, size * count))); });
  return goes_on ? size * count : 0;
}

bool HttpClient::Exchange::take(std::span<const std::byte> bytes) {
  if (sink_->body && has_content(answer_.status)) return !(stopped_ = !sink_->body(bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!sink_->body) {
    if (answer_.body.size() + text.size() > kMaxBody) wrong_ = "the answer is larger than 64 MiB";
    if (!wrong_) answer_.body += text;
    return !wrong_;
  }
  // The text may be long; its beginning has the reason.
  answer_.body += text.substr(0, kMaxErrorText - answer_.body.size());
  return (error_bytes_ += text.size()) <= kMaxError;
}

size_t HttpClient::Exchange::give_bytes(char* room, size_t size, size_t count, void* object) noexcept {
  Exchange& self = *static_cast<Exchange*>(object);
  const size_t bytes = std::min(size * count, self.piece_.size());
  self.waits_ = bytes == 0 && self.left_ > 0;
  if (self.waits_) return CURL_READFUNC_PAUSE;
  if (bytes > 0) std::memcpy(room, self.piece_.data(), bytes);
  self.piece_ = self.piece_.subspan(bytes);
  self.left_ -= bytes;
  return bytes;
}

HttpClient::Exchange::Exchange(Handles& handles, const ClientTls& tls, const HttpLimits& limits,
                               const HttpRequest& request, Check check, const AnswerSink* sink, const uint64_t* bytes)
    : handles_(handles),
      check_(std::move(check)),
      sink_(sink),
      silence_(limits.silence),
      body_bytes_(bytes ? *bytes : request.body.size()),
      left_(bytes ? *bytes : 0) {
  curl_easy_reset(handles_.curl);  // keeps connections
  for (const std::string& field : request.fields) add(fields_, field);
  add(fields_, bytes ? "Expect: 100-continue" : "Expect:");
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTPS | CURLPROTO_HTTP));
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // parallel ranges need separate connections
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handles_.curl, CURLOPT_QUICK_EXIT, 1L);  // since 7.87: waits for no name lookup that is given up
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_HTTPHEADER, fields_.get());
  set(CURLOPT_USERAGENT, ("sconce/" + version()).c_str());
  set(CURLOPT_BUFFERSIZE, kBuffer);
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
  if (limits.slow.count() > 0) {
    set(CURLOPT_LOW_SPEED_LIMIT, kSlowest);
    set(CURLOPT_LOW_SPEED_TIME, std::max<long>(1, static_cast<long>(limits.slow.count() / 1000)));
  }
  set(CURLOPT_ERRORBUFFER, handles_.reason.data());
  set(CURLOPT_HEADERFUNCTION, &take_line);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &take_bytes);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set_tls(tls);
  if (!request.address.empty()) {
    const bool six = request.address.find(':') != std::string::npos;
    add(addresses_, "::" + (six ? "[" + request.address + "]" : request.address) + ":");
    set(CURLOPT_CONNECT_TO, addresses_.get());
  }
  // libcurl sends a request again whose open connection the server has closed.
  if (!request.repeatable) set(CURLOPT_FRESH_CONNECT, 1L);
  if (request.netrc) set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (request.direct) set(CURLOPT_PROXY, "");
  if (bytes || !request.body.empty() || request.method == "POST") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body_bytes_));
    if (bytes) {
      set(CURLOPT_READFUNCTION, &give_bytes);
      set(CURLOPT_READDATA, static_cast<void*>(this));
      set(CURLOPT_UPLOAD_BUFFERSIZE, kUpload);
    } else {
      set(CURLOPT_POSTFIELDS, request.body.c_str());
    }
  }
  if (!request.method.empty()) set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  handles_.reason[0] = '\0';
  SCONCE_CHECK(curl_multi_add_handle(handles_.multi, handles_.curl) == CURLM_OK, kUnavailable,
               "libcurl accepts no request");
}

void HttpClient::Exchange::set_tls(const ClientTls& tls) {
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!tls.ciphers.empty()) set(CURLOPT_SSL_CIPHER_LIST, tls.ciphers.c_str());
  const auto named = [&tls](const char* variable) {
    const char* const value = tls.ca.empty() ? std::getenv(variable) : nullptr;
    return value && *value ? value : nullptr;
  };
  const char* const file = tls.ca.empty() ? named("SSL_CERT_FILE") : tls.ca.c_str();
  const char* const folder = named("SSL_CERT_DIR");
  if (file) set(CURLOPT_CAINFO, file);
  // libcurl trusts its default folder beside a file.
  if (folder || file) set(CURLOPT_CAPATH, folder);
  if (tls.certificate.empty()) return;
  set(CURLOPT_SSLCERT, tls.certificate.c_str());
  set(CURLOPT_SSLKEY, tls.key.c_str());
  set(CURLOPT_KEYPASSWD, "");  // prevents a question on the terminal
}

template <class Done>
bool HttpClient::Exchange::run(const Done& done) {
  heard_ = Clock::now();
  while (!ended_) {
    int running = 0;
    const CURLMcode failure = curl_multi_perform(handles_.multi, &running);
    SCONCE_CHECK(failure == CURLM_OK, kUnavailable, "libcurl fails with ", static_cast<int>(failure));
    if (thrown_) std::rethrow_exception(thrown_);
    if (running == 0) {
      int others = 0;
      if (const CURLMsg* const last = curl_multi_info_read(handles_.multi, &others)) code_ = last->data.result;
      if (code_ == CURLE_OK && !begun_) code_ = CURLE_GOT_NOTHING;  // libcurl accepts a header that is cut off
      ended_ = true;
      break;
    }
    if (done()) return true;
    if (check_ && !check_()) {
      end("stopped");
      break;
    }
    if (const uint64_t now_sent = sent(); now_sent != sent_) {
      sent_ = now_sent;
      heard_ = Clock::now();
    }
    if (silence_.count() > 0 && sent_ > 0 && Clock::now() - heard_ > silence_) {
      end(begun_ ? kSilent : std::string("no answer: ") + kSilent);
      answer_.temporary = true;
      break;
    }
    curl_multi_poll(handles_.multi, nullptr, 0, kSliceMs, nullptr);
  }
  return false;
}

bool HttpClient::Exchange::send(std::span<const std::byte> piece) {
  piece_ = piece;
  if (std::exchange(waits_, false)) curl_easy_pause(handles_.curl, CURLPAUSE_CONT);
  const bool sent = run([this] { return waits_ || uploaded() == body_bytes_; });
  piece_ = {};
  return sent;
}

std::string HttpClient::Exchange::problem() const {
  const std::string text = handles_.reason[0] != 0 ? handles_.reason.data() : curl_easy_strerror(code_);
  const long number = info<long>(CURLINFO_OS_ERRNO);
  const std::string reason = number ? std::system_category().message(static_cast<int>(number)) : text;
  const auto after = [&text](const char* mark) {
    const size_t at = text.find(mark);
    return at == std::string::npos ? text : text.substr(at + std::strlen(mark));
  };
  switch (code_) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return "cannot find " + after(": ");
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "cannot find the proxy " + after(": ");
    case CURLE_COULDNT_CONNECT:
      return "cannot connect: " + reason;
    case CURLE_PEER_FAILED_VERIFICATION:
      return "no TLS: the certificate was refused: " + after("problem: ");
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
      return "no TLS: " + text;
    case CURLE_SEND_ERROR:
      return "cannot send the request: " + reason;
    default:
      break;
  }
  if (code_ == CURLE_OPERATION_TIMEDOUT && sent() == 0) return std::string("cannot connect: ") + kSilent;
  const std::string prefix = begun_ ? "" : "no answer: ";
  if (code_ == CURLE_GOT_NOTHING || code_ == CURLE_PARTIAL_FILE) return prefix + "the server closed the connection";
  if (text.find("HTTP/0.9") != std::string::npos) return prefix + "the server does not speak HTTP/1.1";
  return prefix + text;
}

Answer HttpClient::Exchange::answer() {
  run([] { return false; });
  const bool has_reason = error_bytes_ > kMaxError;  // the rest of an error's text was not read
  if (code_ != CURLE_OK) handles_.failed = true;
  if (stopped_)
    answer_.problem = "stopped";
  else if (!problem_.empty())
    answer_.problem = problem_;
  else if (wrong_)
    answer_.problem = wrong_;
  else if (code_ != CURLE_OK && !has_reason)
    answer_.problem = problem();
  if (!answer_.problem.empty()) answer_.status = 0;
  answer_.temporary |= may_pass(code_);
  answer_.delivered = info<long>(CURLINFO_REQUEST_SIZE) > 0 && uploaded() == body_bytes_;
  const char* const target = info<const char*>(CURLINFO_REDIRECT_URL);
  if (target) answer_.redirect = target;
  return std::move(answer_);
}

HttpClient::HttpClient(ClientTls tls, HttpLimits limits) : tls_(std::move(tls)), limits_(limits) { require_curl(); }

HttpClient::~HttpClient() = default;

HttpClient::Handles& HttpClient::handles() {
  exchange_.reset();
  // After a failed name lookup, libcurl 7.88 no longer accepts CURLOPT_BUFFERSIZE.
  if (!handles_ || handles_->failed) handles_ = std::make_unique<Handles>();
  return *handles_;
}

Answer HttpClient::ask(const HttpRequest& request, const Check& check, const AnswerSink& sink) {
  return Exchange(handles(), tls_, limits_, request, check, &sink, nullptr).answer();
}

bool HttpClient::begin(const HttpRequest& request, uint64_t bytes, const Check& check) {
  static const AnswerSink kNone;
  exchange_ = std::make_unique<Exchange>(handles(), tls_, limits_, request, check, &kNone, &bytes);
  return exchange_->begin();
}

bool HttpClient::send(std::span<const std::byte> piece) { return exchange_->send(piece); }

Answer HttpClient::answer(std::chrono::milliseconds silence) {
  exchange_->set_silence(silence);
  Answer answer = exchange_->answer();
  exchange_.reset();
  return answer;
}

}  // namespace sconce::server::http
