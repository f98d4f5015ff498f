#include "server/grpc/inference_call.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sconce/check.h"
#include "server/answers/access.h"
#include "server/answers/run_record.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/grpc/status.h"

namespace sconce::server {
namespace {

constexpr size_t kLargeAnswer = 64 * 1024;  // smaller ones are small compared with the call itself
constexpr size_t kKeptMemory = 256 * 1024;  // of a free call

const Route& infer_route() {
  static const Route& route = *std::find_if(kRoutes.begin(), kRoutes.end(),
                                            [](const Route& r) { return form_of(r) == Inference::Form::kInfer; });
  return route;
}

}  // namespace

InferenceCall::InferenceCall(CallRoom& room, AlarmClock& clock)
    : Alarm(clock), room_(room), inference_(0, &InferenceCall::notify, this, &room.service().request_memory) {
  task_.context = this;
  task_.work = [](void* context) noexcept { static_cast<InferenceCall*>(context)->resume(); };
}

InferenceCall::~InferenceCall() { Alarm::stop(); }

bool InferenceCall::admit(GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    state_ = State::kAdmitted;
    method_ = method;
    waiter_ = &waiter;
    status_ = {};
    http_status_ = 200;
    start_ = Clock::now();
    deadline_ = caller.deadline;
    sent_ = 0;
    if (const std::exception_ptr problem = exception_of([&] {
          Service& service = room_.service();
          request_id_.begin(caller.request_id);
          peer_ = caller.peer;
          weights_.assign(caller.weights);
          affinity_.assign(caller.affinity);
          trace_parent_ = TraceParent::parse(caller.traceparent);
          if (trace_parent_) request_id_.set_trace({trace_parent_->trace_id.data(), trace_parent_->trace_id.size()});
          Turn turn(room_.turns());
          const LogRequest log_request(request_id_, peer_);
          const CredentialSet::Refusal refusal =
              refusal_of(service, turn.credentials(), &infer_route(), kPublic, caller.authorization, false);
          if (refusal.status != 0) {
            http_status_ = refusal.status;
            status_ = {grpc_code(refusal.status), std::string(refusal.message)};
            state_ = State::kFinished;
            finished = true;
            return;
          }
          message_room_.take(service.request_memory, bytes, "a request");
        }))
      finished = fail(problem);
  }
  tell(finished);
  return !finished;
}

bool InferenceCall::grow(size_t bytes) noexcept {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kAdmitted) return false;  // cancelled meanwhile
    if (const std::exception_ptr problem =
            exception_of([&] { message_room_.take(room_.service().request_memory, bytes, "a request"); }))
      finished = fail(problem);
  }
  tell(finished);
  return !finished;
}

void InferenceCall::run(const TensorRequest& request) noexcept {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kAdmitted) return;  // cancelled meanwhile
    if (const std::exception_ptr problem = exception_of([&] {
          Turn turn(room_.turns());
          inference_.use_thread(turn.index());
          finished = begin(request, turn);
        }))
      finished = fail(problem);
  }
  tell(finished);
}

void InferenceCall::refuse(GrpcStatus status) noexcept {
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kAdmitted) return;
    status_ = std::move(status);
    http_status_ = status_.code == GrpcCode::kResourceExhausted ? 413 : 400;
    state_ = State::kFinished;
  }
  tell(true);
}

bool InferenceCall::begin(const TensorRequest& request, Turn& turn) {
  Service& service = room_.service();
  const size_t at = request.model.find('@');
  model_ = request.model.substr(0, at);
  version_ = request.version;
  const std::string_view set = at == std::string_view::npos ? std::string_view() : request.model.substr(at + 1);
  const OnDemand* const on_demand = service.control.on_demand();
  if (on_demand != nullptr && on_demand->is_missing(turn.catalog(), model_)) return wait_for_load(request);
  ModelUse model(turn.catalog().ready(model_, version_), turn.index(), start_);
  if (!model) return wait_for_load(request);
  traced_ = service.tracer.enabled() ? service.tracer.sample(model_, trace_parent_) : TraceLevels{};
  const bool streamed = method_ == GrpcMethod::kModelStreamInfer;
  inference_.begin(std::move(model), streamed ? Inference::Form::kInferStream : Inference::Form::kInfer, false, start_);
  inference_.limit_deadline(deadline_);
  inference_.ask_for(set, weights_);
  inference_.decode(request, &service.shared_memory);
  const std::string_view key = !affinity_.empty()    ? std::string_view(affinity_)
                               : request_id_.given() ? std::string_view(request_id_.text())
                                                     : std::string_view();
  if (inference_.choose_weights(key)) return run_decoded();
  state_ = State::kWaiting;
  lent_ = reading_ = true;
  return false;
}

