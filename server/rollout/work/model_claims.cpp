#include "server/rollout/work/model_claims.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/registry/model_weights.h"

namespace sconce::server::rollout {

ModelClaims::Claim::Claim(ModelClaims& claims, const registry::ServedModel& model, std::string what,
                          std::chrono::milliseconds patience, By by)
    : claims_(claims), model_(&model) {
  weights::Shadow& shadow =
      model.weights().shadow();  // throws for a pipeline, which has no shadow and nothing to claim
  enter(std::move(what), patience, by);
  shadow.weights_change();
}

void ModelClaims::Claim::enter(std::string what, std::chrono::milliseconds patience, By by) {
  const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  const MutexLock lock(claims_.mutex_);
  for (auto other = claims_.claims_.find(model_); other != claims_.claims_.end();
       other = claims_.claims_.find(model_)) {
    const bool waits = by == By::kRequest && other->second.by == By::kServer;
    const auto end = begin + (waits ? std::max(patience, kPatience) : patience);
    if (std::chrono::steady_clock::now() >= end) break;
    claims_.ended_.wait_until(claims_.mutex_, end);
  }
  const auto [it, fresh] = claims_.claims_.emplace(model_, Claimed{std::move(what), by});
  SCONCE_CHECK(fresh, kBusy, "the model is busy: ", it->second.what);
}

bool ModelClaims::claimed(const registry::ServedModel& model) const {
  const MutexLock lock(mutex_);
  return claims_.contains(&model);
}

ModelClaims::Claim::~Claim() {
  model_->weights().shadow().weights_settled();
  const MutexLock lock(claims_.mutex_);
  claims_.claims_.erase(model_);
  claims_.ended_.notify_all();
}

}  // namespace sconce::server::rollout
