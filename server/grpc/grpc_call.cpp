#include "server/grpc/grpc_call.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sconce/check.h"
#include "server/api/access.h"
#include "server/api/run_record.h"
#include "server/grpc/status.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::rpc {
namespace {

constexpr size_t kMaxFreeMemory = 256 * 1024;  // maximum memory kept by a free call

const api::Route& infer_route() {
  static const api::Route& route = *std::find_if(api::kRoutes.begin(), api::kRoutes.end(), [](const api::Route& r) {
    return api::form_of(r) == codecs::Inference::Form::kInfer;
  });
  return route;
}

// Of a call that its client ended.
ErrorCode error_of(GrpcCode code) noexcept {
  return code == GrpcCode::kDeadlineExceeded ? ErrorCode::kDeadlineExceeded : ErrorCode::kCancelled;
}

}  // namespace

GrpcCall::GrpcCall(CallRoom& room, TimerQueue& clock)
    : Alarm(clock), room_(room), call_(room.admission(), room.telemetry(), 0, &GrpcCall::notify, this) {
  task_.context = this;
  task_.work = [](void* context) noexcept { static_cast<GrpcCall*>(context)->resume(); };
}

GrpcCall::~GrpcCall() { Alarm::stop(); }

template <class Step>
bool GrpcCall::do_step(const Step& step) noexcept {
  GrpcWaiter* waiter = nullptr;
  {
    const MutexLock lock(mutex_);
    if (step()) waiter = waiter_;
  }
  if (waiter != nullptr) waiter->finished();
  return waiter != nullptr;
}

bool GrpcCall::admit(api::GrpcMethod method, const GrpcCaller& caller, size_t bytes, GrpcWaiter& waiter) noexcept {
  return !do_step([&] {
    mutex_.assert_held();
    waiter_ = &waiter;
    bool finished = false;
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      finished = start(method, caller, bytes);
    });
    return problem ? fail(problem) : finished;
  });
}

bool GrpcCall::start(api::GrpcMethod method, const GrpcCaller& caller, size_t bytes) {
  api::Admission& admission = room_.admission();
  state_ = State::kAdmitted;
  method_ = method;
  status_ = {};
  http_status_ = 200;
  start_ = room_.now();
  deadline_ = caller.deadline;
  sent_ = 0;
  peer_ = caller.peer;
  call_.begin({caller.request_id, caller.traceparent, caller.weights, caller.affinity}, request_id_, start_, deadline_);
  Slot slot(room_.slots());
  const LogRequest log_request(request_id_, peer_);
  const http::CredentialSet::Refusal refusal =
      api::refusal_of(admission.config, room_.telemetry(), slot.credentials(), &infer_route(), http::kPublic,
                      caller.authorization, false);
  if (refusal.status != 0) {
    http_status_ = refusal.status;
    status_ = {grpc_code(refusal.status), std::string(refusal.message)};
    state_ = State::kFinished;
    return true;
  }
  message_room_.take(admission.request_memory, bytes, "a request");
  return false;
}

bool GrpcCall::grow(size_t bytes) noexcept {
  bool admitted = false;
  const bool finished = do_step([&] {
    mutex_.assert_held();
    admitted = state_ == State::kAdmitted;  // not cancelled meanwhile
    if (!admitted) return false;
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      message_room_.take(room_.admission().request_memory, bytes, "a request");
    });
    return problem && fail(problem);
  });
  return admitted && !finished;
}

void GrpcCall::run(const codecs::TensorRequest& request) noexcept {
  do_step([&] {
    mutex_.assert_held();
    if (state_ != State::kAdmitted) return false;  // cancelled meanwhile
    bool finished = false;
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      Slot slot(room_.slots());
      call_.inference().use_thread(slot.index());
      finished = begin(request, slot);
    });
    return problem ? fail(problem) : finished;
  });
}

void GrpcCall::refuse(GrpcStatus status) noexcept {
  do_step([&] {
    mutex_.assert_held();
    if (state_ != State::kAdmitted) return false;
    status_ = std::move(status);
    http_status_ = status_.code == GrpcCode::kResourceExhausted ? 413 : 400;
    state_ = State::kFinished;
    return true;
  });
}