bool InferenceCall::wait_for_load(const TensorRequest& request) {
  OnDemand& on_demand = *room_.service().control.on_demand();
  request_ = &request;
  demand_.notify = &InferenceCall::notify;
  demand_.context = this;
  load_deadline_ = std::min(deadline_, on_demand.deadline(model_, start_));
  on_demand.ask(model_, demand_);
  state_ = State::kWaiting;
  lent_ = loading_ = true;
  if (load_deadline_ != Clock::time_point::max()) set(load_deadline_);
  return false;
}

bool InferenceCall::run_decoded() {
  if (traced_.timestamps) inference_.trace_steps();
  if (traced_.tensors)
    inference_.trace_inputs(static_cast<size_t>(room_.service().config.trace_tensor_elements), trace_tensors_);
  state_ = State::kWaiting;
  if (inference_.run()) return answer_run();
  lent_ = true;
  if (const Clock::time_point deadline = inference_.deadline(); deadline != Clock::time_point::max()) set(deadline);
  return false;
}

void InferenceCall::name_weights() noexcept {
  if (!answer_.weight_version.empty()) return;
  const char* const end = std::to_chars(generation_, generation_ + sizeof generation_, answer_.generation).ptr;
  answer_.weight_version = {generation_, static_cast<size_t>(end - generation_)};
}

bool InferenceCall::answer_run() {
  Service& service = room_.service();
  inference_.finish_run();
  inference_.encode(answer_);
  name_weights();
  size_t bytes = 0;
  for (const TensorAnswer::Output& output : answer_.outputs) bytes += output.bytes;
  if (bytes > kLargeAnswer) answer_room_.take(service.request_memory, bytes, "an answer");
  if (traced_.tensors)
    inference_.trace_outputs(static_cast<size_t>(service.config.trace_tensor_elements), trace_tensors_);
  inference_.succeed();
  encoded_ = Clock::now();
  state_ = State::kFinished;
  return true;
}

// The next answer of a loop. The model has the inference until the loop is over.
bool InferenceCall::answer_token() {
  const TokenLoop::Look look = inference_.take_tokens(1);
  lent_ = look != TokenLoop::Look::kOver;
  if (look == TokenLoop::Look::kWait) {
    state_ = State::kWaiting;
    return false;
  }
  inference_.encode(answer_);
  name_weights();
  if (answer_.last) {
    inference_.succeed();
    encoded_ = Clock::now();
  }
  state_ = State::kFinished;
  return true;
}

void InferenceCall::next() noexcept {
  room_.end_sending(*this);
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kFinished) return;
    Turn turn(room_.turns());
    inference_.use_thread(turn.index());
    if (const std::exception_ptr problem = exception_of([&] { finished = answer_token(); })) finished = fail(problem);
  }
  tell(finished);
}

// Gives the call the status of an exception. Only if there is no memory for that, the message is a shorter one.
bool InferenceCall::fail(const std::exception_ptr& problem) noexcept {
  state_ = State::kFinished;
  encoded_ = Clock::now();
  if (!succeeds([&] {
        Failure failure = inference_.fail(problem);
        if (failure.status >= 500) {
          const LogRequest log_request(request_id_, peer_);
          log_warn(room_.service().failures, "request failed with {}: {}", failure.status, printable(failure.message));
        }
        http_status_ = failure.status;
        status_ = {grpc_code(failure.status), std::move(failure.message)};
      }))
    status_ = {GrpcCode::kResourceExhausted, "no memory"};
  return true;
}

