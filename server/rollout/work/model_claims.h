// ModelClaims: which models have their weights or replicas changed, and by what. Thread-safe.
//
// Every change of a served model's sets happens under a claim. So a claim also tells those who judge the model's staged
// set that it may change, and afterwards to look at it again.
//
// The server's own work (a lease that has ended, a guard) is short, and no client knows of it. So a request waits for
// it, where it is refused at once because of another request.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "sconce/mutex.h"
#include "server/registry/served_model.h"

namespace sconce::server {

class ModelClaims {
 public:
  enum class By : int8_t { kRequest, kServer };

  // While an object of this class lives, nobody else can claim the model.
  class Claim {
   public:
    // what: the text for others' errors, "its replicas are being changed". kBusy with the text of the other claim, if
    // that is there for longer than `patience`. A request waits for the server's own claim up to kPatience.
    Claim(ModelClaims& claims, const ServedModel& model, std::string what, std::chrono::milliseconds patience = {},
          By by = By::kRequest);
    ~Claim();
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    void enter(std::string what, std::chrono::milliseconds patience, By by);

    ModelClaims& claims_;
    const ServedModel* const model_;
  };

  bool claimed(const ServedModel& model) const;

 private:
  static constexpr std::chrono::milliseconds kPatience{10'000};
  struct Claimed {
    std::string what;
    By by = By::kRequest;
  };

  mutable Mutex mutex_;
  ConditionVariable ended_;
  std::map<const ServedModel*, Claimed> claims_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
