#include "server/codecs/inference.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/codecs/call_codec.h"
#include "server/codecs/generate_codec.h"
#include "server/codecs/loop_codec.h"
#include "server/codecs/predict_codec.h"
#include "server/codecs/tensor_codec.h"
#include "server/registry/model_weights.h"
#include "server/scheduling/batching/batch_tensors.h"
#include "src/support/excerpt.h"

namespace sconce::server::codecs {

void Inference::begin(registry::ModelUse model, Form form, bool base64, Clock::time_point start) noexcept {
  model_ = std::move(model);
  form_ = form;
  const bool may_loop = form == Form::kGenerate || form == Form::kGenerateStream || form == Form::kInferStream;
  plan_ = may_loop ? model_->loop() : nullptr;
  base64_ = base64;
  start_ = start;
  decoded_ = run_done_ = answered_ = {};
  step_times = nullptr;
  step_times_.clear();
  client_deadline_ = Clock::time_point::max();
}

void Inference::decode(const BodyBuffer& body, std::optional<uint64_t> json_length, const SharedMemory* shared_memory) {
  const scheduling::ModelSignature& interface = model_->interface();
  switch (form_) {
    case Form::kInfer:
    case Form::kInferStream:
      decode_infer(interface, body, json_length, shared_memory, scratch_, request_);
      break;
    case Form::kCall:
      decode_call(interface, body, scratch_, request_.inputs);
      if (interface.max_batch_size > 0 && request_.inputs[0].dim() > 0) request_.rows = request_.inputs[0].size(0);
      break;
    case Form::kGenerate:
    case Form::kGenerateStream:
      loops() ? decode_loop(interface, *plan_, body, scratch_, request_)
              : decode_generate(interface, body, scratch_, request_);
      break;
    case Form::kPredict:
      decode_predict(interface, body, scratch_, request_);
      break;
  }
  prepare_results();
}

void Inference::decode(const TensorRequest& request, const SharedMemory* shared_memory) {
  loops() ? decode_loop(model_->interface(), *plan_, request, shared_memory, scratch_, request_)
          : decode_tensors(model_->interface(), request, shared_memory, scratch_, request_);
  prepare_results();
}

void Inference::prepare_results() {
  if (!loops()) check_sequence();
  results_.resize(loops() ? 0 : model_->interface().outputs.size());
  decoded_ = Clock::now();
}

void Inference::check_sequence() const {
  const scheduling::SequenceParameters& asked = request_.sequence;
  const scheduling::ModelSignature& interface = model_->interface();
  if (model_->sequences()) {
    SCONCE_CHECK(asked.id.given(), kInvalidArgument, "inference request to model '", interface.name,
                 "' must specify a non-zero or non-empty correlation ID (parameter sequence_id)");
    return;
  }
  // As in Triton, sequence parameters are ignored for a model without state: clients may send the same parameters to
  // all models. A pipeline may have models with state.
  const bool may_lose = interface.pipeline || interface.mutates_constants;
  SCONCE_CHECK(!may_lose || (!asked.id.given() && !asked.start && !asked.end), kInvalidArgument, "model '",
               interface.name,
               "' has no sequences: ", interface.pipeline ? "it is a pipeline" : "setting sequences is 0");
}

void Inference::ask_for(std::string_view in_path, std::string_view in_header) {
  SCONCE_CHECK(in_path.empty() || in_header.empty() || in_path == in_header, kInvalidArgument, "the path names set '",
               excerpt(in_path), "', Sconce-Weights '", excerpt(in_header), "'");
  wanted_ = in_path.empty() ? in_header : in_path;
}

bool Inference::choose_weights(std::string_view key) {
  const registry::ModelWeights* const of_model = model_->find_weights();
  scheduling::ModelSets* const sets = of_model != nullptr ? of_model->sets() : nullptr;
  if (sets == nullptr && wanted_.empty() && request_.weights.empty()) [[likely]]
    return true;
  SCONCE_CHECK(wanted_.empty() || request_.weights.empty() || wanted_ == request_.weights, kInvalidArgument,
               "parameter weights names set '", excerpt(request_.weights), "', the path or header '", excerpt(wanted_),
               "'");
  if (wanted_.empty()) wanted_.swap(request_.weights);
  SCONCE_CHECK(sets, kNotFound, "set '", excerpt(wanted_), "' is not found: model '", model_->interface().name,
               "' holds no named sets (setting sets)");
  // Later steps use the set with which their sequence began.
  if (wanted_ == scheduling::ModelSets::kActive || (model_->sequences() && !request_.sequence.start)) return true;
  if (!wanted_.empty()) {
    chosen_ = sets->find(wanted_);
  } else {
    if (!sets->routed()) return true;
    wanted_ = sets->route(key.empty() ? request_.json_id : key);
    // A route may name a set that does not exist yet.
    if (wanted_.empty() || !succeeds([&] { chosen_ = sets->find(wanted_); })) return true;
  }
  if (chosen_.set) return true;
  reading_.notify = notify_;
  reading_.context = context_;
  reading_.choice = chosen_;
  sets->bring(wanted_, reading_);
  return false;
}

// The named set of a step, "" for the active set; nullopt if the step accepts any.
std::optional<std::string_view> Inference::set_of_step() const noexcept {
  if (request_.sequence.start) return chosen_.set ? std::string_view(*chosen_.set->name()) : std::string_view();
  if (wanted_.empty()) return std::nullopt;
  return wanted_ == scheduling::ModelSets::kActive ? std::string_view() : std::string_view(wanted_);
}

void Inference::take_weights() {
  chosen_.set = std::move(reading_.choice.set);
  if (reading_.problem) std::rethrow_exception(std::exchange(reading_.problem, nullptr));
}

bool Inference::run() {
  SCONCE_CHECK(request_.rows <= model_->policy().most_rows, kInvalidArgument,
               "inference request batch-size must be <= ", model_->policy().most_rows, " for '",
               model_->interface().name, "', got ", request_.rows);
  error = nullptr;
  run_rows = -1;
  alone = request_.device_inputs || request_.device_outputs;
  // An output may be a buffer that the next run overwrites.
  device_outputs = request_.device_outputs && model_->interface().spec.device_key == "cuda" &&
                   !model_->interface().mutates_constants;
  inputs = request_.inputs;
  weights = chosen_.set.get();
  if (loops()) {
    run_loop();
    return false;
  }
  if (scheduling::Sequences* const sequences = model_->sequences()) {
    model_->check_inputs(request_.inputs);
    outputs = results_;
    rows = request_.rows;
    timeout = request_.schedule.timeout;
    sequences->submit(*this, request_.sequence, set_of_step(), step_);
    return false;
  }
  // If the replica has no instance of the set, creating one may take too long for the I/O thread.
  const bool bound = !weights || weights->replicas() >= model_->replicas() || model_->model().binds_quickly();
  here_ = !alone && bound && model_->run_here(input_bytes());
  if (here_) {
    info = model_->run(request_.inputs, results_, weights, false);
    run_done_ = info.ended;
    run_rows = request_.rows;
    gather = split = {};
    leave();
    return true;
  }
  // Inputs that the run would refuse are refused now, and not after waiting.
  model_->check_inputs(request_.inputs);
  outputs = results_;
  rows = request_.rows;
  priority = request_.schedule.priority;
  timeout = request_.schedule.timeout;
  model_->submit(*this);
  return false;
}

void Inference::run_loop() {
  if (!loop_) loop_ = std::make_unique<scheduling::DecodeLoop>(budget_, notify_, context_);
  tokens_.clear();
  answered_tokens_ = 0;
  look_ = scheduling::DecodeLoop::Look::kWait;
  scheduling::DecodeLoop::Terms terms;
  terms.inputs = request_.inputs;
  terms.priority = request_.schedule.priority;
  terms.timeout = request_.schedule.timeout;
  terms.weights = weights;
  if (model_->sequences()) terms.set = set_of_step();
  terms.deadline = client_deadline_;
  for (const std::chrono::nanoseconds limit : {model_->policy().request_timeout, plan_->deadline})
    if (limit.count() > 0) terms.deadline = std::min(terms.deadline, start_ + limit);
  terms.each = streams();
  loop_->begin(*model_->loop_host(), request_.loop, terms);
}

scheduling::DecodeLoop::Look Inference::take_tokens(size_t most) {
  answered_tokens_ += tokens_.size();
  tokens_.clear();
  look_ = loop_->take(tokens_, most);
  run_done_ = Clock::now();
  info = loop_->info_now();
  return look_;
}

// The loop has ended: throws its error.
void Inference::end_loop() {
  if (loop_->end() != scheduling::DecodeLoop::End::kFailed) return;
  model_->failed();
  std::rethrow_exception(loop_->problem());
}

std::optional<Failure> Inference::encode_events(http::Response& response) {
  const bool over = look_ == scheduling::DecodeLoop::Look::kOver;
  if (over && answered_tokens_ + tokens_.size() == 0) end_loop();
  response.type = http::content_type::kEvents;
  response.weight_version = info.weight_version;
  if (info.set) response.weights = *info.set;
  TextBuffer& text = response.text();
  for (size_t i = 0; i < tokens_.size(); ++i)
    append_token_event(model_->interface(), request_, tokens_[i], answered_tokens_ + i, text);
  if (!over) return std::nullopt;
  if (const std::exception_ptr problem = exception_of([&] { end_loop(); })) {
    Failure failure = fail(problem);
    append_error_event(failure.message, text);
    return failure;
  }
  append_end_event(model_->interface(), request_, loop_->made(), loop_->end(), text);
  succeed();
  return std::nullopt;
}

Inference::Clock::time_point Inference::deadline() const noexcept {
  // A decode loop checks its deadline itself, between two runs.
  if (loops()) return Clock::time_point::max();
  const std::chrono::nanoseconds limit = model_->policy().request_timeout;
  return limit.count() == 0 ? client_deadline_ : std::min(client_deadline_, start_ + limit);
}

void Inference::ran() {
  if (model_->interface().mutates_constants) scheduling::keep_outputs(results_);
}

bool Inference::cancel() noexcept {
  if (loops()) return loop_->cancel();
  if (!model_->cancel(*this)) return false;
  if (step_.live) model_->sequences()->finish_cancelled(step_);
  return true;
}

void Inference::finished() noexcept {
  run_done_ = Clock::now();
  if (step_.live) model_->sequences()->finish(step_, error);
  notify_(context_);
}

void Inference::leave() noexcept {
  if (std::exchange(here_, false)) model_->ran_here(info.compute, input_bytes());
  if (run_rows >= 0)
    model_->statistics().execution(thread_, std::exchange(run_rows, -1), decoded_ - start_ + gather, info.compute,
                                   split);
}

void Inference::finish_run() {
  leave();
  if (loops()) {
    take_tokens(SIZE_MAX);
    return end_loop();
  }
  if (error == nullptr) return;
  model_->failed();
  std::rethrow_exception(std::exchange(error, nullptr));
}

bool Inference::has_long_answer(bool compressed) const noexcept {
  constexpr size_t kText = 128 * 1024, kCopied = 8 * 1024 * 1024;
  size_t text = 0, all = 0;
  for (const Tensor& result : results_) {
    if (result.defined()) all += result.bytes();
  }
  if ((form_ != Form::kInfer && form_ != Form::kInferStream) || compressed) {
    text = all;
  } else {
    for (const InferRequest::Output& wanted : request_.outputs) {
      if (results_[wanted.index].defined() && (wanted.classes != 0 || (!wanted.binary && !wanted.region)))
        text += results_[wanted.index].bytes();
    }
  }
  return text > kText || all > kCopied;
}

void Inference::encode(http::Response& response) {
  response.weight_version = info.weight_version;
  if (info.set) response.weights = *info.set;
  if (loops()) return encode_tokens(model_->interface(), request_, tokens_, loop_->end(), response.text());
  const scheduling::ModelSignature& interface = model_->interface();
  switch (form_) {
    case Form::kInfer:
    case Form::kInferStream: {
      if (device_outputs) fetch_outputs();
      char number[20];
      std::string_view version;
      if (info.label) {
        version = *info.label;
      } else {
        const char* const end = std::to_chars(number, number + sizeof number, info.weight_version).ptr;
        version = {number, static_cast<size_t>(end - number)};
      }
      return encode_infer(interface, request_, version, results_, scratch_, response);
    }
    case Form::kCall:
      return encode_call(interface, results_, base64_, scratch_, response);
    case Form::kGenerate:
    case Form::kGenerateStream:
      return encode_generate(interface, request_, results_, form_ == Form::kGenerateStream, response);
    case Form::kPredict:
      return encode_predict(interface, request_, results_, response);
  }
}

void Inference::encode(TensorAnswer& answer) {
  answer.weight_version = info.weight_version;
  answer.weights_name = info.label ? std::string_view(*info.label) : std::string_view();
  answer.weights = info.set ? std::string_view(*info.set) : std::string_view();
  answer.streamed = streams();
  answer.last = true;
  answer.finish_reason = {};
  if (loops()) {
    const bool over = look_ == scheduling::DecodeLoop::Look::kOver && tokens_.empty();
    if (over) {
      end_loop();
      answer.finish_reason = finish_reason(loop_->end());
    } else {
      told_[0] = tokens_.front();
      told_[1] = static_cast<int64_t>(answered_tokens_);
    }
    answer.last = over;
    return encode_token(model_->interface(), request_, over ? std::span<const int64_t>() : std::span(told_), answer);
  }
  if (device_outputs) fetch_outputs();
  encode_tensors(model_->interface(), request_, results_, scratch_, answer);
}

// Copies outputs to the host, except those that go to device memory.
void Inference::fetch_outputs() {
  for (const InferRequest::Output& wanted : request_.outputs) {
    Tensor& output = results_[wanted.index];
    if (!output.defined() || output.is_cpu() || (wanted.region && wanted.region->device())) continue;
    Tensor here = scratch_.tensor(output.sizes(), output.dtype());
    transfer(output, here);
    output = std::move(here);
  }
}

Inference::Timeline Inference::timeline() const noexcept {
  if (!model_) return {};
  const int64_t version = model_->interface().version;
  if (run_done_ == Clock::time_point{}) return {decoded_, {}, {}, {}, {}, version, step_times_};
  return {decoded_, run_done_, info.queue, gather, info.compute, version, step_times_};
}

void Inference::tell_times(http::Response& response) const noexcept {
  char* p = response.timing.data();
  char* const end = p + response.timing.size();
  const auto put = [&](std::string_view name, std::chrono::nanoseconds time) {
    constexpr std::string_view kDuration = ";dur=";
    // The last digit is a thousandth of a millisecond.
    constexpr int64_t kLongest = 999'999'999'999;
    const auto micros = std::clamp<int64_t>(time / std::chrono::microseconds(1), 0, kLongest);
    if (p != response.timing.data()) p = std::copy_n(", ", 2, p);
    p = std::copy(name.begin(), name.end(), p);
    p = std::copy(kDuration.begin(), kDuration.end(), p);
    p = std::to_chars(p, end, micros / 1000).ptr;
    const auto rest = static_cast<int>(micros % 1000);
    for (const char c : {'.', static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)})
      *p++ = c;
  };
  put("queue", info.queue);
  put("input", decoded_ - start_ + gather);
  put("compute", info.compute);
  put("output", answered_ - run_done_ + split);
  put("total", answered_ - start_);
  response.timing_bytes = static_cast<size_t>(p - response.timing.data());
}

