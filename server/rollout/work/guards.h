// Guards: the guards of newly published weights, and their results. server/rollout/watch/guard_watcher.h acts on them.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/served_model.h"
#include "server/telemetry/update_counters.h"
#include "server/weights/validation/guard_counts.h"

namespace sconce::server::rollout {

enum class GuardState : int8_t {
  kWatching,
  kPassed,      // the window has passed
  kRolledBack,  // by the guard
  kEnded,       // before the end of the window, other weights became active, or the model was removed
  kFailed,      // the weights had to be rolled back, and that failed
};
const char* guard_state_name(GuardState state) noexcept;  // "rolled_back"

struct GuardRecord {
  using Clock = std::chrono::steady_clock;
  std::weak_ptr<registry::ServedModel> served;
  std::string model;
  int64_t version = 0;
  uint64_t weight_version = 0;
  std::string push;  // id of the push that published the weights; empty: none
  weights::GuardBounds bounds;
  Clock::time_point end{};
  bool stored = false;                // continues after a restart (server/weights/store/weight_journal.h)
  bool loading = false;               // the model has not been found since the guard began
  std::chrono::microseconds noted{};  // remaining window, as last stored
  uint64_t failures_before = 0;       // of the model, when the guard began
  std::shared_ptr<weights::GuardCounts> counts;
  GuardState state = GuardState::kWatching;
  weights::GuardTotals totals;  // at the end
  std::string reason;           // reason of the end
};

class Guards {
 public:
  using Clock = GuardRecord::Clock;

  explicit Guards(telemetry::UpdateCounters& counters) : counters_(counters) {}

  // Called, with no lock held, when a guard begins.
  void on_begin(std::function<void()> hook);

  // The guarded weights, and whether the guard continues after a restart.
  struct Watch {
    uint64_t weight_version = 0;
    weights::GuardBounds bounds;
    std::chrono::microseconds left{};  // remaining window
    std::string push;
    bool stored = false;
    bool loading = false;  // no other thread can find the model yet
  };
  // Guards weights that were just published, or were guarded by the previous process. Ends the model's last guard.
  void begin(const std::shared_ptr<registry::ServedModel>& served, Watch watch);
  // Records a guard that had ended when the model was loaded: its weights were rolled back for that reason.
  void rolled_back(const std::shared_ptr<registry::ServedModel>& served, Watch watch, std::string reason);
  // The model is served.
  void found(const GuardRecord& record);
  // The remaining window was stored.
  void noted(const GuardRecord& record, std::chrono::microseconds left);
  // kBusy while the model's weights are guarded, because the previous set is still needed.
  void check_over(const registry::ServedModel& served) const;
  void end(const GuardRecord& record, GuardState state, std::string reason);
  // The model's last guard, with the current totals.
  std::optional<GuardRecord> find(const registry::ServedModel& served) const;
  std::vector<GuardRecord> watching() const;

 private:
  static weights::GuardTotals totals_of(const GuardRecord& record);
  // Returns the counts of the guard that it ends; null: none.
  std::shared_ptr<weights::GuardCounts> add(GuardRecord record);

  mutable Mutex mutex_;
  std::vector<GuardRecord> records_ SCONCE_GUARDED_BY(mutex_);  // one per model
  std::function<void()> hook_;
  telemetry::UpdateCounters& counters_;
};

}  // namespace sconce::server::rollout
