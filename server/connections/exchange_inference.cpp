// Exchange: runs models.
#include <cstdint>
#include <utility>

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/connections/exchange.h"

namespace sconce::server {
Exchange::Next Exchange::answer_by(const OnLane& handler) {
  const Inference::Form form = handler.form;
  bool base64 = false;
  if (form == Inference::Form::kCall) {
    const std::string_view tensors = query_value(cached_path_.query, "tensors");
    SCONCE_CHECK(tensors.empty() || tensors == "base64" || tensors == "list", kInvalidArgument,
                 "parameter tensors must be list or base64, got '", excerpt(tensors), "'");
    base64 = tensors == "base64";
  }
  const Catalog& catalog = io_thread_.catalog();
  Tracer& tracer = io_thread_.service().tracer;
  if (must_load()) return wait_for_load();
  ModelUse model(catalog.ready(route_.model, route_.version), io_thread_.index(), start_);
  if (!model) [[unlikely]]
    return wait_for_load();
  // What a request of inference can change besides its answer: a sequence's state, and shared memory
  // (decode_request()).
  SCONCE_CHECK(!foreign_page_ || !model->sequences() || has_token(), kForbidden,
               "requests of web pages of other origins to models with state need a token, or their origin in "
               "http_cors_origins");
  traced_ = tracer.enabled() ? tracer.sample(route_.model, trace_parent_) : TraceLevels{};
  inference_.begin(std::move(model), form, base64, start_);
  inference_.ask_for(route_.set, weights_);
  if (decodes_long()) return decode_elsewhere();
  decode_request();
  return choose_weights();
}

Exchange::Next Exchange::choose_weights() {
  const std::string_view key = !affinity_.empty()    ? std::string_view(affinity_)
                               : request_id_.given() ? std::string_view(request_id_.text())
                                                     : std::string_view();
  if (inference_.choose_weights(key)) return run_decoded();
  holder_ = Holder::kReader;
  return Next::kWait;
}

// On any thread, like encode_answer().
void Exchange::decode_request() {
  const uint64_t most = static_cast<uint64_t>(io_thread_.service().config.max_inflated_bytes);
  reader_.inflate(std::min(most, inference_.most_body_bytes()));
  const SharedMemory* const shared = &io_thread_.service().shared_memory;
  inference_.decode(reader_.body(), reader_.head().json_length, foreign_page_ && !has_token() ? nullptr : shared);
}

Exchange::Next Exchange::run_decoded() {
  trace_inputs();
  if (inference_.run()) return answer_run();
  holder_ = Holder::kModel;
  io_thread_.lane_requests(1);
  return Next::kWait;
}

// The run is over.
Exchange::Next Exchange::answer_run() {
  inference_.finish_run();
  if (answers_long()) return encode_elsewhere();
  encode_answer();
  return finish_answer();
}

// The tokens there are, as events. The loop goes on meanwhile: the model has the request until the last piece.
Exchange::Next Exchange::answer_piece() {
  const TokenLoop::Look look = inference_.take_tokens(SIZE_MAX);
  const bool over = look == TokenLoop::Look::kOver;
  if (over) let_go();
  if (look == TokenLoop::Look::kWait) return Next::kWait;
  const bool first = !std::exchange(streaming_, !over), chunked = form_.http11;
  response_.begin_piece(chunked);
  if (const std::optional<Failure> failure = inference_.encode_events(response_)) log_failure(*failure);
  response_.end_piece(chunked, over);
  response_.streamed = true;
  response_.fields = "X-Accel-Buffering: no\r\n";  // proxies that know it pass tokens on at once
  if (!chunked) form_.close = true;
  return first ? Next::kAnswer : Next::kPiece;
}

void Exchange::encode_answer() {
  inference_.encode(response_);
  compress_answer();
  // The client may take long to read it. Smaller answers are small compared with the connection itself.
  constexpr size_t kLargeAnswer = 64 * 1024;
  if (const size_t bytes = response_.body_bytes(); bytes > kLargeAnswer)
    answer_room_.take(io_thread_.service().request_memory, bytes, "an answer");
}

Exchange::Next Exchange::finish_answer() {
  trace_outputs();
  inference_.succeed();
  if (io_thread_.service().config.server_timing) inference_.tell_times(response_);
  return Next::kAnswer;
}

// Returns true if the request was still waiting; the model has then forgotten it.
bool Exchange::cancel() noexcept {
  if (loading()) {
    if (!on_demand()->cancel(demand_)) return false;
    let_go();
    return true;
  }
  if (!running() || !inference_.cancel()) return false;
  let_go();
  return true;
}

bool Exchange::cancel_for_client() noexcept {
  if (running() && inference_.loops()) return true;  // abandon() ends it
  if (!cancel()) return false;
  inference_.fail(ErrorCode::kCancelled);
  return true;
}

void Exchange::run_out_of_time() {
  const bool was_loading = loading();
  // A run still uses this memory, so it cannot serve another request.
  if (!cancel()) form_.close = true;
  inference_.fail(ErrorCode::kDeadlineExceeded);
  answer_error(http_status(ErrorCode::kDeadlineExceeded),
               was_loading ? "the model was not loaded in time (setting request_timeout)"
                           : "the request was not answered in time (setting request_timeout)",
               response_);
}

void Exchange::compress_answer() {
  const int64_t above = io_thread_.service().config.compress_above;
  // Clients decompress tensors only.
  if (above <= 0 || form_of(route_of(route_)) != Inference::Form::kInfer ||
      static_cast<int64_t>(response_.body_bytes()) <= above)
    return;
  compress(reader_.head().accepts, response_);
}

}  // namespace sconce::server