bool GrpcCall::begin(const codecs::TensorRequest& request, Slot& slot) {
  api::Admission& admission = room_.admission();
  const size_t at = request.model.find('@');
  model_ = request.model.substr(0, at);
  const std::string_view set = at == std::string_view::npos ? std::string_view() : request.model.substr(at + 1);
  const api::Call::Target target{model_, request.version, set};
  request_ = &request;
  registry::ModelUse model = call_.find(slot.catalog(), slot.index(), target);
  if (!model) {
    wait();
    return false;
  }
  const bool streamed = method_ == api::GrpcMethod::kModelStreamInfer;
  call_.open(std::move(model), target,
             streamed ? codecs::Inference::Form::kInferStream : codecs::Inference::Form::kInfer, false);
  call_.inference().decode(request, &admission.shared_memory);
  if (call_.choose_weights(request_id_)) return run_decoded();
  wait();
  return false;
}

// Waits for the holder's notice or the deadline.
void GrpcCall::wait() {
  state_ = State::kWaiting;
  if (const Clock::time_point deadline = call_.deadline(); deadline != Clock::time_point::max()) set(deadline);
}

bool GrpcCall::run_decoded() {
  state_ = State::kWaiting;
  if (call_.run()) return answer_run();
  wait();
  return false;
}

void GrpcCall::name_weights() noexcept {
  if (!answer_.weights_name.empty()) return;
  const char* const end =
      std::to_chars(weight_version_, weight_version_ + sizeof weight_version_, answer_.weight_version).ptr;
  answer_.weights_name = {weight_version_, static_cast<size_t>(end - weight_version_)};
}

bool GrpcCall::answer_run() {
  call_.finish_run();
  call_.inference().encode(answer_);
  name_weights();
  size_t bytes = 0;
  for (const codecs::TensorAnswer::Output& output : answer_.outputs) bytes += output.bytes;
  call_.hold_answer(bytes);
  call_.trace_outputs();
  call_.inference().succeed();
  encoded_ = room_.now();
  state_ = State::kFinished;
  return true;
}

// The next answer of a decode loop. The model holds the inference until the loop has ended.
bool GrpcCall::answer_token() {
  const scheduling::DecodeLoop::Look look = call_.take_tokens(1);
  if (look == scheduling::DecodeLoop::Look::kWait) {
    state_ = State::kWaiting;
    return false;
  }
  call_.inference().encode(answer_);
  name_weights();
  if (answer_.last) {
    call_.inference().succeed();
    encoded_ = room_.now();
  }
  state_ = State::kFinished;
  return true;
}

void GrpcCall::next() noexcept {
  room_.end_sending(*this);
  do_step([&] {
    mutex_.assert_held();
    if (state_ != State::kFinished) return false;
    if (cut_off_ != GrpcCode::kOk) {
      // The loop still holds the call, or has let go: release() sees which.
      status_ = {cut_off_, {}};
      http_status_ = http_status(error_of(cut_off_));
      return true;
    }
    Slot slot(room_.slots());
    call_.inference().use_thread(slot.index());
    bool finished = false;
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      finished = answer_token();
    });
    return problem ? fail(problem) : finished;
  });
}

// Sets the call's status from an exception; if memory is short, with a shorter message.
bool GrpcCall::fail(const std::exception_ptr& problem) noexcept {
  state_ = State::kFinished;
  encoded_ = room_.now();
  if (!succeeds([&] {
        mutex_.assert_held();
        const LogRequest log_request(request_id_, peer_);
        Failure failure = call_.fail(problem);
        http_status_ = failure.status;
        status_ = {grpc_code(failure.status), std::move(failure.message)};
      }))
    status_ = {GrpcCode::kResourceExhausted, "no memory"};
  return true;
}

void GrpcCall::notify(void* context) noexcept {
  GrpcCall& call = *static_cast<GrpcCall*>(context);
  call.room_.resume_later(call.task_);
}

