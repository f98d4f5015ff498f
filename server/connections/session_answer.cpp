// The part of a session that answers.
#include <boost/asio/error.hpp>

#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/connections/session.h"

namespace sconce {

namespace asio = boost::asio;

void Session::answer_exception(const std::exception_ptr& problem) {
  Failure failure = describe_failure(problem);
  failure.message = inference_.explain(std::move(failure.message));
  inference_.fail(failure.code);
  if (failure.status >= 500) {
    log_warn(worker_.service().failures, "request failed with {}: {}", failure.status, printable(failure.message));
  }
  answer_error(failure.status, failure.message, response_);
  if (failure.code == ErrorCode::kQueueFull || failure.code == ErrorCode::kUnavailable)
    response_.fields = "Retry-After: 1\r\n";
  if (body_left_) keep_alive_ = false;
  begin_answer();
}

void Session::refuse(int status, std::string_view message) {
  answer_error(status, message, response_);
  keep_alive_ = false;
  begin_answer();
}

void Session::begin_answer() {
  if (body_left_ || worker_.service().draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  // What went wrong can be looked up.
  if (request_id_.given() || response_.status >= 400) response_.request_id = request_id_.text();
  out_.clear();
  const std::string_view head = response_.finish(http11_, !keep_alive_, head_only_, worker_.date());
  out_.emplace_back(head.data(), head.size());
  out_bytes_ = head.size();
  if (!head_only_) {
    for (const Response::Segment& segment : response_.segments) {
      out_.emplace_back(segment.data, segment.bytes);
      out_bytes_ += segment.bytes;
    }
  }
  out_at_ = sent_ = 0;
  state_ = State::kWriting;
  phase_start_ = Clock::now();
  begin_pace(worker_.service().config.write_timeout);
  const bool found = routed_ && route_.result == RouteMatch::Result::kFound;
  worker_.counters().response(found ? route_.route : ConnectionCounters::kNoRoute, response_.status);
}

Session::Next Session::write() {
  while (sent_ < out_bytes_) {
    error_code ec;
    const size_t sent = transport_.write_some({out_.data() + out_at_, out_.data() + out_.size()}, ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) {
      begin_operation(
          [this] { transport_.socket().async_wait(transport_.wait_type(), [this](error_code e) { on_writable(e); }); });
      return Next::kWait;
    }
    if (ec) {
      close();
      return Next::kWait;
    }
    sent_ += sent;
    if (sent_ < out_bytes_) keep_pace(sent);
    ConnectionCounters::add(worker_.counters().sent, sent);
    for (size_t left = sent; left > 0;) {
      asio::const_buffer& buffer = out_[out_at_];
      const size_t step = std::min(left, buffer.size());
      buffer += step;
      left -= step;
      if (buffer.size() == 0) ++out_at_;
    }
  }
  finish_request();
  return state_ == State::kHeader ? Next::kContinue : Next::kWait;
}

void Session::on_writable(error_code ec) noexcept {
  released();
  if (state_ != State::kWriting) return;
  if (ec) return close();
  proceed();
}

void Session::finish_request() {
  if (worker_.service().config.access_log) log_access();
  if (traced_ && !running_) record_trace();
  count_body(0);
  answer_room_.give_back();
  traced_ = {};
  trace_tensors_.clear();
  compressed_ = routed_ = false;
  trace_parent_.reset();
  request_id_.begin({});
  if (!running_) inference_.clear();
  admin_.reset();
  parser_.reset();
  // What was large is of no use to the next request, which may be long in coming.
  largest_ = std::max(largest_, response_.text().capacity());
  if (largest_ > kKeepBytes && !running_) trim(kKeepBytes);
  saw_bytes_ = empty_line_ = false;
  head_only_ = false;
  http11_ = true;
  if (!keep_alive_) return linger();
  state_ = State::kHeader;
  phase_start_ = Clock::now();
  deadline_ = phase_start_ + worker_.service().config.idle_timeout;
}

}  // namespace sconce
