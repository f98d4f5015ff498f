#include "server/scheduling/decoding/row_plan.h"

#include <algorithm>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

// Sizes of an input in a run of all rows. whole: all sizes but the first are the model's; else each row has one number.
std::vector<int64_t> sizes_of(const ModelSignature& model, size_t input, int64_t rows, bool whole) {
  const TensorSpec& spec = model.spec.inputs[input];
  const std::string name = "input '" + model.input_names.name(input) + "'";
  SCONCE_CHECK(spec.has_shape && model.inputs[input].dtype, kInvalidArgument, "the package does not describe ", name);
  SCONCE_CHECK(!spec.dims.empty() && takes_size(spec.dims[0], rows), kInvalidArgument, name,
               " does not take a row for each of ", rows,
               " loops, and loops that share a run differ in it: its first dimension must be ", rows);
  std::vector<int64_t> sizes{rows};
  for (size_t d = 1; d < spec.dims.size(); ++d) {
    SCONCE_CHECK(!whole || spec.dims[d].is_static(), kInvalidArgument, "dimension ", d, " of ", name,
                 " is variable, and rows of one run have the same sizes");
    SCONCE_CHECK(whole || takes_size(spec.dims[d], 1), kInvalidArgument, "dimension ", d, " of ", name,
                 " does not take one number for each row");
    sizes.push_back(whole ? spec.dims[d].min : 1);
  }
  SCONCE_CHECK(row_major_is_recorded(sizes, spec), kInvalidArgument, "rows of ", name,
               " are not stored one after the other");
  return sizes;
}

}  // namespace

int64_t loop_rows(const LoopSpec& spec, const ModelSignature& model) {
  SCONCE_CHECK(!spec.rows || model.mutates_constants, kInvalidArgument,
               "'rows' is for a model that writes its buffers, and this one writes none");
  const std::optional<size_t> token = model.input_names.find(spec.token_input);
  if (!model.mutates_constants || !token || !model.spec.inputs[*token].has_shape) return 0;
  const std::vector<Dim>& dims = model.spec.inputs[*token].dims;
  const bool fixed = !dims.empty() && dims[0].is_static() && dims[0].min > 1;
  if (!spec.rows && !fixed) return 0;
  const int64_t rows = spec.rows.value_or(fixed ? dims[0].min : 0);
  for (const ConstantSpec& constant : model.spec.constants)
    SCONCE_CHECK(!constant.mutated || (!constant.shape.empty() && constant.shape[0] == rows), kInvalidArgument,
                 "a step has ", rows, " rows, and buffer '", constant.fqn.empty() ? constant.name : constant.fqn,
                 "', which the model writes, has the shape ", to_string(constant.shape),
                 ": its first dimension must be ", rows, ", a row for each loop");
  return rows;
}

void plan_rows(const LoopSpec& spec, const ModelSignature& model, LoopPlan& plan) {
  SCONCE_CHECK(!plan.prefix, kInvalidArgument, "'prefix' gives all tokens to each step, and rows of ", plan.rows,
               " loops get one token each");
  SCONCE_CHECK(plan.feeds.empty(), kInvalidArgument,
               "'feed' does not go together with rows: the model must keep all "
               "state of a row in its buffers");
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const bool whole = std::find(plan.given.begin(), plan.given.end(), i) != plan.given.end();
    plan.row_inputs.push_back(sizes_of(model, i, plan.rows, whole));
  }
  const TensorSpec& logits = model.spec.outputs[plan.logits_output];
  SCONCE_CHECK(!logits.has_shape || (logits.dims.size() >= 2 && takes_size(logits.dims[0], plan.rows)),
               kInvalidArgument, "output '", excerpt(spec.logits_output),
               "' does not have a row of logits for each of ", plan.rows, " loops");
  // A failed run fails all of its loops, so a token without an embedding in the model must be refused before.
  if (spec.tokens_below == 0 && logits.has_shape && logits.dims.back().is_static())
    plan.tokens_below = logits.dims.back().min;
  plan.idle_steps = plan.steps;
  if (plan.count) plan.idle_steps = std::min(plan.idle_steps, plan.count->below - plan.count->from);
}

}  // namespace sconce::server::scheduling
