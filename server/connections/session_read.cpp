// The part of a session that reads requests.
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <cstring>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce {
namespace {

namespace asio = boost::asio;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// After a refusal the client may go on sending this much, this long, so that it sees the answer rather than a reset.
constexpr size_t kLingerBytes = 4 * 1024 * 1024;
// Of a request line, in the access log.
std::string shown(std::string_view text) {
  return text.size() <= kExcerptBytes ? printable(text) : printable(text.substr(0, kExcerptBytes - 3)) + "...";
}

}  // namespace

// Of an upload of weights, which begin_admin() takes, the limit is its own.
uint64_t Session::body_limit() const noexcept {
  return listener_ == kAdmin ? INT64_MAX : static_cast<uint64_t>(worker_.service().config.max_body_bytes);
}

Session::Next Session::read_header() {
  if (!parser_) {
    parser_.emplace(body_limit());
    header_ = begin_;
  }
  if (begin_ != end_) {
    if (!saw_bytes_) {
      saw_bytes_ = true;
      const Clock::time_point now = Clock::now();
      clock_.moved(now);
      clock_.until(now + worker_.service().config.header_timeout);
    }
    const bool waits = begin_ == header_ && in_[begin_] == '\r' && !empty_line_ && !skip_empty_line();
    boost::beast::error_code ec;
    if (begin_ != end_ && !waits) begin_ += parser_->put(asio::const_buffer(in_.get() + begin_, end_ - begin_), ec);
    if (!ec && parser_->is_header_done()) {
      begin_body();
      return Next::kContinue;
    }
    if (ec && ec != boost::beast::http::error::need_more) {
      body_left_ = true;
      refuse(parser_->status(ec), parser_->problem(ec));
      return Next::kContinue;
    }
  }
  if (reading_) return Next::kWait;
  if (!saw_bytes_) header_ = begin_ = end_ = 0;
  if (end_ == in_capacity_) {
    if (header_ == 0) {
      body_left_ = true;
      refuse(431, "request header is larger than max_header_bytes");
      return Next::kContinue;
    }
    // The header started behind another request: move it to the front and parse it anew.
    std::memmove(in_.get(), in_.get() + header_, end_ - header_);
    end_ -= header_;
    header_ = begin_ = 0;
    parser_.emplace(body_limit());
  }
  read(in_.get() + end_, in_capacity_ - end_);
  return Next::kWait;
}

// One before a request is ignored: some clients send it behind a body. False: only half of it is there.
bool Session::skip_empty_line() noexcept {
  if (end_ - begin_ < 2) return false;
  empty_line_ = true;
  if (in_[begin_ + 1] != '\n') return true;  // that is the parser's to say
  header_ = begin_ += 2;
  if (begin_ != end_) return true;
  saw_bytes_ = false;  // no request has begun
  clock_.until(Clock::now() + worker_.service().config.idle_timeout);
  return true;
}

void Session::begin_body() {
  const ServerConfig& config = worker_.service().config;
  const RequestHead& head = parser_->head();
  start_ = Clock::now();
  clock_.begin_phase(start_);
  head_only_ = head.head_only;
  http11_ = head.http11;
  json_length_ = head.json_length;
  keep_alive_ = parser_->keep_alive();
  request_id_.begin(head.request_id);
  if (worker_.service().tracer.enabled()) trace_parent_ = TraceParent::parse(head.traceparent);
  if (config.access_log) {
    access_line_ = shown(head.method_text) + " " + shown(head.target);
  }
  const uint64_t length = parser_->content_length().value_or(0);
  const bool all_here = !parser_->chunked() && length <= end_ - begin_;
  // Until the body was taken, whatever goes wrong must end the connection: its bytes are no request.
  body_left_ = parser_->chunked() || length != 0;
  if (head.target != cached_target_ || head.method != cached_method_) {
    cached_target_.clear();
    cached_path_ = canonical_target(head.target);
    cached_method_ = head.method;
    cached_target_ = head.target;
    route_ = find_route(cached_path_.path, cached_method_, listener_);
  }
  routed_ = true;
  // What is asked of nobody is refused before its body is read.
  if ((route_.result != RouteMatch::Result::kFound || forbidden()) && !all_here) return route_request();
  if (refuse_access()) return;
  if (listener_ == kAdmin && begin_admin(length)) return;
  const bool found = route_.result == RouteMatch::Result::kFound;
  if (found && body_left_ && head.coding != Coding::kIdentity && !is_inference(route_of(route_)))
    return refuse(415, "Content-Encoding is supported for inference only");
  if (!all_here && !limit_body()) return;
  // What the header says was looked at, and copied where it is needed: the body is read over it.
  parser_->forget_texts();
  if (!all_here && length > body_.capacity()) worker_.service().request_memory.check(length - body_.capacity());
  if (head.expects_continue && !all_here) {
    // A client that waits for this has room for it; one that does not take it is not worth waiting for.
    error_code ec;
    const asio::const_buffer line = asio::buffer(kContinue);
    if (transport_.write_some({&line, &line + 1}, ec) != kContinue.size()) return close();
  }
  body_bytes_ = static_cast<size_t>(length);
  body_.prepare(body_bytes_, static_cast<size_t>(std::min<uint64_t>(json_length_.value_or(0), length)));
  if (parser_->chunked()) {
    parser_->collect(body_);
    state_ = State::kChunkedBody;
  } else {
    state_ = State::kFixedBody;
  }
  if (!all_here) clock_.begin_pace(pace(config.body_timeout));
}

// How much the request may have: what its route, which was found, can use. False: it has more, and is refused.
bool Session::limit_body() {
  most_body_ = body_limit();
  // The errors of a model that is not there, before its request is read.
  const bool inference = route_of(route_).body == BodyLimit::kInputs;
  const uint64_t most =
      inference ? worker_.catalog().ready(route_.model, route_.version)->most_body_bytes() : kMostText;
  most_body_ = std::min(most_body_, most);
  parser_->limit_body(most_body_);
  if (parser_->content_length().value_or(0) <= most_body_) return true;
  refuse_length();
  return false;
}

void Session::refuse_length() {
  const bool by_setting = most_body_ == body_limit();
  refuse(413, by_setting
                  ? std::string("request body is larger than max_body_bytes")
                  : "request body is larger than " + std::to_string(most_body_) +
                        (route_of(route_).body == BodyLimit::kInputs ? " bytes, more than the model's inputs can need"
                                                                     : " bytes, the most that this route takes"));
}

Session::Next Session::read_fixed_body() {
  const size_t here = std::min(body_bytes_ - body_.size(), end_ - begin_);
  body_.append(in_.get() + begin_, here);
  begin_ += here;
  if (body_.size() < body_bytes_) {
    if (!reading_) {
      const size_t room = body_.make_room(body_bytes_);
      read(reinterpret_cast<char*>(body_.end()), room);
    }
    return Next::kWait;
  }
  return dispatch();
}

Session::Next Session::read_chunked_body() {
  parser_->eager(true);
  if (begin_ != end_) {
    boost::beast::error_code ec;
    begin_ += parser_->put(asio::const_buffer(in_.get() + begin_, end_ - begin_), ec);
    if (ec && ec != boost::beast::http::error::need_more) {
      const int status = parser_->status(ec);
      status == 413 ? refuse_length() : refuse(status, parser_->problem(ec));
      return Next::kContinue;
    }
    if (parser_->is_done()) return dispatch();
  }
  if (reading_) return Next::kWait;
  // Nothing before begin_ is needed any more.
  std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  header_ = begin_ = 0;
  if (end_ == in_capacity_) {
    refuse(400, "malformed chunk: header or trailer too large");
    return Next::kContinue;
  }
  read(in_.get() + end_, in_capacity_ - end_);
  return Next::kWait;
}

Session::Next Session::dispatch() {
  body_left_ = false;
  largest_ = std::max(largest_, body_.size());
  count_body(body_.size());
  route_request();
  return Next::kContinue;
}

// Of what no codec was applied to, it is the body as it came.
void Session::inflate_body(uint64_t most) {
  const Coding coding = parser_->head().coding;
  if (coding == Coding::kIdentity) return;
  compressed_ = true;
  // Of a body that is refused halfway as well.
  struct Noted {
    size_t& largest;
    const BodyBuffer& plain;
    ~Noted() { largest = std::max(largest, plain.size()); }
  } noted{largest_, plain_};
  decompress(coding, body_, static_cast<size_t>(json_length_.value_or(0)), most, plain_);
}

void Session::read(char* at, size_t room) {
  begin_operation([&] {
    if (ended_) {
      asio::post(worker_.context(), [this] { on_read(ended_, 0); });
    } else if (!transport_.encrypted()) {
      transport_.socket().async_read_some(asio::buffer(at, room),
                                          [this](error_code ec, size_t bytes) { on_read(ec, bytes); });
    } else {
      error_code ec;
      size_t bytes = 0;
      if (!read_encrypted(at, room, ec, bytes)) return;
      asio::post(worker_.context(), [this, ec, bytes] { on_read(ec, bytes); });
    }
  });
  reading_ = true;
}

// False: on_read() is called once there is something.
bool Session::read_encrypted(char* at, size_t room, error_code& ec, size_t& bytes) {
  bytes = transport_.read_some(at, room, ec);
  if (ec != asio::error::would_block) return true;
  transport_.socket().async_wait(transport_.wait_type(), [this, at, room](error_code e) {
    size_t read = 0;
    bool over = true;
    const bool done = e || state_ == State::kClosed || succeeds([&] { over = read_encrypted(at, room, e, read); });
    if (!done) e = asio::error::no_memory;
    if (over) on_read(e, read);
  });
  return false;
}

void Session::on_read(error_code ec, size_t bytes) noexcept {
  reading_ = false;
  const bool ahead = std::exchange(ahead_, false);
  released();
  ConnectionCounters::add(worker_.counters().received, bytes);
  if (ahead && state_ != State::kLingering && state_ != State::kClosed) {
    end_ += bytes;
    ended_ = ec;  // for the next read: the socket may say it but once
    if (state_ == State::kRunning) {
      if (ec) return client_left(ec != asio::error::eof);
      return watch_client();
    }
    if (state_ != State::kHeader && state_ != State::kFixedBody && state_ != State::kChunkedBody) return;
    return proceed();
  }
  switch (state_) {
    case State::kHeader:
      end_ += bytes;
      break;
    case State::kChunkedBody:
      end_ += bytes;
      clock_.keep_pace(bytes);
      break;
    case State::kFixedBody:
      body_.commit(bytes);
      clock_.keep_pace(bytes);
      break;
    case State::kLingering:
      thrown_away_ += bytes;
      if (ec || thrown_away_ > kLingerBytes || !succeeds([this] { read(in_.get(), in_capacity_); })) close();
      return;
    default:
      return;  // answered in the meantime: what came is of no interest
  }
  if (ec) return close();
  proceed();
}

}  // namespace sconce
