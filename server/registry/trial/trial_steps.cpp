#include "server/registry/trial/trial_steps.h"

#include <memory>
#include <string>

#include "sconce/model.h"
#include "sconce/weight_sources.h"
#include "server/registry/trial/trial_report.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/signature/batch_invariance_check.h"
#include "server/scheduling/signature/output_probe.h"
#include "server/support/failure.h"

namespace sconce::server::registry {
namespace {

void take_weights(Model& model, const TrialRequest& request) {
  const auto update = model.begin_update({.full = true, .ignore = request.weights_ignore});
  stage_file(*update, request.weights, {.constants = model.constants()});
  update->finish();
  model.commit_weights();
}

void try_outputs(Model& model, scheduling::ModelSignature& interface) {
  if (!scheduling::probes_outputs(interface, model.info().devices.front().type)) return;
  scheduling::OutputProbe probe;
  const std::string problem = problem_of([&] { probe = scheduling::probe_outputs(model, interface); });
  report_trial(problem.empty() ? outputs_line(probe) : outputs_line(problem));
  if (problem.empty()) interface.observe_outputs(probe);
}

void try_shared_runs(Model& model, const scheduling::ModelSignature& interface, const TrialRequest::Rows& wanted) {
  ModelConfig config;
  config.batching = Batching::kAuto;
  config.max_batch_size = wanted.max_batch_size;
  config.preferred_batch_sizes = wanted.preferred;
  const int64_t rows = scheduling::rows_to_try(interface, config);
  if (rows <= 1) return;
  report_trial(rows_line(scheduling::try_rows(model, interface, rows)));
}

}  // namespace

std::shared_ptr<Model> load_tried_model(const TrialTask& task, const TrialRequest& request) {
  LoadOptions options;
  options.model_name = request.model;
  options.threads = request.threads;
  options.check_inputs = request.check_inputs;
  options.warm_up = request.warm_up;
  options.op_libraries.assign(request.op_libraries.begin(), request.op_libraries.end());
  return Model::load(task.package, options);
}

void try_load(const TrialTask& task, const TrialRequest& request) {
  const std::shared_ptr<Model> model = load_tried_model(task, request);
  if (request.warm_up) report_trial(warm_up_line(model->warm_up()));
  if (!request.outputs && !request.rows) return;
  if (!request.weights.empty()) take_weights(*model, request);
  scheduling::ModelSignature interface(model->info().spec.name, 1, model->info().spec);
  if (request.outputs) try_outputs(*model, interface);
  if (request.rows) try_shared_runs(*model, interface, *request.rows);
}

}  // namespace sconce::server::registry
