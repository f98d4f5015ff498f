#include "server/http/request_reader.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "server/support/memory/request_budget.h"

namespace sconce::server::http {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

bool is_error(const boost::beast::error_code& ec) { return ec && ec != boost::beast::http::error::need_more; }

}  // namespace

RequestReader::RequestReader(const ServerConfig& config, uint64_t most_body, RequestBudget& budget,
                             Transport& transport, ClientClock& clock, bool counts)
    : config_(config),
      most_body_(most_body),
      budget_(budget),
      transport_(transport),
      clock_(clock),
      counts_(counts),
      buffer_(static_cast<size_t>(config.max_header_bytes)),
      body_(&budget),
      plain_(&budget) {}

RequestReader::Step RequestReader::refuse(int status, std::string_view message) noexcept {
  refusal_ = {status, message};
  return Step::kRefused;
}

RequestReader::Step RequestReader::read_head() {
  if (!std::exchange(begun_, true)) buffer_.mark();
  if (buffer_.empty()) return Step::kMore;
  if (part_ == Part::kNothing) {
    part_ = Part::kHead;
    head_time_ = clock_.now();
    looks_ = 0;
    clock_.moved(head_time_);
    clock_.until(head_time_ + config_.header_timeout);
  }
  ++looks_;
  const bool waits = buffer_.at_mark() && buffer_.here()[0] == '\r' && !empty_line_ && !skip_empty_line();
  if (waits || buffer_.empty()) return Step::kMore;
  if (looks_ == 1 && last_.begins(buffer_.here())) {
    repeated_ = true;
    buffer_.use(last_.bytes());
    return head_is_here();
  }
  if (!parser_) parser_.emplace(most_body_);
  boost::beast::error_code ec;
  buffer_.use(parser_->put(asio::const_buffer(buffer_.here().data(), buffer_.size()), ec));
  if (is_error(ec)) return refuse(parser_->status(ec), parser_->problem(ec));
  if (ec || !parser_->is_header_done()) return Step::kMore;
  if (!chunked()) last_.remember(buffer_.since_mark(), *parser_);
  return head_is_here();
}

RequestReader::Step RequestReader::head_is_here() noexcept {
  if (!chunked() && content_length() == 0) part_ = Part::kWhole;
  return Step::kHead;
}

// An upload needs the parser itself.
UploadSource RequestReader::begin_upload() {
  if (std::exchange(repeated_, false)) {
    parser_.emplace(most_body_);
    boost::beast::error_code ec;
    parser_->put(asio::const_buffer(last_.text().data(), last_.bytes()), ec);
  }
  return {&transport_, &*parser_, &buffer_};
}

// Skips one empty line before a request, since some clients send it after a body. Returns false if only half of it has
// arrived.
bool RequestReader::skip_empty_line() noexcept {
  if (buffer_.size() < 2) return false;
  empty_line_ = true;
  if (buffer_.here()[1] != '\n') return true;  // reported by the parser
  buffer_.use(2);
  buffer_.mark();
  if (!buffer_.empty()) return true;
  part_ = Part::kNothing;
  clock_.until(clock_.now() + config_.idle_timeout);
  return true;
}

bool RequestReader::begin_body() {
  const bool here = body_is_here();
  const uint64_t length = content_length();
  // The header was used, and copied where needed; the body overwrites it.
  if (!repeated_) parser_->forget_texts();
  if (!here && length > body_.capacity()) budget_.check(length - body_.capacity());
  if (head().expects_continue && !here) {
    // A client that waits for this line has room for it. If it does not accept the line, waiting is useless.
    Transport::error_code ec;
    const asio::const_buffer line = asio::buffer(kContinue);
    if (transport_.write_some({&line, &line + 1}, ec) != kContinue.size()) return false;
  }
  body_bytes_ = static_cast<size_t>(length);
  body_.prepare(body_bytes_, static_cast<size_t>(std::min<uint64_t>(head().json_length.value_or(0), length)));
  if (chunked()) {
    parser_->collect(body_);
    part_ = Part::kChunkedBody;
  } else {
    part_ = Part::kFixedBody;
  }
  if (!here) clock_.begin_pace(Pace::of(config_.body_timeout, config_.min_rate));
  return true;
}

