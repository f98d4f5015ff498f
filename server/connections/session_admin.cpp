// The part of a session that administration has: who may ask, and requests that other threads work on.
#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/connections/session.h"
#include "server/models/control.h"

namespace sconce {
namespace {

// What is said where there was not even memory to say it.
constexpr std::string_view kNoMemory = "{\"error\":\"no memory for this request\"}", kDone = "{}";

}  // namespace

// True: the request is answered, or its task runs. False: its body is to be read first.
bool Session::begin_admin(uint64_t length) {
  const RequestHead& head = parser_->head();
  if (head.coding != Coding::kIdentity) {
    refuse(415, "Content-Encoding is not supported on the administration listener");
    return true;
  }
  const uint64_t limit = std::min(static_cast<uint64_t>(worker_.service().config.max_body_bytes), kMostText);
  const Route* const route = found_route(route_);
  const OnAdminThread* const own = route != nullptr ? std::get_if<OnAdminThread>(&route->handler) : nullptr;
  const bool weights = route != nullptr && route->body == BodyLimit::kWeights;
  const WeightsBody kind = weights ? weights_body(head.content_type) : WeightsBody::kReference;
  if (kind == WeightsBody::kUnsupported) {
    refuse(415, "Content-Type must be application/octet-stream (safetensors) or application/json");
    return true;
  }
  if (kind != WeightsBody::kStream && length > limit) {
    refuse(413, "request body is larger than " + std::to_string(limit) + " bytes, the most that this route takes");
    return true;
  }
  parser_->limit_body(limit);
  if (own == nullptr) return false;

  admin_ = std::make_unique<AdminRequest>();
  admin_->id = request_id_;
  admin_->peer = peer_;
  admin_->model = route_.model;
  admin_->version = route_.version;
  admin_->number = route_.number;
  admin_->query = cached_path_.query;
  admin_->content_type = head.content_type;
  admin_->content_digest = head.content_digest;
  if (kind != WeightsBody::kStream) return false;
  admin_->upload = true;
  admin_->source = {&transport_, &*parser_, in_.get(), in_capacity_, &begin_, &end_};
  admin_->expects_continue = head.expects_continue;
  start_task(*own);
  return true;
}

bool Session::refuse_access() {
  const Route* const route = found_route(route_);
  const uint8_t scope = needed_scope(route, listener_, worker_.service().config.http_admin);
  if (scope == kNoScope) return false;
  if (listener_ == kAdmin) worker_.service().credentials.refresh();
  const CredentialSet& known = worker_.credentials();
  const RequestHead& head = parser_->head();
  CredentialSet::Refusal refusal = known.check(scope, head.authorization);
  // A page from anywhere can make its reader's browser send this.
  if (scope == kAdminScope && !known.needs_token(scope) && !head.origin.empty() && head.method != Method::kGet)
    refusal = {403, "requests of web pages need a token: token_file"};
  if (refusal.status == 0) return false;
  log_warn(worker_.service().refusals, "request refused with {}: {}", refusal.status, refusal.message);
  answer_error(refusal.status, refusal.message, response_);
  if (refusal.status == 401) response_.fields = "WWW-Authenticate: Bearer realm=\"sconce\"\r\n";
  keep_alive_ = false;
  begin_answer();
  return true;
}

void Session::start_task(const OnAdminThread& handler) {
  state_ = State::kWaiting;
  ++pending_;
  struct Undo {
    int& pending;
    bool started = false;
    ~Undo() {
      if (!started) --pending;
    }
  } undo{pending_};
  const auto done = [this](AdminAnswer answer) {
    admin_answer_ = std::move(answer);
    notify(this);
  };
  handler.start(worker_.service(), std::move(*admin_), done);
  undo.started = true;
}

void Session::answer_waited() {
  if (control_problem_) std::rethrow_exception(std::exchange(control_problem_, nullptr));
  // The work is done, so an error would be wrong. Where there is no memory for the answer, the connection just ends.
  const bool told = succeeds([this] {
    if (admin_) take_admin_answer();
    begin_answer();
  });
  if (!told) close();
}

void Session::take_admin_answer() {
  ConnectionCounters::add(worker_.counters().received, admin_answer_.received);
  body_left_ = admin_answer_.body_left;
  response_.reset();
  response_.status = admin_answer_.status;
  response_.set_text(!admin_answer_.text.empty()   ? std::string_view(admin_answer_.text)
                     : admin_answer_.status == 200 ? kDone
                                                   : kNoMemory);
  admin_answer_ = {};
}

void Session::answer_by(const OnControlThread& handler) {
  handler.check(body_text());
  SCONCE_CHECK(is_model_name(route_.model), kInvalidArgument, "not a model's name: '", excerpt(route_.model), "'");
  SCONCE_CHECK(!worker_.service().draining.load(std::memory_order_relaxed), kUnavailable, "the server is ending");
  Control& control = worker_.service().control;
  control.submit(
      [&control, work = handler.work, name = std::string(route_.model), id = request_id_, peer = peer_] {
        const LogRequest log_request(id, peer);
        (control.*work)(name);
      },
      [this](std::exception_ptr problem) {
        control_problem_ = std::move(problem);
        notify(this);
      });
  state_ = State::kWaiting;
  ++pending_;
}

}  // namespace sconce
