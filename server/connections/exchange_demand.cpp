// Exchange: waits for models that are loaded on demand.
#include "server/answers/routes.h"
#include "server/base/failure.h"
#include "server/connections/exchange.h"

namespace sconce::server {

OnDemand* Exchange::on_demand() const noexcept { return io_thread_.service().control.on_demand(); }

// Whether the route's model is not loaded and can be. A model that is loaded costs one look at the catalog.
bool Exchange::must_load(const Catalog& catalog) const {
  OnDemand* const models = on_demand();
  return models != nullptr && models->is_missing(catalog, route_.model);
}

bool Exchange::must_load() { return on_demand() != nullptr && must_load(io_thread_.catalog()); }

Exchange::Next Exchange::wait_for_load() {
  demand_.notify = &Exchange::notify;
  demand_.context = this;
  // An upload has limits of its own.
  load_deadline_ = admin_ ? Clock::time_point::max() : on_demand()->deadline(route_.model, start_);
  on_demand()->ask(route_.model, demand_);
  holder_ = Holder::kLoader;
  return Next::kWait;
}

// Goes on where wait_for_load() was called. The model may have gone again, and then that is repeated.
Exchange::Next Exchange::go_on_loaded() {
  if (demand_.problem) std::rethrow_exception(std::exchange(demand_.problem, nullptr));
  if (admin_) return start_task(std::get<OnAdminThread>(route_of(route_).handler));
  // When its header came, nobody knew how large it may be.
  if (is_inference(route_of(route_)) && reader_.body().size() > kMostText && !must_load()) {
    most_body_ = io_thread_.catalog().ready(route_.model, route_.version)->most_body_bytes();
    if (reader_.body().size() > most_body_) return refuse_length();
  }
  return route_request();
}

// Keeps the model of an administration's task until that is over. Returns false if it must be loaded first.
bool Exchange::hold_model() {
  if (on_demand() == nullptr || route_.model.empty()) return true;
  if (must_load()) return false;
  const Catalog::Entry* const entry = io_thread_.catalog().look_up(route_.model);
  if (entry == nullptr) return true;  // the handler says that there is none
  std::shared_ptr<ServedModel> model;
  if (!succeeds([&] { model = io_thread_.catalog().loaded(route_.model, route_.version); })) return true;
  held_ = ModelUse(model, io_thread_.index(), start_);
  return static_cast<bool>(held_);
}

}  // namespace sconce::server
