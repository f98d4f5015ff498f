// GuardKeeper: looks after weights that are watched (server/admin/work/guards.h). If they pass a bound, publishes the
// previous ones again, and has the other servers of their push do the same.
#pragma once

#include <atomic>
#include <string>

#include "server/admin/service.h"
#include "server/base/alarm_clock.h"

namespace sconce::server {

class GuardKeeper final : public AlarmClock::Alarm {
 public:
  // The service outlives it; its admin_threads are stopped before.
  GuardKeeper(AlarmClock& clock, Service& service);
  ~GuardKeeper() override { stop(); }

 private:
  void ring() noexcept override;
  void look();
  void look_at(const GuardRecord& record);
  void roll_back(const GuardRecord& record, ServedModel& served, const std::string& reason);
  void audit(const GuardRecord& record, const char* event, std::string reason);
  void tell_others(const GuardRecord& record) const;

  Service& service_;
  std::atomic<bool> looking_{false};
};

}  // namespace sconce::server
