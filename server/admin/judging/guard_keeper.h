// GuardKeeper: looks after weights that are watched (server/admin/work/guards.h). If they pass a bound, publishes the
// previous ones again, and has the other servers of their push do the same.
#pragma once

#include <string>

#include "sconce/mutex.h"
#include "server/admin/service.h"
#include "server/admin/work/admin_alarm.h"

namespace sconce::server {

class GuardKeeper final : public AdminAlarm {
 public:
  // The service outlives it; its admin_threads are stopped before.
  GuardKeeper(AlarmClock& clock, Service& service);
  ~GuardKeeper() override { stop(); }

 private:
  void work() override;
  void look_at(const GuardRecord& record);
  void roll_back(const GuardRecord& record, ServedModel& served, const std::string& reason);
  void audit(const GuardRecord& record, const ServedModel& served, const char* event, std::string reason);
  void tell_others(const GuardRecord& record) const;

  Service& service_;
  Mutex looking_;
};

}  // namespace sconce::server
