// HttpCall: access to administration, and requests that other threads execute.
#include <algorithm>
#include <utility>

#include "server/api/access.h"
#include "server/api/http_call.h"
#include "server/api/routes.h"
#include "server/support/failure.h"

namespace sconce::server::api {
namespace {

// Answers for the case that memory is short.
constexpr std::string_view kNoMemory = "{\"error\":\"no memory for this request\"}", kDone = "{}";

}  // namespace

// The task of an upload reads the body itself.
HttpCall::Next HttpCall::begin_admin(uint64_t length) {
  const http::RequestHeader& head = reader_.head();
  if (head.coding != http::Coding::kIdentity) {
    return refuse(415, "Content-Encoding is not supported on the administration listener");
  }
  const Route* const route = found_route(route_);
  const OnAdminThread* const own = route != nullptr ? std::get_if<OnAdminThread>(&route->handler) : nullptr;
  const bool weights = route != nullptr && route->body == BodyLimit::kWeights;
  const uint64_t most = weights || (route != nullptr && route->body == BodyLimit::kTensors) ? kMaxTensors : kMaxText;
  const uint64_t limit = std::min(static_cast<uint64_t>(api_.admission().config.max_body_bytes), most);
  const rollout::WeightsBody kind =
      weights ? rollout::weights_body(head.content_type) : rollout::WeightsBody::kReference;
  if (kind == rollout::WeightsBody::kUnsupported) {
    return refuse(415, "Content-Type must be application/octet-stream (safetensors) or application/json");
  }
  if (kind != rollout::WeightsBody::kStream && length > limit) {
    return refuse(413,
                  "request body is larger than " + std::to_string(limit) + " bytes, the most that this route takes");
  }
  reader_.limit_body(limit);
  if (own == nullptr) return Next::kReadBody;

  admin_ = std::make_unique<rollout::AdminRequest>();
  admin_->id = request_id_;
  admin_->peer = peer_;
  admin_->model = route_.model;
  admin_->version = route_.version;
  admin_->number = route_.number;
  admin_->set = route_.set;
  admin_->query = cached_path_.query;
  admin_->content_type = head.content_type;
  admin_->content_digest = head.content_digest;
  admin_->signature = head.signature;
  admin_->authorization = head.authorization;
  admin_->user_agent = head.user_agent;
  admin_->traceparent = head.traceparent;
  admin_->has_token = api_.credentials().needs_token(http::kAdminScope);
  admin_->head_only = head.head_only;
  admin_->source = reader_.begin_upload();
  if (kind != rollout::WeightsBody::kStream) return Next::kReadBody;
  admin_->upload = true;
  admin_->expects_continue = head.expects_continue;
  return start_task(*own);
}

bool HttpCall::refuse_access() {
  const http::RequestHeader& head = reader_.head();
  Admission& admission = api_.admission();
  if (listener_ == http::kAdmin) admission.credentials.refresh();
  const http::CredentialSet::Refusal refusal =
      refusal_of(admission.config, api_.telemetry(), api_.credentials(), found_route(route_), listener_,
                 head.authorization, foreign_page_);
  if (refusal.status == 0) return false;
  answer_error(refusal.status, refusal.message, response_);
  if (refusal.status == 401) response_.fields = "WWW-Authenticate: Bearer realm=\"sconce\"\r\n";
  form_.close = true;
  return true;
}

HttpCall::Next HttpCall::start_task(const OnAdminThread& handler) {
  check_route(api_.admission(), route_);
  if (!hold_model()) return wait_for_load();
  const auto done = [this](rollout::AdminAnswer answer) {
    admin_answer_ = std::move(answer);
    notify(this);
  };
  handler.start(api_.admission(), api_.rollout(), api_.telemetry(), std::move(*admin_), done);
  holder_ = Holder::kAdministration;
  return Next::kWait;
}

HttpCall::Next HttpCall::answer_task() {
  held_.reset();
  // The work is done, so an error would be wrong. Without memory for the answer, the connection is closed. (The writer
  // has room for a short answer: ResponseWriter::reserve().)
  if (admin_answer_.sent > 0) {
    response_.reset();
    response_.status = admin_answer_.status;
    return Next::kSent;
  }
  const bool told = succeeds([this] {
    if (admin_) take_admin_answer();
    name_response();
  });
  return told ? Next::kAnswer : Next::kHangUp;
}

void HttpCall::take_admin_answer() {
  http::ConnectionCounters::add(api_.counters().received, admin_answer_.received);
  reader_.end_upload(!admin_answer_.body_left);
  response_.reset();
  response_.status = admin_answer_.status;
  response_.set_text(!admin_answer_.text.empty()   ? std::string_view(admin_answer_.text)
                     : admin_answer_.status == 200 ? kDone
                                                   : kNoMemory);
  admin_answer_ = {};
}

HttpCall::Next HttpCall::answer_by(const OnControlThread& handler) {
  start_control(api_.admission(), handler, route_, body_text(), request_id_, peer_, [this](std::exception_ptr problem) {
    problem_ = std::move(problem);
    notify(this);
  });
  holder_ = Holder::kAdministration;
  return Next::kWait;
}

}  // namespace sconce::server::api
