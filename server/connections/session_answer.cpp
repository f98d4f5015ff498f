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
  writer_.begin(response_, {http11_, head_only_, !keep_alive_}, worker_.date(),
                pace(worker_.service().config.write_timeout));
  state_ = State::kWriting;
  const bool found = routed_ && route_.result == RouteMatch::Result::kFound;
  worker_.counters().response(found ? route_.route : ConnectionCounters::kNoRoute, response_.status);
}

Session::Next Session::write() {
  while (!writer_.done()) {
    error_code ec;
    const size_t sent = writer_.write(ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) {
      begin_operation(
          [this] { transport_.socket().async_wait(transport_.wait_type(), [this](error_code e) { on_writable(e); }); });
      return Next::kWait;
    }
    if (ec) {
      close();
      return Next::kWait;
    }
    ConnectionCounters::add(worker_.counters().sent, sent);
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
  if (writer_.closes()) return linger();
  state_ = State::kHeader;
  const Clock::time_point now = Clock::now();
  clock_.begin_phase(now);
  clock_.until(now + worker_.service().config.idle_timeout);
}

}  // namespace sconce