void InferenceCall::notify(void* context) noexcept {
  InferenceCall& call = *static_cast<InferenceCall*>(context);
  call.room_.resume_later(call.task_);
}

void InferenceCall::resume() noexcept {
  bool finished = false, forgotten = false;
  {
    const MutexLock lock(mutex_);
    const bool loading = std::exchange(loading_, false), reading = std::exchange(reading_, false);
    lent_ = !reading && !loading && inference_.streams();
    Turn turn(room_.turns());
    inference_.use_thread(turn.index());
    if (state_ != State::kWaiting) {
      lent_ = !reading && !loading && !inference_.let_go();
      forgotten = released_ && !lent_;
      if (forgotten) clean();
    } else if (const std::exception_ptr problem = exception_of([&] {
                 if (loading) {
                   if (demand_.problem) std::rethrow_exception(std::exchange(demand_.problem, nullptr));
                   finished = begin(*request_, turn);
                   return;
                 }
                 if (reading) inference_.take_weights();
                 finished = reading ? run_decoded() : inference_.streams() ? answer_token() : answer_run();
               })) {
      finished = fail(problem);
    }
  }
  tell(finished);
  if (forgotten) room_.give(*this);
}

void InferenceCall::cancel() noexcept {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    const bool late = Clock::now() >= deadline_;
    // The answer that is being sent will have been the last one.
    if (state_ == State::kFinished && lent_ && inference_.streams()) lent_ = !inference_.cancel();
    finished = late ? end_waiting(GrpcCode::kDeadlineExceeded, ErrorCode::kDeadlineExceeded, "Deadline Exceeded")
                    : end_waiting(GrpcCode::kCancelled, ErrorCode::kCancelled, "the client cancelled the request");
  }
  tell(finished);
}

void InferenceCall::ring() noexcept {
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    if (state_ != State::kWaiting || !lent_ || reading_) return;
    if (const Clock::time_point deadline = loading_ ? load_deadline_ : inference_.deadline(); Clock::now() < deadline) {
      if (deadline != Clock::time_point::max()) set(deadline);
      return;
    }
    finished = end_waiting(GrpcCode::kDeadlineExceeded, ErrorCode::kDeadlineExceeded,
                           loading_ ? "the model was not loaded in time (setting request_timeout)"
                                    : "the request was not answered in time (setting request_timeout)");
  }
  tell(finished);
}

// Ends a call that has no answer yet. If its run has begun, that goes on, and nobody will see its outputs.
bool InferenceCall::end_waiting(GrpcCode code, ErrorCode error, const char* message) noexcept {
  if (state_ != State::kAdmitted && state_ != State::kWaiting) return false;
  const bool queued = lent_ && (loading_   ? room_.service().control.on_demand()->cancel(demand_)
                                : reading_ ? false
                                           : inference_.cancel());
  if (queued) lent_ = loading_ = false;
  if (queued || inference_.streams() || error == ErrorCode::kDeadlineExceeded) {
    Turn turn(room_.turns());
    inference_.use_thread(turn.index());
    inference_.fail(error);
  }
  status_.code = code;
  http_status_ = http_status(error);
  succeeds([&] { status_.message = message; });
  encoded_ = Clock::now();
  state_ = State::kFinished;
  return true;
}

void InferenceCall::tell(bool finished) noexcept {
  if (finished) waiter_->finished();
}

void InferenceCall::sending(size_t bytes) noexcept {
  const ServerConfig& config = room_.service().config;
  sent_ = bytes;
  due_ = Clock::now() + config.write_timeout +
         std::chrono::seconds(static_cast<int64_t>(bytes) / std::max<int64_t>(config.min_rate, 1));
  room_.add_sending(*this);
}

void InferenceCall::release() noexcept {
  room_.end_sending(*this);
  {
    const MutexLock lock(mutex_);
    record();
    if (lent_ && inference_.streams() && inference_.cancel()) lent_ = false;
    if (lent_) {
      released_ = true;
      return;
    }
    Turn turn(room_.turns());
    inference_.use_thread(turn.index());
    if (status_.code == GrpcCode::kOk) inference_.show();
    clean();
  }
  room_.give(*this);
}