void GrpcCall::resume() noexcept {
  bool forgotten = false;
  do_step([&] {
    mutex_.assert_held();
    Slot slot(room_.slots());
    call_.inference().use_thread(slot.index());
    if (state_ != State::kWaiting) {
      forgotten = call_.take_back() && released_;
      if (forgotten) clean();
      return false;
    }
    bool finished = false;
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      finished = go_on(slot);
    });
    return problem ? fail(problem) : finished;
  });
  if (forgotten) room_.give(*this);
}

// Handles the notice of a call whose client still waits.
bool GrpcCall::go_on(Slot& slot) {
  switch (call_.noticed()) {
    case api::Call::Holder::kLoader:
      call_.check_load();
      return begin(*request_, slot);
    case api::Call::Holder::kReader:
      call_.take_weights();
      return run_decoded();
    default:
      return call_.running() ? answer_token() : answer_run();
  }
}

void GrpcCall::cancel() noexcept {
  do_step([&] {
    mutex_.assert_held();
    const bool late = room_.now() >= deadline_;
    cut_off(late);
    return late ? end_waiting(GrpcCode::kDeadlineExceeded, ErrorCode::kDeadlineExceeded, "Deadline Exceeded")
                : end_waiting(GrpcCode::kCancelled, ErrorCode::kCancelled, "the client cancelled the request");
  });
}

// Ends a stream whose answer is being sent: it is the last one.
void GrpcCall::cut_off(bool late) noexcept {
  if (state_ != State::kFinished || !call_.running() || !call_.inference().streams() || cut_off_ != GrpcCode::kOk)
    return;
  cut_off_ = late ? GrpcCode::kDeadlineExceeded : GrpcCode::kCancelled;
  call_.cancel();
  Slot slot(room_.slots());
  call_.inference().use_thread(slot.index());
  call_.fail(error_of(cut_off_));
}

void GrpcCall::ring() noexcept {
  do_step([&] {
    mutex_.assert_held();
    if (state_ != State::kWaiting || !held()) return false;
    if (const Clock::time_point deadline = call_.deadline(); room_.now() < deadline) {
      if (deadline != Clock::time_point::max()) set(deadline);
      return false;
    }
    return end_waiting(GrpcCode::kDeadlineExceeded, ErrorCode::kDeadlineExceeded, call_.late_message());
  });
}

// Ends a call that has no answer yet. A run in progress continues, and its outputs are dropped.
bool GrpcCall::end_waiting(GrpcCode code, ErrorCode error, const char* message) noexcept {
  if (state_ != State::kAdmitted && state_ != State::kWaiting) return false;
  const bool queued = call_.cancel();
  if (queued || call_.inference().streams() || error == ErrorCode::kDeadlineExceeded) {
    Slot slot(room_.slots());
    call_.inference().use_thread(slot.index());
    call_.fail(error);
  }
  status_.code = code;
  http_status_ = http_status(error);
  succeeds([&] {
    mutex_.assert_held();
    status_.message = message;
  });
  encoded_ = room_.now();
  state_ = State::kFinished;
  return true;
}

void GrpcCall::sending(size_t bytes) noexcept {
  const ServerConfig& config = room_.admission().config;
  GrpcWaiter* waiter = nullptr;
  {
    const MutexLock lock(mutex_);
    sent_ = bytes;
    waiter = waiter_;
  }
  room_.add_sending(*this, *waiter,
                    room_.now() + config.write_timeout +
                        std::chrono::seconds(static_cast<int64_t>(bytes) / std::max<int64_t>(config.min_rate, 1)));
}

void GrpcCall::release() noexcept {
  room_.end_sending(*this);
  {
    const MutexLock lock(mutex_);
    record();
    if (call_.running() && call_.inference().streams()) call_.cancel();
    if (held()) {
      released_ = true;
      return;
    }
    Slot slot(room_.slots());
    call_.inference().use_thread(slot.index());
    if (status_.code == GrpcCode::kOk && cut_off_ == GrpcCode::kOk) call_.inference().show();
    clean();
  }
  room_.give(*this);
}

