#include "server/grpc/grpc_document.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "sconce/check.h"
#include "server/api/access.h"
#include "server/api/run_record.h"
#include "server/grpc/status.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::rpc {
namespace {

constexpr size_t kWithoutRoute = SIZE_MAX;

// The index of a method's route in the table.
size_t route_index(http::Method method, std::string_view path) {
  for (size_t i = 0; i < api::kRoutes.size(); ++i) {
    if (api::kRoutes[i].method != method || (api::kRoutes[i].listeners & http::kPublic) == 0) continue;
    if (std::find(api::kRoutes[i].paths.begin(), api::kRoutes[i].paths.end(), path) != api::kRoutes[i].paths.end())
      return i;
  }
  return kWithoutRoute;
}

struct MethodRoutes {
  size_t asks, changes;
};
using enum http::Method;
const std::array<MethodRoutes, api::kGrpcMethods>& method_routes() {
  static const std::array<MethodRoutes, api::kGrpcMethods> routes{
#define METHOD(name, method, path) MethodRoutes{route_index(method, path), route_index(kPost, path)},
#include "server/api/methods.def"
#undef METHOD
  };
  return routes;
}

http::RouteMatch match_of(api::GrpcMethod method, const RouteRequest& request) {
  const MethodRoutes& routes = method_routes()[static_cast<size_t>(method)];
  const std::string_view model = request.model;
  http::RouteMatch match;
  match.result = http::RouteMatch::Result::kFound;
  match.route = request.changes ? routes.changes : routes.asks;
  match.model = model.substr(0, model.find('@'));
  if (match.model.size() < model.size()) match.set = model.substr(match.model.size() + 1);
  match.version = request.version;
  match.region = request.region;
  return match;
}

}  // namespace

void GrpcDocument::check_routes() {
  for (size_t i = 0; i < static_cast<size_t>(api::GrpcMethod::kModelInfer); ++i)
    SCONCE_CHECK(method_routes()[i].asks != kWithoutRoute, kInternal, "a gRPC method has no route");
}

GrpcDocument::GrpcDocument(CallRoom& room, api::GrpcMethod method, const GrpcCaller& caller, GrpcHost::Done done)
    : Alarm(room.clock()),
      room_(room),
      method_(method),
      done_(std::move(done)),
      peer_(caller.peer),
      start_(room.now()),
      deadline_(caller.deadline),
      call_(
          room.admission(), room.telemetry(), 0,
          [](void* context) noexcept {
            GrpcDocument& self = *static_cast<GrpcDocument*>(context);
            self.room_.resume_later(self.resume_task_);
          },
          this) {
  resume_task_.context = late_task_.context = this;
  resume_task_.work = [](void* context) noexcept { static_cast<GrpcDocument*>(context)->resume(); };
  late_task_.work = [](void* context) noexcept { static_cast<GrpcDocument*>(context)->end_late(); };
  call_.begin({caller.request_id, {}, {}, {}}, id_, start_, deadline_);
}

GrpcDocument::~GrpcDocument() { Alarm::stop(); }

template <class Step>
void GrpcDocument::do_step(const Step& step) noexcept {
  bool ended = false;
  {
    const MutexLock lock(mutex_);
    const std::exception_ptr problem = exception_of([&] {
      mutex_.assert_held();
      ended = step();
    });
    if (problem) ended = fail(problem);
    if (ended) state_ = State::kEnded;
  }
  if (ended) report();
}

bool GrpcDocument::start(std::string_view authorization, std::string_view message) noexcept {
  bool waits = false;
  do_step([&] {
    mutex_.assert_held();
    const bool ended = begin(authorization, message);
    waits = state_ == State::kWaiting;
    return ended;
  });
  return waits;
}

bool GrpcDocument::begin(std::string_view authorization, std::string_view message) {
  api::Admission& admission = room_.admission();
  const LogRequest log_request(id_, peer_);
  request_ = route_request(method_, message);
  match_ = match_of(method_, request_);
  const api::Route& route = api::route_of(match_);
  CallSlots::Slot slot(room_.slots());
  const http::CredentialSet::Refusal refusal = api::refusal_of(admission.config, room_.telemetry(), slot.credentials(),
                                                               &route, http::kPublic, authorization, false);
  if (refusal.status != 0) {
    status_ = {grpc_code(refusal.status), std::string(refusal.message)};
    return true;
  }
  if (const auto* const control = std::get_if<api::OnControlThread>(&route.handler)) {
    execute(*control);
    return false;
  }
  return answer(slot, false);
}

