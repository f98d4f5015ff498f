// ModelClaims: the models whose weights or replicas are being changed, and the reason. Thread-safe.
//
// Every change of a served model's sets happens under a claim. The claim therefore also notifies the validators of the
// model's staged set before and after the change.
//
// The server's own changes (an expired lease, a guard) are short and invisible to clients. A request therefore waits
// for them, while it is refused at once if another request has the claim.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "sconce/mutex.h"
#include "server/registry/served_model.h"

namespace sconce::server::rollout {

class ModelClaims {
 public:
  enum class By : int8_t { kRequest, kServer };

  // While an object of this class lives, no other thread can claim the model.
  class Claim {
   public:
    // what: the text for errors of others, "its replicas are being changed". kBusy with the text of the other claim, if
    // that lasts longer than `patience`. A request waits for the server's own claim for up to kPatience.
    Claim(ModelClaims& claims, const registry::ServedModel& model, std::string what,
          std::chrono::milliseconds patience = {}, By by = By::kRequest);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    void enter(std::string what, std::chrono::milliseconds patience, By by);

    ModelClaims& claims_;
    const registry::ServedModel* const model_;
  };

  bool claimed(const registry::ServedModel& model) const;

 private:
  static constexpr std::chrono::milliseconds kPatience{10'000};
  struct Claimed {
    std::string what;
    By by = By::kRequest;
  };

  mutable Mutex mutex_;
  ConditionVariable ended_;
  std::map<const registry::ServedModel*, Claimed> claims_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::rollout
