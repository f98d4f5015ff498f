// HttpCall: runs models.
#include <cstdint>
#include <utility>

#include "sconce/check.h"
#include "server/api/http_call.h"
#include "server/api/routes.h"
#include "server/api/run_record.h"
#include "server/support/failure.h"
#include "src/support/excerpt.h"

namespace sconce::server::api {
HttpCall::Next HttpCall::answer_by(const RunsModel& handler) {
  const codecs::Inference::Form form = handler.form;
  bool base64 = false;
  if (form == codecs::Inference::Form::kCall) {
    const std::string_view tensors = http::query_value(cached_path_.query, "tensors");
    SCONCE_CHECK(tensors.empty() || tensors == "base64" || tensors == "list", kInvalidArgument,
                 "parameter tensors must be list or base64, got '", excerpt(tensors), "'");
    base64 = tensors == "base64";
  }
  const Call::Target target{route_.model, route_.version, route_.set};
  registry::ModelUse model = call_.find(api_.catalog(), api_.index(), target);
  if (!model) [[unlikely]]
    return Next::kWait;
  // Inference can have side effects: on a sequence's state, and on shared memory (decode_request()).
  SCONCE_CHECK(!foreign_page_ || !model->sequences() || has_token(), kForbidden,
               "requests of web pages of other origins to models with state need a token, or their origin in "
               "http_cors_origins");
  call_.open(std::move(model), target, form, base64);
  if (decodes_long()) return decode_elsewhere();
  decode_request();
  return choose_weights();
}

HttpCall::Next HttpCall::choose_weights() { return call_.choose_weights(request_id_) ? run_decoded() : Next::kWait; }

// On any thread, like encode_answer().
void HttpCall::decode_request() {
  const uint64_t most = static_cast<uint64_t>(api_.admission().config.max_inflated_bytes);
  reader_.inflate(std::min(most, call_.inference().most_body_bytes()));
  const codecs::SharedMemory* const shared = &api_.admission().shared_memory;
  call_.inference().decode(reader_.body(), reader_.head().json_length,
                           foreign_page_ && !has_token() ? nullptr : shared);
}

HttpCall::Next HttpCall::run_decoded() {
  if (call_.run()) return answer_run();
  count_run();
  return Next::kWait;
}

// The run has ended.
HttpCall::Next HttpCall::answer_run() {
  call_.finish_run();
  if (answers_long()) return encode_elsewhere();
  encode_answer();
  return finish_answer();
}

// Writes the available tokens as events. The loop runs meanwhile: the model holds the call until the last piece.
HttpCall::Next HttpCall::answer_piece() {
  const scheduling::DecodeLoop::Look look = call_.take_tokens(SIZE_MAX);
  const bool over = look == scheduling::DecodeLoop::Look::kOver;
  count_run();
  if (look == scheduling::DecodeLoop::Look::kWait) return Next::kWait;
  const bool first = !std::exchange(streaming_, !over), chunked = form_.http11;
  response_.begin_piece(chunked);
  if (const std::optional<Failure> failure = call_.inference().encode_events(response_))
    log_failure(api_.telemetry().failures, *failure);
  response_.end_piece(chunked, over);
  response_.streamed = true;
  response_.fields = "X-Accel-Buffering: no\r\n";  // proxies that support the field pass tokens on at once
  if (!chunked) form_.close = true;
  return first ? Next::kAnswer : Next::kPiece;
}

void HttpCall::encode_answer() {
  call_.inference().encode(response_);
  compress_answer();
  call_.hold_answer(response_.body_bytes());
}

HttpCall::Next HttpCall::finish_answer() {
  call_.trace_outputs();
  call_.inference().succeed();
  if (api_.admission().config.server_timing) call_.inference().tell_times(response_);
  return Next::kAnswer;
}

// Returns true if the request was still waiting; then the model no longer refers to it.
bool HttpCall::cancel() noexcept {
  const bool cancelled = call_.cancel();
  count_run();
  return cancelled;
}

bool HttpCall::cancel_for_client() noexcept {
  if (call_.running() && call_.inference().loops()) return true;  // abandon() ends it
  if (!cancel()) return false;
  call_.fail(ErrorCode::kCancelled);
  return true;
}

void HttpCall::run_out_of_time() {
  const char* const why = call_.late_message();
  // A run still uses this memory, so it cannot serve another request.
  if (!cancel()) form_.close = true;
  call_.fail(ErrorCode::kDeadlineExceeded);
  answer_error(http_status(ErrorCode::kDeadlineExceeded), why, response_);
}

void HttpCall::compress_answer() {
  const int64_t above = api_.admission().config.compress_above;
  // Clients decompress only tensors.
  if (above <= 0 || form_of(route_of(route_)) != codecs::Inference::Form::kInfer ||
      static_cast<int64_t>(response_.body_bytes()) <= above)
    return;
  http::compress(reader_.head().accepts, response_);
}

}  // namespace sconce::server::api
