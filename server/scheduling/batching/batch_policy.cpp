#include "server/scheduling/batching/batch_policy.h"

#include <algorithm>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"

namespace sconce::server::scheduling {
namespace {

// Maximum batch size if neither package nor settings set one.
constexpr int64_t kDefaultRows = 64;

// Whether dimension 0 is outermost in the recorded strides.
bool rows_outermost(const TensorSpec& spec) {
  if (spec.strides.size() != spec.dims.size() || spec.strides.empty() || !spec.strides[0]) return true;
  for (size_t d = 1; d < spec.dims.size(); ++d) {
    if (!spec.strides[d] || *spec.strides[d] > *spec.strides[0]) return false;
  }
  return true;
}

// Whether a dimension other than the first depends on a symbol of the batch. For example, in batch "2*s0" a dimension
// "1 + s0" does.
bool batch_elsewhere(const TensorSpec& spec, const std::vector<std::string>& symbols) {
  for (size_t d = 1; d < spec.dims.size(); ++d)
    for (const std::string& symbol : symbols_of(spec.dims[d].symbol))
      if (std::find(symbols.begin(), symbols.end(), symbol) != symbols.end()) return true;
  return false;
}

int64_t rows_together(const ModelSignature& model, const ModelConfig& config) {
  int64_t rows = config.max_batch_size;
  if (rows == 0)
    rows = std::max(kDefaultRows, config.preferred_batch_sizes.empty() ? 0 : config.preferred_batch_sizes.back());
  return std::min(rows, model.max_batch_size);
}

std::string why_alone(const ModelSignature& model, const ModelConfig& config) {
  if (model.pipeline) return "each step of a pipeline shares runs by itself";
  if (config.batching == Batching::kOff) return "setting batching is off";
  if (model.mutates_constants) return "the model writes its buffers";
  const std::string symbol = model.batch_symbol();
  if (symbol.empty()) return "its inputs share no variable first dimension";
  if (!closed_under_sums(symbol))
    return "its first dimension is " + symbol + ", which the rows of several requests together are not";
  const std::vector<std::string> symbols = symbols_of(symbol);
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (!rows_outermost(model.spec.inputs[i]))
      return "rows of input '" + model.input_names.name(i) + "' are not stored one after the other";
    if (batch_elsewhere(model.spec.inputs[i], symbols))
      return "input '" + model.input_names.name(i) + "' has the batch in another dimension, too";
  }
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const TensorSpec& output = model.spec.outputs[i];
    if (output.none || model.batch_observed) continue;
    const std::string name = "output '" + model.output_names.name(i) + "'";
    if (!output.has_shape) return "the package does not record the shape of " + name;
    if (output.dims.empty() || output.dims[0].symbol != symbol)
      return name + " does not have a row for each of the inputs";
    if (batch_elsewhere(output, symbols)) return name + " has the batch in another dimension, too";
  }
  if (model.max_batch_size <= 1) return "it takes one row at a time";
  const int64_t rows = rows_together(model, config);
  if (rows <= 1) return "setting max_batch_size is 1";
  if (2 * model.fewest_rows(rows) > rows) return "two requests of the fewest rows are more than a run may have";
  return {};
}

}  // namespace

int64_t rows_to_try(const ModelSignature& model, const ModelConfig& config) {
  if (config.batching != Batching::kAuto || !model.spec.rows.independent() || !why_alone(model, config).empty())
    return 1;
  return rows_together(model, config);
}

BatchPolicy batch_policy(const ModelSignature& model, const ModelConfig& config) {
  BatchPolicy policy;
  policy.alone = why_alone(model, config);
  if (config.max_batch_size > 0) policy.most_rows = config.max_batch_size;
  policy.rows = row_sharing(model.spec.rows, model.row_finding, config.batching);
  if (policy.alone.empty()) policy.alone = policy.rows.reason;
  if (policy.alone.empty()) {
    policy.max_rows = rows_together(model, config);
    std::copy_if(config.preferred_batch_sizes.begin(), config.preferred_batch_sizes.end(),
                 std::back_inserter(policy.preferred), [&](int64_t size) { return size <= policy.max_rows; });
  }
  policy.delay = config.batch_delay;
  policy.queue = config.queue;
  policy.priority_levels = config.priority_levels;
  policy.default_priority = config.default_priority > 0 ? config.default_priority : (config.priority_levels + 1) / 2;
  policy.timeout = config.queue_timeout;
  policy.timeout_override = config.timeout_override;
  policy.reject_late = config.timeout_action == TimeoutAction::kReject;
  policy.request_timeout = config.request_timeout;
  SCONCE_CHECK(policy.priority_levels <= 1000, kInvalidArgument, "setting priority_levels of model '", model.name,
               "' must be 1000 or less, got ", policy.priority_levels);
  SCONCE_CHECK(policy.priority_levels == 0 || policy.default_priority <= policy.priority_levels, kInvalidArgument,
               "setting default_priority of model '", model.name,
               "' is more than priority_levels: ", policy.default_priority, " of ", policy.priority_levels);
  return policy;
}

}  // namespace sconce::server::scheduling
