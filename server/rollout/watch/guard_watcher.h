// GuardWatcher: checks guarded weights (server/rollout/work/guards.h). If they exceed a bound, it publishes the
// previous weights again, and tells the other servers of the push to do the same. With weights_store, guards continue
// after a restart.
#pragma once

#include <memory>
#include <string>

#include "sconce/mutex.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_alarm.h"
#include "server/weights/store/starting_weights.h"

namespace sconce::server::rollout {

class GuardWatcher final : public AdminAlarm {
 public:
  // The rollout outlives this object, and stops its admin_threads before.
  GuardWatcher(TimerQueue& clock, Rollout& rollout);
  ~GuardWatcher() override { stop(); }

  // Call this for a loaded model that no other thread can find yet. Continues the guard that the previous process
  // stored, or records that it was rolled back.
  void loaded(const std::shared_ptr<registry::ServedModel>& served, const weights::StartingWeights& start);
  // Call this at a normal shutdown. Stores the remaining time of the guards.
  void leave();

 private:
  void work() override;
  void look_at(const GuardRecord& record);
  void note(const GuardRecord& record, const registry::ServedModel& served);
  bool over(const GuardRecord& record, const registry::ServedModel& served);
  void roll_back(const GuardRecord& record, registry::ServedModel& served, const std::string& reason);
  void audit(const GuardRecord& record, const registry::ServedModel& served, const char* event, std::string reason);
  void tell_others(const GuardRecord& record) const;

  Rollout& rollout_;
  Mutex looking_;
};

}  // namespace sconce::server::rollout
