#include "server/scheduling/decoding/loop_plan.h"

#include <algorithm>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"
#include "server/scheduling/decoding/row_plan.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

bool is_number(DType dtype) noexcept { return dtype == DType::kInt64 || dtype == DType::kInt32; }

class LoopPlanner {
 public:
  LoopPlanner(const LoopSpec& spec, const ModelSignature& model)
      : spec_(spec), model_(model), relations_(model.spec.inputs, model.spec.bounds), filled_(model.inputs.size()) {
    for (const ControlInput& control : model.controls) filled_[control.input] = true;
  }

  LoopPlan plan(bool sequences) {
    plan_.prefix = spec_.prefix;
    plan_.sequence = model_.mutates_constants;
    plan_.on_device = model_.spec.device_key == "cuda";
    // An output of a model that writes its buffers may be one of these buffers, which the next run overwrites.
    plan_.feeds_stay = plan_.on_device && !model_.mutates_constants;
    SCONCE_CHECK(!model_.mutates_constants || sequences, kInvalidArgument,
                 "the model writes its buffers: each loop needs its own, by setting sequences");
    plan_.rows = loop_rows(spec_, model_);
    plan_.tokens_below = spec_.tokens_below;
    plan_tokens();
    plan_logits();
    for (const LoopSpec::Feed& feed : spec_.feeds) plan_feed(feed);
    if (spec_.count) plan_count(*spec_.count);
    for (size_t i = 0; i < filled_.size(); ++i)
      if (!filled_[i]) plan_.given.push_back(i);
    for (const int64_t token : spec_.stop_tokens)
      SCONCE_CHECK(token <= plan_.most_token(), kInvalidArgument, "'tokens' of 'stop': ", token, " is no token of ",
                   dtype_name(plan_.token_dtype));
    plan_.stop_tokens = spec_.stop_tokens;
    plan_.steps = spec_.steps;
    plan_.deadline = spec_.deadline;
    plan_.pick = spec_.pick;
    if (plan_.rows > 0) plan_rows(spec_, model_, plan_);
    return std::move(plan_);
  }

 private:
  size_t input_named(const std::string& name, std::string_view member) {
    const std::optional<size_t> index = model_.input_names.find(name);
    SCONCE_CHECK(index, kInvalidArgument, "'", member, "': the model has no input '", excerpt(name), "', inputs are ",
                 model_.input_names.list());
    SCONCE_CHECK(!filled_[*index], kInvalidArgument, "'", member, "': input '", excerpt(name), "' is filled already");
    filled_[*index] = true;
    return *index;
  }
  size_t output_named(const std::string& name, std::string_view member) const {
    const std::optional<size_t> index = model_.output_names.find(name);
    SCONCE_CHECK(index, kInvalidArgument, "'", member, "': the model has no output '", excerpt(name), "', outputs are ",
                 model_.output_names.list());
    return *index;
  }
  const std::vector<Dim>& dims_of(size_t input, const std::string& name) const {
    SCONCE_CHECK(model_.spec.inputs[input].has_shape, kInvalidArgument, "the package does not record the shape of '",
                 excerpt(name), "'");
    return model_.spec.inputs[input].dims;
  }
  // Whether a request may have this size.
  bool takes(size_t input, size_t d, int64_t size) const {
    const Dim& dim = model_.spec.inputs[input].dims[d];
    return dim.is_static() ? size == dim.min : relations_.takes({input, d}, size);
  }
  DType number_dtype(size_t input, const std::string& name) const {
    const std::optional<DType> dtype = model_.inputs[input].dtype;
    SCONCE_CHECK(dtype && is_number(*dtype), kInvalidArgument, "input '", excerpt(name), "' is ",
                 model_.inputs[input].datatype, ", not INT64 or INT32");
    return *dtype;
  }
  // Whether the last dimension has the tokens of one step, and is not the batch.
  bool has_positions(const std::vector<Dim>& dims) const noexcept {
    return dims.size() >= 2 || (dims.size() == 1 && model_.max_batch_size == 0 && plan_.rows == 0);
  }

  void plan_tokens() {
    const std::string& name = spec_.token_input;
    plan_.token_input = input_named(name, "token");
    plan_.token_dtype = number_dtype(plan_.token_input, name);
    const std::vector<Dim>& dims = dims_of(plan_.token_input, name);
    plan_.token_rank = dims.size();
    const size_t positions = has_positions(dims) ? dims.size() - 1 : dims.size();
    const auto rows_at = [&](size_t d) { return d == 0 ? std::max<int64_t>(plan_.rows, 1) : 1; };
    for (size_t d = 0; d < positions; ++d)
      SCONCE_CHECK(takes(plan_.token_input, d, rows_at(d)), kInvalidArgument, "dimension ", d, " of input '",
                   excerpt(name), "' does not take ",
                   rows_at(d) == 1 ? "one row" : std::to_string(rows_at(d)) + " rows");
    if (positions < dims.size()) {
      const size_t last = dims.size() - 1;
      plan_.least_tokens = dims.back().is_static()
                               ? std::max<int64_t>(dims.back().min, 1)
                               : std::max<int64_t>(relations_.range({plan_.token_input, last}).least, 1);
      plan_.most_tokens = dims.back().max;
    }
    SCONCE_CHECK(spec_.prefix || plan_.least_tokens == 1, kInvalidArgument, "input '", excerpt(name), "' takes ",
                 plan_.least_tokens, " tokens or more, and a step has one, unless 'prefix' is set");
    if (plan_.rows > 0) plan_.most_tokens = std::min<int64_t>(plan_.most_tokens, 1);  // all rows advance by one token
    SCONCE_CHECK(!spec_.prefix || plan_.rows > 0 || plan_.most_tokens > plan_.least_tokens, kInvalidArgument, "input '",
                 excerpt(name), "' takes only ", plan_.most_tokens,
                 " tokens, and 'prefix' gives it more with each step");
  }

