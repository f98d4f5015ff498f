#include "server/cli/tried_inputs.h"

#include <chrono>
#include <string>

#include "sconce/check.h"
#include "sconce/trial/trial_process.h"
#include "server/registry/trial/trial_report.h"
#include "server/registry/trial/trial_request.h"

namespace sconce::server::cli {

std::string try_dummy_inputs(const LoadSettings& load, const InputOptions& inputs) {
  const LoadOptions options = load_options(load);
  if (!inputs.files.empty()) return {};
  const std::shared_ptr<const Package> package = Package::open(load.path);
  if (options.devices.front().type != DeviceType::kCpu) {
    SCONCE_CHECK(inputs.random_on_device || package->model(load.model).inputs.empty(), kInvalidArgument,
                 "random inputs may be no index of the model's tables, and a failed assertion on ", load.device,
                 " would end this process's use of it: give inputs with --input, or say --random-inputs");
    return {};
  }
  registry::TrialRequest request;
  request.model = load.model;
  request.threads = load.threads;
  request.op_libraries = load.op_libraries;
  request.check_inputs = options.check_inputs;
  request.inputs = {.seed = inputs.seed, .sizes = inputs.sizes};
  // The user waits for the run and may abort it, so it has no limits.
  const TrialSettings settings{
      .program = options.trial.program, .time = std::chrono::hours(24 * 365), .memory = UINT64_MAX};
  const TrialEnd end = TrialProcess(settings, *package, registry::to_text(request)).wait();
  const registry::TrialReport report = registry::read_trial_report(end.lines);
  // An error of the run occurs again in this process, with its code.
  if (report.inputs) return {};
  return "the model cannot run on made-up inputs: its run in a child process " +
         (end.problem.empty() ? "reports nothing" : end.problem) + "; give inputs with --input";
}

}  // namespace sconce::server::cli