void Inference::trace_inputs(size_t most_elements, std::vector<TraceTensor>& to) const {
  const scheduling::TensorNames& names = model_->interface().input_names;
  for (size_t i = 0; i < request_.inputs.size(); ++i)
    if (request_.inputs[i].defined())  // a decode loop fills the others
      to.push_back(describe_for_trace(kQueueInput, std::string(names.name(i)), request_.inputs[i], most_elements));
}

void Inference::trace_outputs(size_t most_elements, std::vector<TraceTensor>& to) const {
  const scheduling::TensorNames& names = model_->interface().output_names;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (!results_[i].defined()) continue;  // None
    to.push_back(describe_for_trace(kBackendOutput, std::string(names.name(i)), results_[i], most_elements));
  }
}

void Inference::succeed() {
  const Clock::time_point now = answered_ = Clock::now();
  model_->statistics().success(
      thread_, {now - start_, info.queue, decoded_ - start_ + gather, info.compute, now - run_done_ + split},
      request_.rows);
  if (!chosen_.counters) return;
  chosen_.counters->success.fetch_add(1, std::memory_order_relaxed);
  chosen_.counters->rows.fetch_add(static_cast<uint64_t>(request_.rows), std::memory_order_relaxed);
  chosen_.counters->total_ns.fetch_add(static_cast<uint64_t>((now - start_).count()), std::memory_order_relaxed);
}

