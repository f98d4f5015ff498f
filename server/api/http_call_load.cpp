// HttpCall: waits for models that are loaded on demand.
#include "server/api/access.h"
#include "server/api/http_call.h"
#include "server/api/routes.h"
#include "server/support/failure.h"

namespace sconce::server::api {

registry::OnDemand* HttpCall::on_demand() const noexcept { return api_.admission().loader.on_demand(); }

// Whether the route's model must be loaded first. The catalog is read only if models are loaded on demand at all.
bool HttpCall::must_load() {
  return on_demand() != nullptr && needs_load(api_.admission(), api_.catalog(), route_.model);
}

// For an admin task: an upload has its own limits.
HttpCall::Next HttpCall::wait_for_load() {
  call_.wait_for_load(route_.model, false);
  return Next::kWait;
}

// Continues after the load. If the model was evicted meanwhile, the wait is repeated.
HttpCall::Next HttpCall::go_on_loaded() {
  call_.check_load();
  if (admin_) return start_task(std::get<OnAdminThread>(route_of(route_).handler));
  // When the header arrived, the maximum size was unknown.
  if (is_inference(route_of(route_)) && reader_.body().size() > kMaxText && !must_load()) {
    most_body_ = api_.catalog().ready(route_.model, route_.version)->most_body_bytes();
    if (reader_.body().size() > most_body_) return refuse_length();
  }
  return route_request();
}

// Holds the model for an admin task until the task ends. Returns false if the model must be loaded first.
bool HttpCall::hold_model() {
  if (on_demand() == nullptr || route_.model.empty()) return true;
  if (must_load()) return false;
  const registry::Catalog::Entry* const entry = api_.catalog().look_up(route_.model);
  if (entry == nullptr) return true;  // the handler reports the unknown model
  std::shared_ptr<registry::ServedModel> model;
  if (!succeeds([&] { model = api_.catalog().loaded(route_.model, route_.version); })) return true;
  held_ = registry::ModelUse(model, api_.index(), start_);
  return static_cast<bool>(held_);
}

}  // namespace sconce::server::api
