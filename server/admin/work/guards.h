// Guards: the watches over newly published weights, and how each of them ended. server/admin/judging/guard_keeper.h
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
#include "server/judging/guard_counts.h"
#include "server/models/served_model.h"
#include "server/observe/update_counters.h"

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
  uint64_t failures_before = 0;  // of the model, when the watch began
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

  // Watches weights that were published just now. Ends the model's last watch.
  void begin(const std::shared_ptr<ServedModel>& served, uint64_t generation, const GuardBounds& bounds,
             std::string push);
  // kBusy while the model's weights are watched: the previous set must stay.
  void check_over(const ServedModel& served) const;
  void end(const GuardRecord& record, GuardState state, std::string reason);
  // The last watch over the model's weights, with the present totals.
  std::optional<GuardRecord> find(const ServedModel& served) const;
  std::vector<GuardRecord> watching() const;

 private:
  static GuardTotals totals_of(const GuardRecord& record);

  mutable Mutex mutex_;
  std::vector<GuardRecord> records_ SCONCE_GUARDED_BY(mutex_);  // one for each model
  std::function<void()> hook_;
  UpdateCounters& counters_;
};

}  // namespace sconce::server
