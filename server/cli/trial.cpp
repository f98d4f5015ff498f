#include "server/cli/trial.h"

#include <string>
#include <vector>

#include "sconce/model.h"
#include "sconce/random.h"
#include "server/cli/model_inputs.h"
#include "server/registry/trial/trial_report.h"
#include "server/registry/trial/trial_steps.h"
#include "server/support/failure.h"

namespace sconce::server::cli {
namespace {

// Runs the model on the inputs that `sconce run` and `sconce bench` make without files.
void try_inputs(const TrialTask& task, const registry::TrialRequest& request) {
  const std::shared_ptr<Model> model = registry::load_tried_model(task, request);
  const ModelSpec& spec = model->info().spec;
  const std::string problem = problem_of([&] {
    InputOptions options;
    options.sizes = request.inputs->sizes;
    options.seed = request.inputs->seed;
    const std::vector<Tensor> inputs = make_inputs(spec, options);
    manual_seed(options.seed);
    std::vector<Tensor> outputs(spec.outputs.size());
    model->run(inputs, outputs);
  });
  report_trial(registry::inputs_line(problem));
}

}  // namespace

void run_trial_task() {
  const TrialTask task = receive_trial();
  const registry::TrialRequest request = registry::trial_request(task.request);
  if (request.inputs)
    try_inputs(task, request);
  else
    registry::try_load(task, request);
  end_trial();
}

}  // namespace sconce::server::cli
