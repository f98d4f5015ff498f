#include "server/weights/store/starting_weights.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "server/weights/store/peer_weights.h"
#include "server/weights/store/set_fit.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

std::string named(const StoredSet& set) {
  return "weight version " + std::to_string(set.weight_version) +
         (set.label.empty() ? std::string() : " ('" + excerpt(set.label) + "')");
}

// Maximum number of processes that may crash while a set is guarded.
constexpr uint64_t kMaxEndings = 1;

// Publishes the staged set, with this weight version unless the model's own is higher.
void publish(Model& model, uint64_t weight_version) {
  model.commit_weights(weight_version > model.weight_version() ? weight_version : 0);
}

void publish_own(Model& model, uint64_t weight_version) {
  if (weight_version <= model.weight_version()) return;
  const auto update = model.begin_update({.full = false});
  update->declare({});
  update->finish();
  publish(model, weight_version);
}

enum class Outcome : int8_t { kTaken, kDamaged, kUnfit };

// Publishes the set. before: called first, if the set fits. problem: set to the reason of a refusal.
Outcome take_stored(const StartingModel& start, const StoredSet& set, uint64_t weight_version, std::string& problem,
                    const std::function<void()>& before = {}) {
  const FileOptions options{.format = WeightFormat::kSafetensors, .cancel = &start.ending};
  std::string unfit;
  problem = problem_of([&] {
    const std::shared_ptr<const PrivateCopy> copy = start.stored->unsealed(set);
    const std::filesystem::path path = copy ? copy->path() : start.stored->path(set);
    unfit = misfit(WeightFile::open(path, options)->entries(), start.model.constants());
    if (!unfit.empty()) return;
    if (before) before();
    const auto update = start.model.begin_update({.full = false, .label = set.label});
    stage_file(*update, path, options);
    update->finish();
    const std::string digest = start.model.weights_digest(WeightState::kStaged);
    if (digest == set.digest) return;
    start.model.abort_weights();
    SCONCE_FAIL(kCorruptPackage, "its values have the digest ", digest, ", they had ", set.digest, ": ",
                start.stored->path(set).string());
  });
  if (!unfit.empty()) {
    problem = std::move(unfit);
    return Outcome::kUnfit;
  }
  if (!problem.empty()) return Outcome::kDamaged;
  publish(start.model, weight_version);
  return Outcome::kTaken;
}

void take_file(const StartingModel& start, uint64_t weight_version) {
  const ErrorContext context(start.config.weights);
  const auto update = start.model.begin_update(
      {.full = true, .ignore = start.config.weights_ignore, .label = start.config.weights_label});
  std::shared_ptr<const PrivateCopy> copy;
  if (start.signatures.on()) copy = start.signatures.read(start.config.weights).copy;
  stage_file(*update, copy ? copy->path() : std::filesystem::path(start.config.weights),
             {.constants = start.model.constants(), .cancel = &start.ending});
  update->finish();
  publish(start.model, weight_version);
}

// This process continues the guard of an earlier process. Ends the guard and drops the set if too many processes have
// crashed.
void take_over_watch(const StartingModel& start, StoredWeights::Found& found, StartingWeights& result) {
  StoredGuard& guard = *found.journal.guard;
  if (guard.instance == instance_name()) return;
  const StoredSet watched = found.journal.sets.front();
  if (!guard.instance.empty()) ++guard.ended;
  if (guard.ended > kMaxEndings) {
    result.gone_back = {
        guard, watched.weight_version, 0,
        "the server ended " + std::to_string(guard.ended) + " times while " + named(watched) + " was watched"};
    found.journal.sets.erase(found.journal.sets.begin());
    found.journal.guard.reset();
    return;
  }
  guard.instance = instance_name();
  // Before any of its values is used, because they may cause the crash.
  const MutexLock lock(start.stored->write_mutex());
  const std::string problem = start.stored->change_guard(
      watched.weight_version, [&](std::optional<StoredGuard>& stored) { stored = found.journal.guard; });
  if (!problem.empty())
    log_error("model {} version {}: that this process watches {} is not stored: {}", start.name, start.version,
              named(watched), printable(problem));
}

// Publishes the set to which the guarded set may be rolled back, before the guarded set. The package's own weights are
// already there.
void take_one_before(const StartingModel& start, const std::vector<StoredSet>& sets) {
  if (sets.size() > 1) {
    std::string problem;
    if (take_stored(start, sets[1], sets[1].weight_version, problem) == Outcome::kTaken) return;
    SCONCE_CHECK(!start.ending, kUnavailable, "the server is ending");
    log_error("model {} version {}: the stored weights of {}, to which a guard might go back, cannot be used: {}",
              start.name, start.version, named(sets[1]), printable(problem));
  }
  if (start.config.weights.empty() || start.model.weight_version() + 1 >= sets.front().weight_version) return;
  const std::string problem = problem_of([&] { take_file(start, 0); });
  if (!problem.empty())
    log_error("model {} version {}: a guard cannot roll back to the file of weights: {}", start.name, start.version,
              printable(problem));
}

// Without a complete set to roll back to, the guard ends.
void check_way_back(const StartingModel& start, StartingWeights& result) {
  const std::vector<WeightSetInfo> sets = start.model.weight_sets();
  if (sets.size() > 1 && sets[1].missing.empty()) return;
  log_error("model {} version {}: weight version {} is no longer guarded: there is no complete set to roll back to",
            start.name, start.version, result.weight_version);
  const MutexLock lock(start.stored->write_mutex());
  (void)start.stored->change_guard(result.weight_version, [](std::optional<StoredGuard>& guard) { guard.reset(); });
  result.guard.reset();
}

