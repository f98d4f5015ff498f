#include "server/telemetry/otlp/otlp_endpoint.h"

#include <strings.h>

#include <algorithm>
#include <fstream>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/trim.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::telemetry {
namespace {

using std::chrono::seconds;

constexpr std::chrono::milliseconds kFirstPause{1000}, kLongestPause{30'000};
// Maximum delay that a collector may request; beyond it, queued data would be dropped anyway.
constexpr seconds kMaxRetryAfter{300};

bool is_token(std::string_view name) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kMarks.find(c) != kMarks.npos;
  });
}

bool is_content_type(const std::string& field) {
  constexpr std::string_view kName = "content-type";
  return ::strncasecmp(field.c_str(), kName.data(), kName.size()) == 0 && !is_token(field.substr(0, kName.size() + 1));
}

// The member's value: a number, or a number as text.
uint64_t count_of(const OrderedJson& json, const char* member) {
  const auto at = json.find(member);
  if (at == json.end()) return 0;
  if (at->is_number_unsigned()) return at->get<uint64_t>();
  return at->is_string() ? parse_number<uint64_t>(at->get<std::string>()).value_or(0) : 0;
}

// Reads a protobuf varint from the beginning of `text`. Returns false if there is none.
bool take_varint(std::string_view& text, uint64_t& value) noexcept {
  value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(text.front());
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

// Calls number(field, value) and bytes(field, value) for each field of a message. Returns false for a malformed
// message.
template <class Number, class Bytes>
bool read_message(std::string_view text, const Number& number, const Bytes& bytes) {
  while (!text.empty()) {
    uint64_t tag = 0, value = 0;
    if (!take_varint(text, tag) || tag >> 3 == 0 || !take_varint(text, value)) return false;
    if ((tag & 7) == 0) {
      number(tag >> 3, value);
    } else if ((tag & 7) == 2 && value <= text.size()) {
      if (!bytes(tag >> 3, text.substr(0, value))) return false;
      text.remove_prefix(value);
    } else {
      return false;
    }
  }
  return true;
}

// ExportTraceServiceResponse and similar messages: field 1 is a partial success; its field 1 is the number of rejected
// items, its field 2 the message. Returns false for other texts.
bool read_partial_success(std::string_view text, OtlpPush& push) {
  const auto nothing = [](uint64_t, uint64_t) {};
  return read_message(text, nothing, [&](uint64_t outer, std::string_view partial) {
    return outer != 1 || read_message(
                             partial, [&](uint64_t field, uint64_t value) { push.rejected = field == 1 ? value : 0; },
                             [&](uint64_t field, std::string_view message) {
                               if (field == 2) push.problem = message;
                               return true;
                             });
  });
}

}  // namespace

http::AdminServer parse_otlp_url(std::string_view url) {
  SCONCE_CHECK(url.find("://") != std::string_view::npos, kInvalidArgument,
               "setting otlp: expected a URL such as http://collector:4318, or off, got '", excerpt(url), "'");
  return http::parse_server(url, url.starts_with("https:") ? "443" : "80", "setting otlp: ");
}

std::vector<std::string> read_otlp_headers(const std::string& path) {
  std::vector<std::string> fields;
  if (path.empty()) return fields;
  std::ifstream file(path);
  SCONCE_CHECK(file, kIo, "cannot read setting otlp_headers_file: ", path);
  int number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const std::string_view line = trim(text, " \t\r");
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, std::min(colon, line.size()));
    SCONCE_CHECK(colon != std::string_view::npos && is_token(name), kInvalidArgument,
                 "setting otlp_headers_file: expected NAME: VALUE in ", path, ":", number);
    const std::string_view value = trim(line.substr(colon + 1));
    SCONCE_CHECK(std::all_of(value.begin(), value.end(), [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; }),
                 kInvalidArgument, "setting otlp_headers_file: a value has only printable characters, in ", path, ":",
                 number);
    // libcurl's form of a field without a value.
    fields.push_back(std::string(name) + (value.empty() ? ";" : ": " + std::string(value)));
  }
  SCONCE_CHECK(!file.bad(), kIo, "cannot read setting otlp_headers_file: ", path);
  return fields;
}

