// PushReconciler: reconciles pushes whose lease has expired. It drops the staged set, or, if another server may have
// committed, asks the other servers of the push and follows them.
#pragma once

#include "server/rollout/push/push_ledger.h"
#include "server/rollout/rollout.h"
#include "server/rollout/work/admin_alarm.h"

namespace sconce::server::rollout {

// The conclusion of a server in doubt from the others' answers.
struct PushFinding {
  enum class Verdict : int8_t { kWait, kCommit, kAbort } verdict = Verdict::kWait;
  std::string why;
};

// Another server's answer about a push. If it answered without a state, it does not know the push.
struct PushAnswer {
  bool answered = false;
  std::optional<PushState> state;  // nullopt: unknown to that server
};

// answers: in the order of the members; this server's own is empty. The rule of docs/pushes.md: if one server has
// committed, all commit; if the first server has ended the push, all end it; if the first server no longer knows the
// push, it is ended once all others have answered that they have not committed it. Pure function.
PushFinding judge_push(const std::vector<PushAnswer>& answers, size_t self);

class PushReconciler final : public AdminAlarm {
 public:
  PushReconciler(TimerQueue& clock, Rollout& rollout);
  ~PushReconciler() override { stop(); }

 private:
  void work() override;
  void reconcile(const PushRecord& record);
  PushFinding ask_members(const PushRecord& record) const;
  void decide(const PushRecord& record, const PushPlace& place, registry::ServedModel& served);

  Rollout& rollout_;
};

}  // namespace sconce::server::rollout
