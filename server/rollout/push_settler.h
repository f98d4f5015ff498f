// PushSettler: looks after pushes whose lease has expired. It drops what they staged, or, if another server may have
// committed, asks the other servers of the push and does as they did.
#pragma once

#include "server/rollout/push/push_ledger.h"
#include "server/rollout/service.h"
#include "server/rollout/work/admin_alarm.h"

namespace sconce::server {

// What a server in doubt learns from the others.
struct PushFinding {
  enum class Verdict : int8_t { kWait, kCommit, kAbort } verdict = Verdict::kWait;
  std::string why;
};

// What another server of the push says of it. unknown: it answered, and does not know the push.
struct PushAnswer {
  bool answered = false;
  std::optional<PushState> state;  // nullopt: unknown there
};

// answers: in the order of the members, with this server's own left empty. The rule of docs/weights.md: what one server
// has committed, all commit; what the first server has ended, all end; if the first does not know the push any more, it
// is ended once all others have said that they have not committed it. Pure function.
PushFinding judge_push(const std::vector<PushAnswer>& answers, size_t self);

class PushSettler final : public AdminAlarm {
 public:
  PushSettler(TimerQueue& clock, Service& service);
  ~PushSettler() override { stop(); }

 private:
  void work() override;
  void settle(const PushRecord& record);
  PushFinding ask_members(const PushRecord& record) const;
  void decide(const PushRecord& record, const PushPlace& place, ServedModel& served);

  Service& service_;
};

}  // namespace sconce::server
