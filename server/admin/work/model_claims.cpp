#include "server/admin/work/model_claims.h"

#include <utility>

#include "sconce/check.h"

namespace sconce::server {

ModelClaims::Claim::Claim(ModelClaims& claims, const ServedModel& model, std::string what,
                          std::chrono::milliseconds patience)
    : claims_(claims), model_(&model) {
  Shadow& shadow = model.shadow();  // a pipeline has none, and nothing that could be claimed
  enter(std::move(what), patience);
  shadow.weights_change();
}

void ModelClaims::Claim::enter(std::string what, std::chrono::milliseconds patience) {
  const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(claims_.mutex_);
  while (claims_.claims_.contains(model_) && std::chrono::steady_clock::now() < end)
    claims_.ended_.wait_until(claims_.mutex_, end);
  const auto [it, fresh] = claims_.claims_.emplace(model_, std::move(what));
  SCONCE_CHECK(fresh, kBusy, "the model is busy: ", it->second);
}

bool ModelClaims::claimed(const ServedModel& model) const {
  const MutexLock lock(mutex_);
  return claims_.contains(&model);
}

ModelClaims::Claim::~Claim() {
  model_->shadow().weights_settled();
  const MutexLock lock(claims_.mutex_);
  claims_.claims_.erase(model_);
  claims_.ended_.notify_all();
}

}  // namespace sconce::server
