#include "server/rollout/trainer_update.h"

#include "sconce/check.h"
#include "server/registry/model_weights.h"
#include "server/rollout/golden_api.h"
#include "server/rollout/publication.h"
#include "server/rollout/rollout.h"
#include "server/rollout/served_weights.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {

TrainerUpdate::TrainerUpdate(Rollout& rollout, std::shared_ptr<registry::ServedModel> served, UpdateOptions options)
    : rollout_(rollout), served_(std::move(served)) {
  SCONCE_CHECK(!rollout_.draining, kUnavailable, "the server is shutting down");
  claim_.emplace(rollout_.claims, *served_, "a trainer's update of its weights is in progress");
  rollout_.guards.check_over(*served_);
  options.gradual = true;
  options.progress = [this](int replica, bool ready) { operation_->advance(replica, ready); };
  Model& model = served_->model();
  const std::string label = options.label;
  update_ = model.begin_update(std::move(options));
  operation_ =
      rollout_.operations.open(served_->interface().name, served_->interface().version, label, model.replicas());
  operation_->enter(Operation::Phase::kReceiving);
}

TrainerUpdate::~TrainerUpdate() {
  if (update_) succeeds([this] { give_up("it was not finished"); });
}

// Calls `work`. Any exception ends the update and is passed on.
template <class Work>
void TrainerUpdate::guarded(const Work& work) {
  SCONCE_CHECK(update_, kFailedPrecondition, "the update is over");
  const std::exception_ptr problem = exception_of([&] {
    check();
    work();
  });
  if (!problem) return;
  fail(describe_failure(problem));
  std::rethrow_exception(problem);
}

void TrainerUpdate::fail(Failure failure) {
  update_.reset();
  claim_.reset();
  operation_->end(std::move(failure));
  rollout_.operations.count(*operation_);
  log_warn("model {} version {} keeps its weights: {}", operation_->model, operation_->version,
           printable(operation_->view().error));
  succeeds([this] {
    AuditEntry entry = audit_of("refused", *served_);
    entry.label = operation_->label;
    entry.reason = operation_->view().error;
    rollout_.audit.add(entry);
  });
}

void TrainerUpdate::give_up(const std::string& reason) {
  if (update_) fail({http_status(ErrorCode::kCancelled), ErrorCode::kCancelled, reason});
}

void TrainerUpdate::check() const {
  operation_->check_cancelled();
  check_served(rollout_, *served_);
}

void TrainerUpdate::add(std::span<const NamedTensor> tensors, std::chrono::steady_clock::duration opening) {
  guarded([&] {
    uint64_t bytes = 0;
    for (const NamedTensor& tensor : tensors) bytes += tensor.tensor.bytes();
    operation_->expect_bytes(operation_->view().bytes + bytes);
    const auto begin = std::chrono::steady_clock::now();
    stage_tensors(*update_, tensors, entries_);
    operation_->add_shared(opening, std::chrono::steady_clock::now() - begin);
    entries_ += tensors.size();
    operation_->add_bytes(bytes);
  });
}

void TrainerUpdate::add(WeightFile& file, const std::string& name) {
  guarded([&] {
    SCONCE_CHECK(entries_ == 0, kInternal, "files are the whole of an update");
    FileOptions options;
    operation_->follow(options);
    stage_file(*update_, file, name, options);
    entries_ = file.entries().size();
  });
}

uint64_t TrainerUpdate::publish(std::string label) {
  uint64_t weight_version = 0;
  guarded([&] {
    operation_->enter(Operation::Phase::kFolding);
    if (!label.empty()) update_->set_label(label);
    update_->finish();
    StagedSet staged(served_->model());
    check();
    // An update without tensors changes only the label, so there is nothing to judge.
    if (entries_ > 0 && served_->weights().golden()) {
      operation_->enter(Operation::Phase::kJudging);
      const std::optional<weights::GoldenVerdict> verdict = judge_staged(*served_, [this] { check(); });
      operation_->tell_golden(dump(weights::verdict_json(*verdict)));
      require_good(rollout_, *served_, verdict, GoldenRule::kRequire);
    }
    succeeds([this] { rollout_.audit.add(audit_of("staged", rollout_, *served_, WeightState::kStaged)); });
    operation_->enter(Operation::Phase::kCommitting);
    weight_version = publish_staged(rollout_, *served_, {"a trainer", std::to_string(operation_->id)}).weight_version;
    staged.keep();
  });
  update_.reset();
  claim_.reset();
  operation_->end(Operation::Outcome::kActive, weight_version);
  rollout_.operations.count(*operation_);
  log_info("model {} version {} has new weights from a trainer: weight version {}, label '{}'", operation_->model,
           operation_->version, weight_version, excerpt(label));
  return weight_version;
}

}  // namespace sconce::server::rollout