// loaded: the wait for the model has ended.
bool GrpcDocument::answer(CallSlots::Slot& slot, bool loaded) {
  const api::OnIoThread& handler = std::get<api::OnIoThread>(api::route_of(match_).handler);
  const api::RequestView request{room_.admission(), room_.telemetry(), slot.catalog(), match_, request_.body};
  http::Response response;
  response.reset();
  api::DocumentCall document(call_);
  const bool written =
      loaded ? document.resume(handler, request, response) : document.write(handler, request, response);
  if (written) {
    text_ = answer_message(method_, response.text().view().substr(http::Response::kHeadRoom));
    return true;
  }
  state_ = State::kWaiting;
  resume_self_ = shared_from_this();
  if (const Clock::time_point deadline = call_.deadline(); deadline != Clock::time_point::max()) set(deadline);
  return false;
}

void GrpcDocument::execute(const api::OnControlThread& handler) {
  const auto executed = [self = shared_from_this()](const std::exception_ptr& problem) {
    self->do_step([&] {
      self->mutex_.assert_held();
      if (problem) std::rethrow_exception(problem);
      self->text_ = "{}";
      return true;
    });
  };
  api::start_control(room_.admission(), handler, match_, request_.body, id_, peer_, executed);
  state_ = State::kExecuting;
}

// On a thread of CallRoom, after the notice.
void GrpcDocument::resume() noexcept {
  Self self;  // the last reference must not go under the mutex
  do_step([&] {
    mutex_.assert_held();
    self = std::move(resume_self_);
    if (state_ != State::kWaiting) {
      call_.take_back();
      return false;
    }
    call_.noticed();
    const LogRequest log_request(id_, peer_);
    CallSlots::Slot slot(room_.slots());
    return answer(slot, true);
  });
}

void GrpcDocument::cancel() noexcept {
  Self released;
  do_step([&] {
    mutex_.assert_held();
    return room_.now() >= deadline_ ? end_waiting(GrpcCode::kDeadlineExceeded, "Deadline Exceeded", released)
                                    : end_waiting(GrpcCode::kCancelled, "the client cancelled the request", released);
  });
}

// Another thread ends the call: its destructor waits for this function, so the last reference must not go here.
void GrpcDocument::ring() noexcept {
  const MutexLock lock(mutex_);
  if (state_ != State::kWaiting || late_self_) return;
  if (const Clock::time_point deadline = call_.deadline(); room_.now() < deadline) {
    if (deadline != Clock::time_point::max()) set(deadline);
    return;
  }
  late_self_ = resume_self_;
  room_.resume_later(late_task_);
}

void GrpcDocument::end_late() noexcept {
  Self self, released;
  do_step([&] {
    mutex_.assert_held();
    self = std::move(late_self_);
    return end_waiting(GrpcCode::kDeadlineExceeded, call_.late_message(), released);
  });
}

// released: receives the reference of a notice that will not come.
bool GrpcDocument::end_waiting(GrpcCode code, const char* message, Self& released) noexcept {
  if (state_ != State::kWaiting) return false;
  if (call_.cancel()) released = std::move(resume_self_);
  status_.code = code;
  succeeds([&] {
    mutex_.assert_held();
    status_.message = message;
  });
  return true;
}

bool GrpcDocument::fail(const std::exception_ptr& problem) noexcept {
  if (!succeeds([&] {
        mutex_.assert_held();
        const LogRequest log_request(id_, peer_);
        Failure failure = call_.fail(problem);
        status_ = {grpc_code(failure.status), std::move(failure.message)};
      }))
    status_ = {GrpcCode::kResourceExhausted, "no memory"};
  return true;
}

// Counts the call, writes the access log, and passes the answer on. Once the call has ended, no thread writes the
// members that are read here.
void GrpcDocument::report() noexcept {
  const Clock::duration time = room_.now() - start_;
  const auto code = static_cast<int>(status_.code);
  const size_t bytes = text_.size();
  room_.count(method_, status_.code, time);
  succeeds([&] {
    if (!room_.admission().config.access_log) return;
    const LogRequest log_request(id_, peer_);
    api::log_access(std::string("gRPC ").append(api::kGrpcMethodNames[static_cast<size_t>(method_)]), code, bytes,
                    time);
  });
  done_(status_, text_);
}

}  // namespace sconce::server::rpc
