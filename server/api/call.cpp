#include "server/api/call.h"

#include <algorithm>
#include <utility>

#include "server/api/access.h"
#include "server/api/run_record.h"
#include "server/registry/model_loader.h"
#include "server/support/log.h"

namespace sconce::server::api {

void Call::begin(const Head& head, RequestId& id, Clock::time_point start, Clock::time_point deadline) {
  start_ = start;
  client_deadline_ = deadline;
  id.begin(head.request_id);
  weights_.assign(head.weights);
  affinity_.assign(head.affinity);
  trace_parent_.reset();
  if (head.traceparent.empty()) return;
  trace_parent_ = telemetry::TraceParent::parse(head.traceparent);
  if (trace_parent_) id.set_trace({trace_parent_->trace_id.data(), trace_parent_->trace_id.size()});
}

registry::OnDemand* Call::on_demand() const noexcept { return admission_.loader.on_demand(); }

registry::ModelUse Call::find(const registry::Catalog& catalog, size_t thread, const Target& target) {
  if (!needs_load(admission_, catalog, target.model)) {
    registry::ModelUse model(catalog.ready(target.model, target.version), thread, start_);
    if (model) [[likely]]
      return model;  // it was not evicted since the catalog was read
  }
  wait_for_load(target.model);
  return {};
}

void Call::wait_for_load(std::string_view model, bool limited) {
  registry::OnDemand& models = *on_demand();
  load_deadline_ = limited ? std::min(client_deadline_, models.deadline(model, start_)) : Clock::time_point::max();
  models.ask(model, load_);
  holder_ = Holder::kLoader;
}

void Call::check_load() {
  if (load_.problem) std::rethrow_exception(std::exchange(load_.problem, nullptr));
}

void Call::open(registry::ModelUse model, const Target& target, codecs::Inference::Form form, bool base64) {
  model_.assign(target.model);
  version_.assign(target.version);
  telemetry::Tracer& tracer = telemetry_.tracer;
  traced_ = tracer.enabled() ? tracer.sample(model_, trace_parent_) : telemetry::TraceLevels{};
  inference_.begin(std::move(model), form, base64, start_);
  inference_.limit_deadline(client_deadline_);
  inference_.ask_for(target.set, weights_);
}

bool Call::choose_weights(const RequestId& id) {
  const std::string_view key = !affinity_.empty() ? std::string_view(affinity_)
                               : id.given()       ? std::string_view(id.text())
                                                  : std::string_view();
  if (inference_.choose_weights(key)) return true;
  holder_ = Holder::kReader;
  return false;
}

bool Call::run() {
  if (traced_.timestamps) inference_.trace_steps();
  if (traced_.tensors)
    inference_.trace_inputs(static_cast<size_t>(admission_.config.trace_tensor_elements), trace_tensors_);
  if (inference_.run()) return true;
  holder_ = Holder::kModel;
  return false;
}

scheduling::DecodeLoop::Look Call::take_tokens(size_t most) {
  const scheduling::DecodeLoop::Look look = inference_.take_tokens(most);
  holder_ = look == scheduling::DecodeLoop::Look::kOver ? Holder::kNone : Holder::kModel;
  return look;
}

void Call::trace_outputs() {
  if (traced_.tensors)
    inference_.trace_outputs(static_cast<size_t>(admission_.config.trace_tensor_elements), trace_tensors_);
}

void Call::hold_answer(size_t bytes) {
  constexpr size_t kLargeAnswer = 64 * 1024;  // smaller answers are small compared with the call itself
  if (bytes > kLargeAnswer) answer_room_.take(admission_.request_memory, bytes, "an answer");
}

Failure Call::fail(const std::exception_ptr& problem) {
  Failure failure = inference_.fail(problem);
  log_failure(telemetry_.failures, failure);
  return failure;
}

const char* Call::late_message() const noexcept {
  return loading() ? "the model was not loaded in time (setting request_timeout)"
                   : "the request was not answered in time (setting request_timeout)";
}

Call::Holder Call::noticed() noexcept {
  if (running() && inference_.streams()) return Holder::kModel;
  return std::exchange(holder_, Holder::kNone);
}

bool Call::take_back() noexcept {
  if (running() && !inference_.let_go()) return false;
  holder_ = Holder::kNone;
  return true;
}

bool Call::cancel() noexcept {
  switch (holder_) {
    case Holder::kLoader:
      if (!on_demand()->cancel(load_)) return false;
      break;
    case Holder::kModel:
      if (!inference_.cancel()) return false;
      break;
    default:
      return false;
  }
  holder_ = Holder::kNone;
  return true;
}

void Call::record(telemetry::TraceRecord record, const RequestId& id, Clock::time_point encoded) {
  record.model = model_;
  record.version = version_;
  record.request_id = id.text();
  record.parent = trace_parent_;
  record.levels = traced_;
  record.tensors = std::move(trace_tensors_);
  record.start = start_;
  record_run(telemetry_.tracer, std::move(record), inference_.timeline(), encoded);
}

void Call::clear() noexcept {
  inference_.clear();
  traced_ = {};
  trace_tensors_.clear();
  answer_room_.give_back();
}

}  // namespace sconce::server::api
