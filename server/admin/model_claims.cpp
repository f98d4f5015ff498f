#include "server/admin/model_claims.h"

#include <utility>

#include "sconce/check.h"

namespace sconce::server {

ModelClaims::Claim::Claim(ModelClaims& claims, const ServedModel& model, std::string what)
    : claims_(claims), model_(&model) {
  const MutexLock lock(claims_.mutex_);
  const auto [it, fresh] = claims_.claims_.emplace(model_, std::move(what));
  SCONCE_CHECK(fresh, kBusy, "the model is busy: ", it->second);
}

ModelClaims::Claim::~Claim() {
  const MutexLock lock(claims_.mutex_);
  claims_.claims_.erase(model_);
}

}  // namespace sconce::server
