#include "server/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <charconv>
#include <cstring>

#include "server/support/trim.h"

namespace sconce::server::http {
namespace {

namespace beast_http = boost::beast::http;

constexpr char kFolded[] = "malformed request: a folded header line";

std::string_view view(boost::beast::string_view text) noexcept { return {text.data(), text.size()}; }

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Host and port of RFC 3986, approximately.
bool is_host(std::string_view text) noexcept {
  constexpr std::string_view kOthers = "-._~!$&'()*+,;=:%[]";
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

}  // namespace

RequestParser::RequestParser(uint64_t max_body_bytes) : max_body_bytes_(max_body_bytes) {
  header_limit(UINT32_MAX);  // the connection's buffer sets the limit
  body_limit(max_body_bytes);
}

void RequestParser::refuse(int status, const char* problem, error_code& ec) noexcept {
  status_ = status;
  problem_ = problem;
  ec = beast_http::error::bad_value;
}

int RequestParser::status(error_code ec) const noexcept {
  if (problem_ != nullptr) return status_;
  if (ec == beast_http::error::body_limit) return 413;
  return 400;
}

std::string_view RequestParser::problem(error_code ec) const noexcept {
  if (problem_ != nullptr) return problem_;
  if (ec == beast_http::error::body_limit) return "request body is larger than max_body_bytes";
  if (ec == beast_http::error::bad_version) return "malformed request line, or not HTTP/1.0 or HTTP/1.1";
  // The server sets no limit, so this error is Beast's, for folded lines.
  if (ec == beast_http::error::header_limit) return kFolded;
  if (ec == beast_http::error::bad_method) return "malformed request: method";
  if (ec == beast_http::error::bad_target) return "malformed request: target";
  if (ec == beast_http::error::bad_field || ec == beast_http::error::bad_value ||
      ec == beast_http::error::bad_obs_fold || ec == beast_http::error::bad_line_ending) {
    return "malformed request: header field";
  }
  if (ec == beast_http::error::bad_content_length || ec == beast_http::error::multiple_content_length) {
    return "malformed or contradictory Content-Length";
  }
  if (ec == beast_http::error::bad_transfer_encoding) return "malformed or contradictory Transfer-Encoding";
  return "malformed request";
}

void RequestParser::on_request_impl(verb method, string_view method_text, string_view target, int version,
                                    error_code&) {
  head_.method_text = view(method_text);
  head_.target = view(target);
  head_.http11 = version >= 11;
  head_.head_only = method == verb::head;
  head_.method = method == verb::get || method == verb::head ? Method::kGet
                 : method == verb::post                      ? Method::kPost
                 : method == verb::delete_                   ? Method::kDelete
                 : method == verb::put                       ? Method::kPut
                                                             : Method::kOther;
}

// RFC 9112, 5.2. Beast copies such a value into its own memory, or takes its second line for the whole value.
bool RequestParser::is_folded(string_view name, string_view value) const noexcept {
  const auto at = reinterpret_cast<uintptr_t>(value.data()), begin = reinterpret_cast<uintptr_t>(parsed_.data());
  if (at < begin || at + value.size() > begin + parsed_.size()) return true;
  return std::find(name.data() + name.size(), value.data(), '\n') != value.data();
}

void RequestParser::on_field_impl(field name, string_view name_text, string_view value, error_code& ec) {
  if (is_folded(name_text, value)) return refuse(400, kFolded, ec);
  const auto is = [&](std::string_view expected) {
    return boost::beast::iequals(value, {expected.data(), expected.size()});
  };
  const auto keep = [&](std::string_view& text, const char* twice = nullptr) {
    if (twice != nullptr && !text.empty()) return refuse(400, twice, ec);
    text = trim(view(value));
  };
  switch (name) {
    case field::host:
      if (has_host_) return refuse(400, "two Host fields", ec);
      if (!is_host(trim(view(value)))) return refuse(400, "malformed Host", ec);
      has_host_ = true;
      return keep(head_.host);
    case field::content_length:
      if (has_length_ || !is_digits(trim(view(value))))
        return refuse(400, "malformed or contradictory Content-Length", ec);
      has_length_ = true;
      return;
    case field::transfer_encoding:
      if (!head_.http11) return refuse(400, "Transfer-Encoding in an HTTP/1.0 request", ec);
      if (!is("chunked")) return refuse(400, "Transfer-Encoding must be chunked", ec);
      return;
    case field::content_encoding:
      if (has_coding_) return refuse(400, "two Content-Encoding fields", ec);
      has_coding_ = true;
      if (const std::optional<Coding> coding = coding_from_name(trim(view(value)))) {
        head_.coding = *coding;
        return;
      }
      return refuse(415, "Content-Encoding is not supported: gzip and deflate are", ec);
    case field::accept_encoding:
      head_.accepts = accepted_coding(view(value));
      return;
    case field::expect:
      if (!is("100-continue")) return refuse(417, "Expect must be 100-continue", ec);
      head_.expects_continue = head_.http11;
      return;
    case field::accept:
      head_.accepts_html = view(value).find("text/html") != std::string_view::npos;
      return;
    case field::authorization:
      return keep(head_.authorization, "two Authorization fields");
    case field::origin:
      // A browser sends one field. With two, different readers may choose different ones.
      if (has_origin_) return refuse(400, "two Origin fields", ec);
      has_origin_ = true;
      return keep(head_.origin);
    case field::access_control_request_method:
      return keep(head_.page_method);
    case field::access_control_request_headers:
      return keep(head_.page_fields);
    case field::user_agent:
      return keep(head_.user_agent);
    case field::content_type:
      return keep(head_.content_type);
    case field::if_none_match:
      return keep(head_.if_none_match);
    case field::unknown: {
      const auto named = [&](std::string_view expected) {
        return boost::beast::iequals(name_text, {expected.data(), expected.size()});
      };
      if (named("X-Request-Id")) return keep(head_.request_id);
      if (named("traceparent")) return keep(head_.traceparent);
      if (named("Sconce-Weights")) return keep(head_.weights, "two Sconce-Weights fields");
      if (named("Sconce-Affinity")) return keep(head_.affinity);
      if (named("Sconce-Signature")) return keep(head_.signature, "two Sconce-Signature fields");
      if (named("Content-Digest")) return keep(head_.content_digest, "two Content-Digest fields");
      if (!named("Inference-Header-Content-Length")) return;
      const std::string_view digits = trim(view(value));
      uint64_t length = 0;
      if (head_.json_length || !is_digits(digits) ||
          std::from_chars(digits.data(), digits.data() + digits.size(), length).ec != std::errc()) {
        return refuse(400, "malformed Inference-Header-Content-Length", ec);
      }
      head_.json_length = length;
      return;
    }
    default:
      return;
  }
}

void RequestParser::on_header_impl(error_code& ec) {
  if (head_.http11 && !has_host_) refuse(400, "HTTP/1.1 request without a Host field", ec);
}

void RequestParser::forget_texts() noexcept {
  for (std::string_view RequestHeader::*const text : kHeadTexts) head_.*text = {};
}

size_t RequestParser::put(boost::asio::const_buffer bytes, error_code& ec) {
  parsed_ = {static_cast<const char*>(bytes.data()), bytes.size()};
  if (is_header_done() && chunked()) return collect_chunks(parsed_, ec);
  return basic_parser::put(bytes, ec);
}

size_t RequestParser::collect_chunks(std::string_view here, error_code& ec) {
  ec = {};
  size_t used = 0;
  while (used < here.size() && !chunks_.done()) {
    const ChunkDecoder::Step step = chunks_.step(here.substr(used), SIZE_MAX);
    used += step.used;
    if (chunks_.problem() != nullptr) {
      refuse(400, chunks_.problem(), ec);
      break;
    }
    const uint64_t room = max_body_bytes_ - std::min<uint64_t>(body_->size(), max_body_bytes_);
    if (step.data.size() > room || chunks_.announced() > room - step.data.size()) {
      ec = beast_http::error::body_limit;
      break;
    }
    if (!step.data.empty()) body_->append(step.data.data(), step.data.size());
  }
  return used;
}

RequestParser::Decoded RequestParser::decode_chunks(std::string_view here, std::span<std::byte> room, error_code& ec) {
  ec = {};
  Decoded decoded;
  while (decoded.used < here.size() && decoded.bytes < room.size() && !chunks_.done()) {
    const ChunkDecoder::Step step = chunks_.step(here.substr(decoded.used), room.size() - decoded.bytes);
    decoded.used += step.used;
    if (chunks_.problem() != nullptr) {
      refuse(400, chunks_.problem(), ec);
      break;
    }
    if (!step.data.empty()) std::memcpy(room.data() + decoded.bytes, step.data.data(), step.data.size());
    decoded.bytes += step.data.size();
  }
  return decoded;
}

}  // namespace sconce::server::http