// Clients know inputs by other names than the package's: "input 1 (arg1_1)" becomes "input 'ARGS[1]'" at every position
// in the message of the input checks.
std::string Inference::explain(std::string message) const {
  constexpr std::string_view kInput = "input ";
  if (!model_ || !message.starts_with(kInput)) return message;
  const scheduling::ModelSignature& interface = model_->interface();
  std::string shown;
  size_t done = 0;
  for (size_t at = 0; at != std::string::npos; at = message.find(kInput, at + 1)) {
    const char* const digits = message.data() + at + kInput.size();
    size_t index = 0;
    const auto [next, ec] = std::from_chars(digits, message.data() + message.size(), index);
    if (at < done || ec != std::errc() || index >= interface.spec.inputs.size()) continue;
    const size_t end = static_cast<size_t>(next - message.data());
    const std::string name = " (" + interface.spec.inputs[index].name + ")";
    if (message.compare(end, name.size(), name) != 0) continue;
    shown += message.substr(done, at - done) + "input '" + interface.input_names.name(index) + "'";
    done = end + name.size();
  }
  return shown + message.substr(done);
}

void Inference::fail(ErrorCode code) noexcept {
  if (!model_) return;
  if (here_) leave();
  answered_ = {};  // the answer is an error
  model_->statistics().failure(thread_, scheduling::failure_reason(code), Clock::now() - start_);
  if (chosen_.counters) chosen_.counters->failures.fetch_add(1, std::memory_order_relaxed);
}

Failure Inference::fail(const std::exception_ptr& problem) {
  Failure failure = describe_failure(problem);
  failure.message = explain(std::move(failure.message));
  fail(failure.code);
  return failure;
}

void Inference::show() const noexcept {
  if (!model_ || loops() || !model_->watches_answers() || answered_ == Clock::time_point{}) [[likely]]
    return;
  model_->answers().show({request_.inputs, results_, info, answered_ - start_, gather.count() == 0});
}

void Inference::clear() noexcept {
  if (!model_) return;
  leave();
  if (loops()) {
    if (loop_) loop_->clear();
    request_.loop.forget();
    tokens_ = {};
    plan_ = nullptr;
  }
  for (Tensor& tensor : results_) tensor = Tensor();
  request_.clear();
  wanted_.clear();
  weights = nullptr;
  step = {};
  if (chosen_.counters) {
    chosen_ = {};
    reading_ = {};
  }
  scratch_.reset();
  inputs = {};
  outputs = {};
  info = {};
  answered_ = {};
  error = nullptr;
  model_.reset();
}

}  // namespace sconce::server::codecs
