// Guards: the watches over newly published weights, and how each of them ended. server/rollout/watch/guard_keeper.h
// acts on them. Thread-safe.
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

namespace sconce::server {

enum class GuardState : int8_t {
  kWatching,
  kPassed,      // the window is over
  kRolledBack,  // by the guard
  kEnded,       // other weights became active, or the model went, before the window was over
  kFailed,      // they should have been rolled back and could not
};
const char* guard_state_name(GuardState state) noexcept;  // "rolled_back"

struct GuardRecord {
  using Clock = std::chrono::steady_clock;
  std::weak_ptr<ServedModel> served;
  std::string model;
  int64_t version = 0;
  uint64_t generation = 0;
  std::string push;  // the id of the push that published them; empty: none did
  GuardBounds bounds;
  Clock::time_point end{};
  bool kept = false;                  // a restart goes on with it (server/weights/store/weight_journal.h)
  bool loading = false;               // the model was not yet found since the watch began
  std::chrono::microseconds noted{};  // what was left of the window when that was last kept
  uint64_t failures_before = 0;       // of the model, when the watch began
  std::shared_ptr<GuardCounts> counts;
  GuardState state = GuardState::kWatching;
  GuardTotals totals;  // when it ended
  std::string reason;  // why it ended so
};

class Guards {
 public:
  using Clock = GuardRecord::Clock;

  explicit Guards(UpdateCounters& counters) : counters_(counters) {}

  // Called, with no lock held, when a watch begins.
  void on_begin(std::function<void()> hook);

  // What is watched, and whether a restart goes on with it.
  struct Watch {
    uint64_t generation = 0;
    GuardBounds bounds;
    std::chrono::microseconds left{};  // of the window
    std::string push;
    bool kept = false;
    bool loading = false;  // nobody can find the model yet
  };
  // Watches weights that were published just now, or by a process before this one. Ends the model's last watch.
  void begin(const std::shared_ptr<ServedModel>& served, Watch watch);
  // A watch that had ended when the model was loaded: its weights were rolled back for that reason.
  void rolled_back(const std::shared_ptr<ServedModel>& served, Watch watch, std::string reason);
  // The model is served.
  void found(const GuardRecord& record);
  // So much of the window was kept as left.
  void noted(const GuardRecord& record, std::chrono::microseconds left);
  // kBusy while the model's weights are watched: the previous set must stay.
  void check_over(const ServedModel& served) const;
  void end(const GuardRecord& record, GuardState state, std::string reason);
  // The last watch over the model's weights, with the present totals.
  std::optional<GuardRecord> find(const ServedModel& served) const;
  std::vector<GuardRecord> watching() const;

 private:
  static GuardTotals totals_of(const GuardRecord& record);
  // Returns the counts of the watch that it ends; null: there was none.
  std::shared_ptr<GuardCounts> add(GuardRecord record);

  mutable Mutex mutex_;
  std::vector<GuardRecord> records_ SCONCE_GUARDED_BY(mutex_);  // one for each model
  std::function<void()> hook_;
  UpdateCounters& counters_;
};

}  // namespace sconce::server