// The access log, metrics and the trace.
void InferenceCall::record() noexcept {
  Service& service = room_.service();
  const Clock::duration time = Clock::now() - start_;
  room_.count(method_, status_.code, time);
  succeeds([&] {
    const LogRequest log_request(request_id_, peer_);
    if (service.config.access_log)
      log_access(std::string("gRPC ").append(kGrpcMethodNames[static_cast<size_t>(method_)]),
                 static_cast<int>(status_.code), sent_, time);
    if (!traced_ || lent_) return;
    TraceRecord record;
    record.model = model_;
    record.version = version_;
    record.request_id = request_id_.text();
    record.method_and_path =
        std::string("gRPC ").append(kGrpcMethodNames[static_cast<size_t>(method_)]).append(" ").append(model_);
    record.route = kGrpcMethodNames[static_cast<size_t>(method_)];
    record.status = http_status_;
    record.grpc_code = static_cast<int>(status_.code);
    record.parent = trace_parent_;
    record.levels = traced_;
    record.tensors = std::move(trace_tensors_);
    record.start = start_;
    record_run(service.tracer, std::move(record), inference_.timeline(), encoded_);
  });
}

void InferenceCall::clean() noexcept {
  inference_.clear();
  if (room_.service().request_memory.is_tight() || inference_.capacity() > kKeptMemory) inference_.trim(0);
  message_room_.give_back();
  answer_room_.give_back();
  traced_ = {};
  trace_tensors_.clear();
  trace_parent_.reset();
  request_id_.begin({});
  released_ = false;
  waiter_ = nullptr;
  state_ = State::kFree;
}

CallRoom::CallRoom(Service& service, AlarmClock& clock, size_t first_place)
    : service_(service), clock_(clock), turns_(service.repository, service.credentials, first_place) {}

CallRoom::~CallRoom() { resumers_.stop(); }

InferenceCall* CallRoom::take() {
  InferenceCall* call = nullptr;
  {
    const MutexLock lock(mutex_);
    if (!free_.empty()) {
      call = free_.back().release();
      free_.pop_back();
    }
  }
  if (call == nullptr) call = new InferenceCall(*this, clock_);
  taken_.fetch_add(1, std::memory_order_relaxed);
  return call;
}

void CallRoom::give(InferenceCall& call) noexcept {
  {
    std::unique_ptr<InferenceCall> owned(&call);
    const MutexLock lock(mutex_);
    if (free_.size() < kKept)
      succeeds([&] {
        mutex_.assert_held();
        free_.push_back(std::move(owned));
      });
  }
  taken_.fetch_sub(1, std::memory_order_release);  // last: the room may go
}

void CallRoom::resume_later(HeavyWork::Task& task) noexcept {
  if (!succeeds([&] { resumers_.submit(task); })) task.work(task.context);
}

void CallRoom::add_sending(InferenceCall& call) noexcept {
  const MutexLock lock(sending_mutex_);
  call.previous_ = nullptr;
  call.next_ = sending_;
  if (sending_ != nullptr) sending_->previous_ = &call;
  sending_ = &call;
}

void CallRoom::end_sending(InferenceCall& call) noexcept {
  const MutexLock lock(sending_mutex_);
  if (sending_ != &call && call.previous_ == nullptr) return;  // not in the list
  (call.previous_ != nullptr ? call.previous_->next_ : sending_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  call.next_ = call.previous_ = nullptr;
}

void CallRoom::give_up_late(InferenceCall::Clock::time_point now) noexcept {
  const MutexLock lock(sending_mutex_);
  for (InferenceCall* call = sending_; call != nullptr; call = call->next_) {
    if (call->due_ <= now) call->waiter_->give_up();
  }
}

void CallRoom::count(GrpcMethod method, GrpcCode code, std::chrono::nanoseconds time) noexcept {
  service_.calls.add(static_cast<size_t>(method), static_cast<size_t>(code), time);
}

}  // namespace sconce::server
