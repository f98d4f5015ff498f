#include "server/registry/trial/load_trial.h"

#include <string_view>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/registry/trial/trial_plan.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/support/failure.h"

namespace sconce::server::registry {
namespace {

// Whether a check of rows follows while the model is served, as far as that is known without its outputs.
bool rows_follow(const PackageEntry& package, const ModelConfig& config) {
  const scheduling::ModelSignature interface(package.name, package.file.version, package.package->model(package.model));
  return config.batching == Batching::kAuto &&
         (!interface.outputs_described() || scheduling::rows_to_try(interface, config) > 1);
}

std::string joined(const std::vector<std::string_view>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ").append(parts[i]);
  return text;
}

}  // namespace

LoadTrial::LoadTrial(TrialSlots& slots, std::filesystem::path program, const PackageEntry& package,
                     const ModelConfig& config)
    : package_(package),
      slots_(slots),
      settings_(trial_settings(program, config)),
      request_(program.empty() ? std::nullopt : trial_before(package, config)),
      rows_follow_(request_ && rows_follow(package, config)) {}

void LoadTrial::begin(bool gives_way) {
  if (!request_ || slot_) return;
  SCONCE_CHECK(slots_.take(), kUnavailable, "the server is ending");
  start(gives_way, nullptr);
}

bool LoadTrial::begin_at_once(bool gives_way, std::unique_ptr<TrialProcess>& waiting) {
  if (!request_ || slot_ || !slots_.take_at_once()) return false;
  start(gives_way, std::exchange(waiting, nullptr));
  return true;
}

void LoadTrial::start(bool gives_way, std::unique_ptr<TrialProcess> waiting) {
  slot_.emplace(slots_);
  problem_ = problem_of([&] {
    TrialSettings settings = settings_;
    settings.gives_way = gives_way;
    if (!waiting) waiting = std::make_unique<TrialProcess>(settings.program);
    child_ = std::move(waiting);
    child_->give(settings, *package_.package, to_text(*request_));
  });
  if (!problem_.empty()) child_.reset();
}

void LoadTrial::finish() {
  if (!child_) return slot_.reset();
  const TrialEnd end = child_->wait(slots_.descriptor());
  slot_.reset();
  SCONCE_CHECK(!end.stopped, kUnavailable, "the server is ending");
  problem_ = read_trial_end(end, report_);
}

void LoadTrial::warm_up(Model& model) {
  if (!request_ || !request_->warm_up) return;
  const std::optional<WarmUp>& tried = report_.warm_up;
  if (tried && tried->problem.empty())
    cold_ = model.warm_up(tried->inputs).problem;
  else
    cold_ = tried ? tried->problem : std::string();
}

void LoadTrial::take(scheduling::ModelSignature& interface) const {
  if (report_.outputs) interface.observe_outputs(*report_.outputs);
}

std::string LoadTrial::not_learned() const {
  if (!request_) return {};
  std::vector<std::string_view> without;
  const bool slow = package_.package->model(package_.model).weights_bytes >= kSlowWeights;
  if (request_->warm_up && slow && (!report_.warm_up || !cold_.empty())) without.emplace_back("a warm-up run");
  if (request_->outputs && !report_.outputs) without.emplace_back("the shapes of its outputs");
  if (rows_follow_ && !ended_well()) without.emplace_back("a trial of shared runs");
  if (without.empty()) return {};
  std::string why = !problem_.empty()                  ? "its trial in a child process " + problem_
                    : !cold_.empty()                   ? cold_
                    : !report_.outputs_problem.empty() ? "it does not run on zeros: " + report_.outputs_problem
                                                       : "its trial in a child process does not report it";
  return "it is served without " + joined(without) + ": " + why;
}

}  // namespace sconce::server::registry