// Writes the access log, metrics and the trace.
void GrpcCall::record() noexcept {
  api::Admission& admission = room_.admission();
  const Clock::duration time = room_.now() - start_;
  const GrpcCode code = cut_off_ != GrpcCode::kOk ? cut_off_ : status_.code;
  room_.count(method_, code, time);
  succeeds([&] {
    mutex_.assert_held();
    const LogRequest log_request(request_id_, peer_);
    if (admission.config.access_log)
      api::log_access(std::string("gRPC ").append(api::kGrpcMethodNames[static_cast<size_t>(method_)]),
                      static_cast<int>(code), sent_, time);
    if (!call_.traced() || held()) return;
    telemetry::TraceRecord record;
    record.method_and_path =
        std::string("gRPC ").append(api::kGrpcMethodNames[static_cast<size_t>(method_)]).append(" ").append(model_);
    record.route = api::kGrpcMethodNames[static_cast<size_t>(method_)];
    record.status = http_status_;
    record.grpc_code = static_cast<int>(code);
    call_.record(std::move(record), request_id_, encoded_);
  });
}

void GrpcCall::clean() noexcept {
  call_.clear();
  codecs::Inference& inference = call_.inference();
  if (room_.admission().request_memory.is_tight() || inference.capacity() > kMaxFreeMemory) inference.trim(0);
  message_room_.give_back();
  request_id_.begin({});
  released_ = false;
  cut_off_ = GrpcCode::kOk;
  waiter_ = nullptr;
  state_ = State::kFree;
}

CallRoom::CallRoom(api::Admission& admission, telemetry::Telemetry& telemetry, TimerQueue& clock, size_t first_place)
    : admission_(admission),
      telemetry_(telemetry),
      clock_(clock),
      slots_(admission.repository, admission.credentials, first_place) {
  resumers_.start();
}

CallRoom::~CallRoom() { resumers_.stop(); }

GrpcCall* CallRoom::take() {
  GrpcCall* call = nullptr;
  {
    const MutexLock lock(mutex_);
    if (!free_.empty()) {
      call = free_.back().release();
      free_.pop_back();
    }
  }
  if (call == nullptr) call = new GrpcCall(*this, clock_);
  taken_.fetch_add(1, std::memory_order_relaxed);
  return call;
}

void CallRoom::give(GrpcCall& call) noexcept {
  {
    std::unique_ptr<GrpcCall> owned(&call);
    const MutexLock lock(mutex_);
    if (free_.size() < kMaxFree)
      succeeds([&] {
        mutex_.assert_held();
        free_.push_back(std::move(owned));
      });
  }
  taken_.fetch_sub(1, std::memory_order_release);  // last, because the room may be destroyed
}

void CallRoom::resume_later(ThreadPool::Task& task) noexcept {
  resumers_.submit(task);  // does not throw, because a thread has started
}

void CallRoom::add_sending(GrpcCall& call, GrpcWaiter& waiter, GrpcCall::Clock::time_point due) noexcept {
  const MutexLock lock(sending_mutex_);
  call.reader_ = &waiter;
  call.due_ = due;
  call.previous_ = nullptr;
  call.next_ = sending_;
  if (sending_ != nullptr) sending_->previous_ = &call;
  sending_ = &call;
}

void CallRoom::end_sending(GrpcCall& call) noexcept {
  const MutexLock lock(sending_mutex_);
  if (sending_ != &call && call.previous_ == nullptr) return;  // not in the list
  (call.previous_ != nullptr ? call.previous_->next_ : sending_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
  call.next_ = call.previous_ = nullptr;
}

void CallRoom::give_up_late(GrpcCall::Clock::time_point now) noexcept {
  const MutexLock lock(sending_mutex_);
  for (GrpcCall* call = sending_; call != nullptr; call = call->next_) {
    if (call->due_ <= now) call->reader_->give_up();
  }
}

void CallRoom::count(api::GrpcMethod method, GrpcCode code, std::chrono::nanoseconds time) noexcept {
  telemetry_.calls.add(static_cast<size_t>(method), static_cast<size_t>(code), time);
}

}  // namespace sconce::server::rpc