  void plan_logits() {
    const std::string& name = spec_.logits_output;
    plan_.logits_output = output_named(name, "token");
    const TensorInterface& logits = model_.outputs[plan_.logits_output];
    SCONCE_CHECK(!logits.dtype || *logits.dtype == DType::kFloat32 || *logits.dtype == DType::kFloat16 ||
                     *logits.dtype == DType::kBFloat16,
                 kInvalidArgument, "output '", excerpt(name), "' is ", logits.datatype,
                 ", and logits are FP32, FP16 or BF16");
    SCONCE_CHECK(!logits.shape_known || !logits.shape.empty(), kInvalidArgument, "output '", excerpt(name),
                 "' has no dimension of tokens");
  }

  void plan_feed(const LoopSpec::Feed& feed) {
    LoopPlan::Feed& made = plan_.feeds.emplace_back();
    made.output = output_named(feed.output, "feed");
    made.input = input_named(feed.input, "feed");
    const TensorInterface &from = model_.outputs[made.output], &to = model_.inputs[made.input];
    SCONCE_CHECK(to.dtype, kInvalidArgument, "the package does not record the dtype of input '", excerpt(feed.input),
                 "'");
    SCONCE_CHECK(!from.dtype || *from.dtype == *to.dtype, kInvalidArgument, "output '", excerpt(feed.output), "' is ",
                 from.datatype, ", input '", excerpt(feed.input), "' is ", to.datatype);
    made.dtype = *to.dtype;
    const std::vector<Dim>& dims = dims_of(made.input, feed.input);
    const TensorSpec& output = model_.spec.outputs[made.output];
    SCONCE_CHECK(!output.has_shape || output.dims.size() == dims.size(), kInvalidArgument, "output '",
                 excerpt(feed.output), "' has ", output.dims.size(), " dimensions, input '", excerpt(feed.input),
                 "' has ", dims.size());
    if (feed.shape) {
      SCONCE_CHECK(feed.shape->size() == dims.size(), kInvalidArgument, "'shape' for input '", excerpt(feed.input),
                   "' has ", feed.shape->size(), " sizes, the input has ", dims.size());
      made.shape = *feed.shape;
    }
    int64_t elements = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!feed.shape) {
        const bool batch = d == 0 && model_.max_batch_size > 0;
        SCONCE_CHECK(batch || dims[d].is_static(), kInvalidArgument, "dimension ", d, " of input '",
                     excerpt(feed.input), "' is variable: 'feed' must say the 'shape' of its first value");
        made.shape.push_back(batch ? 1 : dims[d].min);
      }
      SCONCE_CHECK(!output.has_shape || !output.dims[d].is_static() || takes(made.input, d, output.dims[d].min),
                   kInvalidArgument, "output '", excerpt(feed.output), "' has ", output.dims[d].min, " in dimension ",
                   d, ", which input '", excerpt(feed.input), "' does not take");
      SCONCE_CHECK(takes(made.input, d, made.shape[d]), kInvalidArgument, "input '", excerpt(feed.input),
                   "' does not take ", made.shape[d], " in dimension ", d);
      SCONCE_CHECK(
          !__builtin_mul_overflow(elements, std::max<int64_t>(made.shape[d], 1), &elements) && elements <= INT32_MAX,
          kInvalidArgument, "the first value of input '", excerpt(feed.input), "' is too large");
    }
  }

  void plan_count(const LoopSpec::Count& count) {
    LoopPlan::Count& made = plan_.count.emplace();
    made.input = input_named(count.input, "count");
    made.dtype = number_dtype(made.input, count.input);
    const std::vector<Dim>& dims = dims_of(made.input, count.input);
    made.rank = dims.size();
    made.each = has_positions(dims) && !dims.back().is_static() && plan_.rows == 0;
    for (size_t d = plan_.rows > 0 ? 1 : 0; d + (made.each ? 1 : 0) < dims.size(); ++d)
      SCONCE_CHECK(takes(made.input, d, 1), kInvalidArgument, "dimension ", d, " of input '", excerpt(count.input),
                   "' does not take one number");
    SCONCE_CHECK(!made.each || plan_.most_tokens > 1, kInvalidArgument, "input '", excerpt(count.input),
                 "' takes a number for each token of a step, and '", excerpt(spec_.token_input), "' takes one token");
    const int64_t most = made.dtype == DType::kInt32 ? INT32_MAX : INT64_MAX / 2;
    SCONCE_CHECK(count.from < most, kInvalidArgument, "'from' of 'count' is too large: ", count.from);
    made.from = count.from;
    made.below = std::min(count.below.value_or(most), most);
  }

  const LoopSpec& spec_;
  const ModelSignature& model_;
  const SizeRelations relations_;
  std::vector<bool> filled_;
  LoopPlan plan_;
};

}  // namespace

int64_t LoopPlan::room_after(int64_t prompt) const noexcept {
  int64_t most = INT64_MAX;
  if (prefix) most = most_tokens;
  if (count) most = std::min(most, count->below - count->from);
  return most == INT64_MAX ? most : most - prompt + 1;
}

LoopPlan plan_loop(const LoopSpec& spec, const ModelSignature& model, bool sequences) {
  const ErrorContext context(spec.origin);
  return LoopPlanner(spec, model).plan(sequences);
}

}  // namespace sconce::server::scheduling
