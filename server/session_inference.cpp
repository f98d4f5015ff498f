// The part of a session that runs models.
#include "sconce/check.h"
#include "server/session.h"

namespace sconce {
namespace {

std::optional<Inference::Form> form_of(Action action) noexcept {
  switch (action) {
    case Action::kInfer:
      return Inference::Form::kInfer;
    case Action::kCall:
      return Inference::Form::kCall;
    case Action::kGenerate:
      return Inference::Form::kGenerate;
    case Action::kGenerateStream:
      return Inference::Form::kGenerateStream;
    case Action::kPredict:
      return Inference::Form::kPredict;
    default:
      return std::nullopt;
  }
}

}  // namespace

// False: the route is not a model's.
bool Session::run_model() {
  const std::optional<Inference::Form> asked = form_of(route_.action);
  if (!asked) return false;
  const Inference::Form form = *asked;
  bool base64 = false;
  if (form == Inference::Form::kCall) {
    const std::string_view tensors = query_value(cached_path_.query, "tensors");
    SCONCE_CHECK(tensors.empty() || tensors == "base64" || tensors == "list", kInvalidArgument,
                 "parameter tensors must be list or base64, got '", tensors, "'");
    base64 = tensors == "base64";
  }
  const Catalog& catalog = worker_.catalog();
  Tracer& tracer = worker_.service().tracer;
  traced_ = tracer.enabled() && tracer.sample(route_.model, trace_parent_);
  inference_.decode(catalog.ready(route_.model, route_.version), form, base64, body(), json_length_,
                    &worker_.service().shared_memory, start_);
  if (inference_.run()) {
    state_ = State::kAnswering;
  } else {
    // The lane may be done by now, but its notice waits for this thread.
    state_ = State::kRunning;
    ++pending_;
  }
  return true;
}

void Session::compress_answer() {
  const int64_t above = worker_.service().config.compress_above;
  // Clients decompress tensors and nothing else.
  if (above <= 0 || route_.action != Action::kInfer || static_cast<int64_t>(response_.body_bytes()) <= above) return;
  compress(parser_->head().accepts, response_);
}

}  // namespace sconce
