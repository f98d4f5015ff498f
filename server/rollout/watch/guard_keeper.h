// GuardKeeper: looks after weights that are watched (server/rollout/work/guards.h). If they pass a bound, publishes the
// previous ones again, and has the other servers of their push do the same. With weights_keep, a restart goes on with a
// watch.
#pragma once

#include <memory>
#include <string>

#include "sconce/mutex.h"
#include "server/rollout/service.h"
#include "server/rollout/work/admin_alarm.h"
#include "server/weights/store/starting_weights.h"

namespace sconce::server {

class GuardKeeper final : public AdminAlarm {
 public:
  // The service outlives it; its admin_threads are stopped before.
  GuardKeeper(TimerQueue& clock, Service& service);
  ~GuardKeeper() override { stop(); }

  // A model was loaded, and nobody can find it yet: goes on with the watch that a process before this one kept, or says
  // that it was rolled back.
  void loaded(const std::shared_ptr<ServedModel>& served, const StartingWeights& start);
  // The process ends in order: what is left of the watches is kept.
  void leave();

 private:
  void work() override;
  void look_at(const GuardRecord& record);
  void note(const GuardRecord& record, const ServedModel& served);
  bool over(const GuardRecord& record, const ServedModel& served);
  void roll_back(const GuardRecord& record, ServedModel& served, const std::string& reason);
  void audit(const GuardRecord& record, const ServedModel& served, const char* event, std::string reason);
  void tell_others(const GuardRecord& record) const;

  Service& service_;
  Mutex looking_;
};

}  // namespace sconce::server
