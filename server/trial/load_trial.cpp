#include "server/trial/load_trial.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/base/failure.h"
#include "server/base/log.h"
#include "server/batching/batch_policy.h"
#include "server/signature/output_probe.h"

namespace sconce::server {
namespace {

// Bytes of constants from which on packing them takes a request longer than moments.
constexpr uint64_t kSlowWeights = uint64_t{1} << 20;

TrialSettings settings_of(const std::filesystem::path& program, const ModelConfig& config) {
  return {.program = program,
          .time = config.trial_timeout,
          .memory = static_cast<uint64_t>(std::max<int64_t>(config.trial_memory, 0))};
}

std::string joined(const std::vector<std::string_view>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ").append(parts[i]);
  return text;
}

}  // namespace

std::optional<TrialRequest> trial_for(const PackageEntry& package, const ModelConfig& config) {
  const ModelSpec& spec = package.package->model(package.model);
  if (config.trial_timeout.count() <= 0 || spec.device_key == "cuda") return std::nullopt;
  const ModelInterface interface(package.name, package.file.version, spec);
  TrialRequest request;
  request.outputs = probes_outputs(interface, DeviceType::kCpu);
  if (config.batching == Batching::kAuto && (request.outputs || rows_to_try(interface, config) > 1))
    request.rows = {config.max_batch_size, config.preferred_batch_sizes};
  // A child that is started for something else makes the run of small models too.
  const bool slow = spec.weights_bytes >= kSlowWeights;
  request.warm_up = config.warm_up && (slow || request.outputs || request.rows);
  if (!request.warm_up && !request.outputs && !request.rows) return std::nullopt;
  request.model = package.model;
  request.threads = static_cast<int>(config.threads);
  request.op_libraries = config.op_libraries;
  request.check_inputs = config.check_inputs;
  request.weights = config.weights;
  request.weights_ignore = config.weights_ignore;
  return request;
}

LoadTrial::LoadTrial(TrialTurns& turns, std::filesystem::path program, const PackageEntry& package,
                     const ModelConfig& config)
    : package_(package),
      turns_(turns),
      settings_(settings_of(program, config)),
      request_(program.empty() ? std::nullopt : trial_for(package, config)) {}

void LoadTrial::begin(bool gives_way) {
  if (!request_ || turn_) return;
  SCONCE_CHECK(turns_.take(), kUnavailable, "the server is ending");
  start(gives_way, nullptr);
}

bool LoadTrial::begin_at_once(bool gives_way, std::unique_ptr<TrialProcess>& waiting) {
  if (!request_ || turn_ || !turns_.take_at_once()) return false;
  start(gives_way, std::exchange(waiting, nullptr));
  return true;
}

void LoadTrial::start(bool gives_way, std::unique_ptr<TrialProcess> waiting) {
  turn_.emplace(turns_);
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
  if (!child_) return turn_.reset();
  const TrialEnd end = child_->wait(turns_.descriptor());
  turn_.reset();
  SCONCE_CHECK(!end.stopped, kUnavailable, "the server is ending");
  const std::string nonsense = problem_of([&] { report_ = read_trial_report(end.lines); });
  if (!nonsense.empty()) report_ = {};
  problem_ = !end.problem.empty() ? end.problem : nonsense.empty() ? std::string() : "reports nonsense: " + nonsense;
}

void LoadTrial::warm_up(Model& model) {
  if (!request_ || !request_->warm_up) return;
  const std::optional<WarmUp>& tried = report_.warm_up;
  if (tried && tried->problem.empty())
    cold_ = model.warm_up(tried->inputs).problem;
  else
    cold_ = tried ? tried->problem : std::string();
}

void LoadTrial::take(ModelInterface& interface) const {
  if (!request_) return;
  if (report_.outputs) interface.observe_outputs(*report_.outputs);
  interface.row_finding = report_.rows;
}

std::string LoadTrial::not_learned() const {
  if (!request_) return {};
  std::vector<std::string_view> without;
  const bool slow = package_.package->model(package_.model).weights_bytes >= kSlowWeights;
  if (request_->warm_up && slow && (!report_.warm_up || !cold_.empty())) without.emplace_back("a warm-up run");
  if (request_->outputs && !report_.outputs) without.emplace_back("the shapes of its outputs");
  const RowFinding& rows = report_.rows;
  const bool untold = rows.kind == RowFinding::Kind::kUnknown;
  if (request_->rows && (untold || (rows.kind == RowFinding::Kind::kNone && !problem_.empty())))
    without.emplace_back("a trial of shared runs");
  if (without.empty()) return {};
  std::string why = !problem_.empty()                  ? "its trial in a child process " + problem_
                    : !cold_.empty()                   ? cold_
                    : !report_.outputs_problem.empty() ? "it does not run on zeros: " + report_.outputs_problem
                    : untold                           ? rows.reason
                                                       : "its trial in a child process does not report it";
  return "it is served without " + joined(without) + ": " + why;
}

}  // namespace sconce::server