OtlpPush judge_otlp(const http::Answer& answer) {
  constexpr std::array kRetryable = {429, 502, 503, 504};
  OtlpPush push;
  if (answer.ok()) {
    push.result = OtlpPush::Result::kTaken;
    if (answer.body.empty()) return push;
    const OrderedJson json = OrderedJson::parse(answer.body, nullptr, false);
    if (!json.is_object()) {
      // Some collectors answer JSON in protobuf. An HTML page comes from another program, which has not accepted the
      // data.
      if (!trim(answer.body, " \t\r\n").starts_with('<')) {
        OtlpPush read = push;
        return read_partial_success(answer.body, read) ? read : push;
      }
      push.result = OtlpPush::Result::kRefused;
      push.problem = "the answer is a page and not a collector's: " + excerpt(answer.body);
      return push;
    }
    const auto partial = json.find("partialSuccess");
    if (partial == json.end() || !partial->is_object()) return push;
    push.rejected = count_of(*partial, "rejectedSpans") + count_of(*partial, "rejectedDataPoints");
    if (const auto message = partial->find("errorMessage"); message != partial->end() && message->is_string())
      push.problem = message->get<std::string>();
    return push;
  }
  push.problem = answer.reason();
  if (answer.status == 0 && push.problem.ends_with("does not speak HTTP/1.1"))
    push.problem += "; OTLP over HTTP is a collector's port 4318, 4317 is for gRPC";
  const bool again =
      answer.status == 0 || std::find(kRetryable.begin(), kRetryable.end(), answer.status) != kRetryable.end();
  if (again) push.result = OtlpPush::Result::kAgain;
  if (const auto after = parse_number<uint32_t>(answer.field("retry-after")))
    push.retry_after = std::min<seconds>(seconds(*after), kMaxRetryAfter);
  return push;
}

std::chrono::milliseconds otlp_pause(int tries, std::optional<seconds> retry_after, double random) noexcept {
  if (retry_after) return *retry_after;
  const auto longest = std::min(kFirstPause * (int64_t{1} << std::clamp(tries - 1, 0, 10)), kLongestPause);
  // At least half of the delay, plus a random part, so that many servers do not retry at the same time.
  return std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(longest.count()) * (0.5 + random / 2)));
}

OtlpEndpoint::OtlpEndpoint(const ServerConfig& config)
    : url_(config.otlp),
      headers_file_(config.otlp_headers_file),
      timeout_(config.otlp_timeout),
      server_(parse_otlp_url(url_)) {
  (void)read_otlp_headers(headers_file_);
  if (server_.tls) tls_ = http::checked_tls(config.otlp_ca, {}, {});
}

OtlpPush OtlpEndpoint::push(const std::string& path, std::string_view body, const std::function<void()>& check) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + timeout_;
  OtlpPush push;
  const std::string problem = problem_of([&] {
    http::HttpRequest request;
    request.url = server_.url(path);
    request.fields = read_otlp_headers(headers_file_);
    if (std::none_of(request.fields.begin(), request.fields.end(), is_content_type))
      request.fields.emplace_back("Content-Type: application/json");
    request.body = body;
    request.direct = request.repeatable = true;
    if (!client_)
      client_.emplace(tls_, http::HttpLimits{.connect = std::chrono::ceil<std::chrono::milliseconds>(timeout_)});
    push = judge_otlp(client_->ask(request, [&] {
      SCONCE_CHECK(Clock::now() < end, kUnavailable, "no answer within otlp_timeout");
      check();
      return true;
    }));
  });
  if (!problem.empty()) {
    push.result = OtlpPush::Result::kAgain;
    push.problem = problem;
  }
  return push;
}

}  // namespace sconce::server::telemetry
