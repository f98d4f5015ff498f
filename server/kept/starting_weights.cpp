#include "server/kept/starting_weights.h"

#include <algorithm>
#include <memory>

#include "sconce/check.h"
#include "sconce/error_context.h"
#include "sconce/excerpt.h"
#include "sconce/weight_sources.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/kept/peer_weights.h"
#include "server/kept/set_fit.h"

namespace sconce::server {
namespace {

std::string named(const KeptSet& set) {
  return "generation " + std::to_string(set.generation) +
         (set.label.empty() ? std::string() : " ('" + excerpt(set.label) + "')");
}

// Publishes the staged set, under this generation unless the model's own is higher. Releases the previous set: these
// are the package's own weights, which a rollback must not bring back.
void publish(Model& model, uint64_t generation) {
  model.commit_weights(generation > model.generation() ? generation : 0);
  model.release_previous();
}

void publish_own(Model& model, uint64_t generation) {
  if (generation <= model.generation()) return;
  const auto update = model.begin_update({.full = false});
  update->declare({});
  update->finish();
  publish(model, generation);
}

enum class Outcome : int8_t { kTaken, kDamaged, kUnfit };

// problem: why it is not taken.
Outcome take_kept(const StartingModel& start, const KeptSet& set, uint64_t generation, std::string& problem) {
  const std::filesystem::path path = start.kept->path(set);
  const FileOptions options{.format = WeightFormat::kSafetensors, .cancel = &start.ending};
  std::string unfit;
  problem = problem_of([&] {
    unfit = misfit(WeightFile::open(path, options)->entries(), start.model.constants());
    if (!unfit.empty()) return;
    const auto update = start.model.begin_update({.full = false, .label = set.label});
    stage_file(*update, path, options);
    update->finish();
    const std::string digest = start.model.weights_digest(WeightState::kStaged);
    if (digest == set.digest) return;
    start.model.abort_weights();
    SCONCE_FAIL(kCorruptPackage, "its values have the digest ", digest, ", they had ", set.digest, ": ", path.string());
  });
  if (!unfit.empty()) {
    problem = std::move(unfit);
    return Outcome::kUnfit;
  }
  if (!problem.empty()) return Outcome::kDamaged;
  publish(start.model, generation);
  return Outcome::kTaken;
}

// Whether a kept set serves. last: see KeptWeights::Found.
bool take_any_kept(const StartingModel& start, const KeptWeights::Found& found, StartingWeights& result) {
  std::string trouble = found.problem;
  if (!trouble.empty()) {
    log_error("model {} version {}: {}", start.name, start.version, printable(trouble));
    start.kept->count_failure();
  }
  for (const KeptSet& set : found.sets) {
    // If a later set is damaged, this one gets a new generation, as after a rollback.
    const uint64_t generation = trouble.empty() ? set.generation : found.last + 1;
    std::string problem;
    switch (take_kept(start, set, generation, problem)) {
      case Outcome::kTaken:
        log_info("model {} version {} serves the kept weights of {}{}", start.name, start.version, named(set),
                 trouble.empty() ? "" : ", as generation " + std::to_string(generation));
        result.kept.generation = set.generation;
        if (!trouble.empty()) result.kept.problem = trouble + "; " + named(set) + " stands in";
        return true;
      case Outcome::kUnfit: {
        std::string said = "the kept weights of " + named(set) + " do not fit the package: " + problem;
        log_error("model {} version {}: {}", start.name, start.version, printable(said));
        start.kept->count_failure();
        result.kept.problem = said;
        if (start.config.weights_mismatch == WeightsMismatch::kRefuse) result.refused = std::move(said);
        return false;
      }
      case Outcome::kDamaged:
        SCONCE_CHECK(!start.ending, kUnavailable, "the server is ending");
        start.kept->damaged(set);
        start.kept->count_failure();
        problem = "the kept weights of " + named(set) + " cannot be used: " + problem;
        log_error("model {} version {}: {}", start.name, start.version, printable(problem));
        trouble = trouble.empty() ? std::move(problem) : trouble + "; " + problem;
    }
  }
  result.kept.problem = std::move(trouble);
  return false;
}

}  // namespace

StartingWeights start_weights(const StartingModel& start) {
  StartingWeights result;
  const KeptWeights::Found found = start.kept ? start.kept->find() : KeptWeights::Found();
  result.revision = found.revision;
  const uint64_t kept = found.sets.empty() ? 0 : found.sets.front().generation;
  if (!start.config.weights_from.empty()) {
    const std::optional<std::string> peer = take_peer_weights(start, std::max(kept, start.model.generation()));
    if (peer) {
      if (!start.kept) return result;
      const MutexLock turn(start.kept->turn());
      const std::string problem =
          start.kept->keep(start.model.open_weights(WeightState::kActive), {*peer, "weights_from"});
      if (!problem.empty())
        log_error("model {} version {}: weights are not kept: {}", start.name, start.version, printable(problem));
      result.revision = start.kept->revision();
      result.kept = start.kept->status();
      return result;
    }
  }
  if (take_any_kept(start, found, result)) return result;
  const uint64_t next = found.last == 0 ? 0 : found.last + 1;
  if (!result.refused.empty() || start.config.weights.empty()) {
    publish_own(start.model, next);
    return result;
  }
  const ErrorContext context(start.config.weights);
  const auto update = start.model.begin_update(
      {.full = true, .ignore = start.config.weights_ignore, .label = start.config.weights_label});
  stage_file(*update, start.config.weights, {.constants = start.model.constants(), .cancel = &start.ending});
  update->finish();
  publish(start.model, next);
  log_info("model {} version {} serves the weights of {}", start.name, start.version, start.config.weights);
  return result;
}

}  // namespace sconce::server