RequestReader::Step RequestReader::read_body() {
  if (part_ == Part::kFixedBody) {
    const size_t here = std::min(body_bytes_ - body_.size(), buffer_.size());
    body_.append(buffer_.here().data(), here);
    buffer_.use(here);
    if (body_.size() < body_bytes_) return Step::kMore;
  } else {
    parser_->eager(true);
    if (buffer_.empty()) return Step::kMore;
    boost::beast::error_code ec;
    buffer_.use(parser_->put(asio::const_buffer(buffer_.here().data(), buffer_.size()), ec));
    if (is_error(ec)) {
      const int status = parser_->status(ec);
      return status == 413 ? Step::kTooLong : refuse(status, parser_->problem(ec));
    }
    if (!parser_->is_done()) return Step::kMore;
  }
  part_ = Part::kWhole;
  largest_ = std::max(largest_, body_.size());
  return Step::kBody;
}

// Only needed before the first bytes of a header; later the buffer is open.
bool RequestReader::open_buffer() noexcept {
  if (!counts_ || !budget_.counts_small() || buffer_share_.take_small(budget_, buffer_.capacity())) return true;
  part_ = Part::kHead;  // its bytes are there
  refuse(503, "no room for another request among those of other connections (setting request_memory)");
  return false;
}

void RequestReader::rest() noexcept {
  if (part_ != Part::kNothing || !buffer_.empty()) return;
  buffer_.close();
  buffer_share_.give_back();
}

std::span<char> RequestReader::room() {
  switch (part_) {
    case Part::kNothing:
      buffer_.clear();
      if (!buffer_.is_open() && !open_buffer()) return {};
      break;
    case Part::kHead:
      if (!buffer_.full()) break;
      if (buffer_.mark_in_front()) {
        refuse(431, "request header is larger than max_header_bytes");
        return {};
      }
      // The header begins behind another request: move it to the front and parse it again.
      buffer_.rewind();
      buffer_.compact();
      parser_.emplace(most_body_);
      break;
    case Part::kFixedBody: {
      const size_t room = body_.make_room(body_bytes_);
      return {reinterpret_cast<char*>(body_.end()), room};
    }
    default:
      buffer_.compact();
      if (!buffer_.full()) break;
      refuse(400, "malformed chunk: header or trailer too large");
      return {};
  }
  return buffer_.room();
}

std::span<char> RequestReader::room_for_nothing() noexcept {
  static thread_local std::array<char, 4096> shared;  // nobody reads it
  return buffer_.is_open() ? buffer_.all() : std::span<char>(shared);
}

void RequestReader::received(size_t bytes) noexcept {
  if (part_ == Part::kFixedBody) {
    body_.commit(bytes);
  } else {
    buffer_.add(bytes);
  }
  if (part_ > Part::kHead) clock_.keep_pace(bytes);
}

void RequestReader::end_upload(bool whole) noexcept { part_ = whole ? Part::kWhole : Part::kHead; }

void RequestReader::inflate(uint64_t most) {
  const Coding coding = head().coding;
  if (coding == Coding::kIdentity) return;
  part_ = Part::kPlain;
  // Also for a body that is refused before its end.
  struct Noted {
    size_t& largest;
    const BodyBuffer& plain;
    ~Noted() { largest = std::max(largest, plain.size()); }
  } noted{largest_, plain_};
  decompress(coding, body_, static_cast<size_t>(head().json_length.value_or(0)), most, plain_);
}

void RequestReader::end() noexcept {
  parser_.reset();
  begun_ = repeated_ = false;
  part_ = Part::kNothing;
  empty_line_ = false;
}

void RequestReader::trim(size_t keep) noexcept {
  body_.trim(keep);
  plain_.trim(keep);
  largest_ = 0;
}

}  // namespace sconce::server::http