// The push of the rolled-back set is undone.
std::optional<StoredPush> undo_push(StartingWeights& result) {
  for (StoredPush& push : result.pushes) {
    if (push.id != result.gone_back->guard.push) continue;
    push.state = "undone";
    push.weight_version = result.gone_back->to;
    push.stored = true;
    return push;
  }
  return std::nullopt;
}

// Stores the published set; after a rollback, in place of the guarded one.
void store_active(const StartingModel& start, PublishedBy by, StartingWeights& result) {
  StoredWeights::Notes notes{std::move(by)};
  const uint64_t weight_version = start.model.weight_version();
  if (result.gone_back) {
    result.gone_back->to = weight_version;
    log_error("model {} version {}: weight version {} is rolled back, {} is active: {}", start.name, start.version,
              result.gone_back->from, weight_version, printable(result.gone_back->reason));
    notes.push = undo_push(result);
  }
  const MutexLock lock(start.stored->write_mutex());
  const std::string problem = start.stored->store(start.model.open_weights(WeightState::kActive), std::move(notes));
  if (problem.empty())
    result.weight_version = weight_version;
  else
    log_error("model {} version {}: weights are not stored: {}", start.name, start.version, printable(problem));
  result.revision = start.stored->revision();
  result.stored = start.stored->status();
}

// Returns whether a stored set serves.
bool take_any_stored(const StartingModel& start, const StoredWeights::Found& found, StartingWeights& result) {
  std::string trouble = found.problem;
  if (!trouble.empty()) {
    log_error("model {} version {}: {}", start.name, start.version, printable(trouble));
    start.stored->count_failure();
  }
  if (result.gone_back) trouble = result.gone_back->reason;
  std::function<void()> before;
  if (found.journal.guard) before = [&] { take_one_before(start, found.journal.sets); };
  for (const StoredSet& set : found.journal.sets) {
    // If a later set is damaged, this one gets a new weight version, as after a rollback.
    const uint64_t weight_version = trouble.empty() ? set.weight_version : found.last + 1;
    std::string problem;
    switch (take_stored(start, set, weight_version, problem, std::exchange(before, nullptr))) {
      case Outcome::kTaken:
        log_info("model {} version {} serves the stored weights of {}{}", start.name, start.version, named(set),
                 trouble.empty() ? "" : ", as weight version " + std::to_string(weight_version));
        result.stored.weight_version = set.weight_version;
        if (!trouble.empty()) {
          result.stored.problem = trouble + "; " + named(set) + " stands in";
        } else if (start.model.weight_version() == set.weight_version) {
          result.weight_version = set.weight_version;
          result.guard = found.journal.guard;
        }
        return true;
      case Outcome::kUnfit: {
        std::string said = "the stored weights of " + named(set) + " do not fit the package: " + problem;
        log_error("model {} version {}: {}", start.name, start.version, printable(said));
        start.stored->count_failure();
        result.stored.problem = said;
        if (start.config.weights_mismatch == WeightsMismatch::kRefuse) result.refused = std::move(said);
        return false;
      }
      case Outcome::kDamaged:
        SCONCE_CHECK(!start.ending, kUnavailable, "the server is ending");
        start.stored->damaged(set);
        start.stored->count_failure();
        problem = "the stored weights of " + named(set) + " cannot be used: " + problem;
        log_error("model {} version {}: {}", start.name, start.version, printable(problem));
        trouble = trouble.empty() ? std::move(problem) : trouble + "; " + problem;
    }
  }
  result.stored.problem = std::move(trouble);
  return false;
}

}  // namespace

void leave_watch(StoredWeights& stored) {
  const MutexLock lock(stored.write_mutex());
  const StoredWeights::Found found = stored.find();
  if (!found.journal.guard || found.journal.guard->instance != instance_name()) return;
  (void)stored.change_guard(found.journal.sets.front().weight_version,
                            [](std::optional<StoredGuard>& guard) { guard->instance.clear(); });
}

StartingWeights start_weights(const StartingModel& start) {
  StartingWeights result;
  StoredWeights::Found found = start.stored ? start.stored->find() : StoredWeights::Found();
  result.revision = found.revision;
  result.pushes = found.journal.pushes;
  const uint64_t stored = found.journal.sets.empty() ? 0 : found.journal.sets.front().weight_version;
  if (found.journal.guard) take_over_watch(start, found, result);
  if (!start.config.weights_from.empty()) {
    std::optional<std::string> peer = take_peer_weights(start, std::max(stored, start.model.weight_version()));
    if (peer) {
      if (start.stored) store_active(start, {std::move(*peer), "weights_from"}, result);
      return result;
    }
  }
  const bool taken = take_any_stored(start, found, result);
  const uint64_t next = found.last == 0 ? 0 : found.last + 1;
  if (!taken && (!result.refused.empty() || start.config.weights.empty())) {
    publish_own(start.model, next);
  } else if (!taken) {
    take_file(start, next);
    log_info("model {} version {} serves the weights of {}", start.name, start.version, start.config.weights);
  }
  if (result.guard) check_way_back(start, result);
  // A rollback request never means the sets that were published during this start, unless the guard needs one.
  if (!result.guard) start.model.release_previous();
  if (result.gone_back && result.refused.empty()) store_active(start, {"guard", result.gone_back->reason}, result);
  return result;
}

}  // namespace sconce::server::weights
