// The part of a session that runs models.
#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce {
void Session::answer_by(const OnLane& handler) {
  const Inference::Form form = handler.form;
  bool base64 = false;
  if (form == Inference::Form::kCall) {
    const std::string_view tensors = query_value(cached_path_.query, "tensors");
    SCONCE_CHECK(tensors.empty() || tensors == "base64" || tensors == "list", kInvalidArgument,
                 "parameter tensors must be list or base64, got '", excerpt(tensors), "'");
    base64 = tensors == "base64";
  }
  const Catalog& catalog = worker_.catalog();
  Tracer& tracer = worker_.service().tracer;
  traced_ = tracer.enabled() ? tracer.sample(route_.model, trace_parent_) : TraceLevels{};
  inference_.begin(catalog.ready(route_.model, route_.version), form, base64, start_);
  if (decodes_long()) {
    go_away(&Session::decode_request, State::kDecoded);
  } else {
    decode_request();
    run_decoded();
  }
}

// Any thread, as is encode_answer().
void Session::decode_request() {
  const uint64_t most = static_cast<uint64_t>(worker_.service().config.max_inflated_bytes);
  inflate_body(std::min(most, inference_.most_body_bytes()));
  inference_.decode(body(), json_length_, &worker_.service().shared_memory);
}

void Session::run_decoded() {
  trace_inputs();
  if (inference_.run()) {
    state_ = State::kAnswering;
  } else {
    // The run may be over by now, but its notice waits for this thread.
    state_ = State::kRunning;
    running_ = true;
    worker_.lane_requests(1);
    ++pending_;
    clock_.until(inference_.deadline());
    worker_.wake_by(clock_.deadline());
    watch_client();
  }
}

void Session::encode_answer() {
  inference_.encode(response_);
  compress_answer();
  // A client may be long in taking it. What is smaller is little beside the connection itself.
  constexpr size_t kLargeAnswer = 64 * 1024;
  if (const size_t bytes = response_.body_bytes(); bytes > kLargeAnswer)
    answer_room_.take(worker_.service().request_memory, bytes, "an answer");
}

void Session::finish_answer() {
  trace_outputs();
  inference_.succeed();
  begin_answer();
}

// Reads on while the model has the request: the client's next request, or that it has gone.
void Session::watch_client() noexcept {
  if (reading_ || end_ == in_capacity_) return;
  // Without memory for it the client is seen again when it is answered.
  ahead_ = succeeds([this] { read(in_.get() + end_, in_capacity_ - end_); });
}

// True: the request was still waiting, and the model knows nothing of it any more.
bool Session::stop_waiting() noexcept {
  if (!inference_.cancel()) return false;
  running_ = false;
  worker_.lane_requests(-1);
  --pending_;
  return true;
}

void Session::client_left(bool reset) noexcept {
  const bool waited = stop_waiting();
  if (waited) inference_.fail(ErrorCode::kCancelled);
  // A run that has begun is answered: the client may only have said that it asks for nothing more.
  if (waited || reset) close();
}

void Session::run_out_of_time() {
  // What a run works with stays until it is over, and so does not serve another request.
  if (!stop_waiting()) keep_alive_ = false;
  inference_.fail(ErrorCode::kDeadlineExceeded);
  answer_error(http_status(ErrorCode::kDeadlineExceeded),
               "the request was not answered in time (setting request_timeout)", response_);
  begin_answer();
}

void Session::compress_answer() {
  const int64_t above = worker_.service().config.compress_above;
  // Clients decompress tensors and nothing else.
  if (above <= 0 || form_of(route_of(route_)) != Inference::Form::kInfer ||
      static_cast<int64_t>(response_.body_bytes()) <= above)
    return;
  compress(parser_->head().accepts, response_);
}

}  // namespace sconce
