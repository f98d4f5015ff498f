#include "server/scheduling/pipelines/pipeline_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sconce/check.h"
#include "sconce/sizes/size_relations.h"
#include "server/scheduling/pipelines/cast.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

std::string shape_text(const std::vector<Dim>& dims) {
  std::string text = "[";
  for (const Dim& dim : dims) {
    if (text.size() > 1) text += ", ";
    text += dim.is_static() ? std::to_string(dim.min) : "-1";
  }
  return text + "]";
}

// Classes of equal sizes, each with the range that all of its users accept.
class Sizes {
 public:
  // Adds a class for the dimension. symbols: the classes of the symbols in its expression, by name; empty if it has
  // none.
  size_t add(const Dim& dim, std::map<std::string, size_t> symbols = {}) {
    classes_.push_back({classes_.size(), least_size(dim), dim.max, dim.symbol, std::move(symbols)});
    return classes_.size() - 1;
  }
  // Returns false if the two ranges do not intersect.
  bool join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return true;
    Class &into = classes_[a], &from = classes_[b];
    into.min = std::max(into.min, from.min);
    into.max = std::min(into.max, from.max);
    // A size that two steps share is a symbol of the pipeline: each step checks its own expression.
    into.symbols.clear();
    from.parent = a;
    return into.min <= into.max;
  }
  Dim dim(size_t id) {
    const Class found = classes_[find(id)];
    if (found.min == found.max) return {found.min, found.max, {}};
    if (found.symbols.empty()) return {found.min, found.max, name(id)};
    return {found.min, found.max, renamed_symbols(found.expression, [&](const std::string& symbol) {
              return name(found.symbols.at(symbol));
            })};
  }

 private:
  struct Class {
    size_t parent;
    int64_t min, max;
    std::string expression;
    std::map<std::string, size_t> symbols;
  };
  std::string name(size_t id) { return "d" + std::to_string(find(id)); }
  size_t find(size_t id) {
    while (classes_[id].parent != id) id = classes_[id].parent = classes_[classes_[id].parent].parent;
    return id;
  }
  std::vector<Class> classes_;
};

// A tensor of the pipeline while it is being planned.
struct Value {
  std::string name;
  bool made = false;  // an input, or an output of a step
  bool used = false;
  std::optional<size_t> maker;  // the step
  std::optional<DType> dtype;
  bool has_shape = false;
  std::vector<size_t> dims;  // indices in Sizes
  // The strides for which the only reader was compiled; empty: row-major.
  std::vector<std::optional<int64_t>> strides;
  int readers = 0;
};

class PipelinePlanner {
 public:
  PipelinePlanner(const PipelineSpec& spec, std::span<const ModelSignature* const> members)
      : spec_(spec), members_(members) {}

  PipelinePlan plan(std::string name, int64_t version) {
    for (const PipelineSpec::Tensor& input : spec_.inputs) {
      Value& value = values_[make(input.name, std::nullopt)];
      value.dtype = input.dtype;
    }
    for (size_t i = 0; i < spec_.steps.size(); ++i) add_outputs(i);
    for (size_t i = 0; i < spec_.steps.size(); ++i) add_inputs(i);
    std::vector<size_t> outputs;
    for (const PipelineSpec::Tensor& output : spec_.outputs) {
      const auto found = index_.find(output.name);
      SCONCE_CHECK(found != index_.end(), kInvalidArgument, "output '", excerpt(output.name),
                   "': no step makes this tensor");
      SCONCE_CHECK(std::find(outputs.begin(), outputs.end(), found->second) == outputs.end(), kInvalidArgument,
                   "output '", excerpt(output.name), "' is named twice");
      outputs.push_back(found->second);
      values_[found->second].used = true;
      values_[found->second].readers += 2;  // clients receive it row-major
    }
    for (const Value& value : values_)
      SCONCE_CHECK(value.used, kInvalidArgument, value.maker ? "tensor '" : "input '", excerpt(value.name),
                   "': nobody needs it");
    order_steps();
    PipelinePlan plan{interface_of(std::move(name), version, outputs), values_.size(), std::move(outputs),
                      std::move(steps_)};
    return plan;
  }

 private:
  std::string step_name(size_t i) const {
    return "step " + std::to_string(i + 1) + " (model '" + spec_.steps[i].model + "')";
  }

  size_t make(const std::string& name, std::optional<size_t> maker) {
    SCONCE_CHECK(!name.empty(), kInvalidArgument, "a tensor has no name");
    const auto [found, fresh] = index_.emplace(name, values_.size());
    if (!fresh) {
      const Value& other = values_[found->second];
      SCONCE_FAIL(kInvalidArgument, maker ? step_name(*maker) : std::string("inputs"), ": tensor '", excerpt(name),
                  "' is ", other.maker ? "an output of " + step_name(*other.maker) + " already" : "an input already");
    }
    Value& value = values_.emplace_back();
    value.name = name;
    value.made = true;
    value.maker = maker;
    return found->second;
  }

  // The class of a size in a step's model: dimensions with the same symbol are equal.
  size_t size_of(size_t step, const Dim& dim) {
    if (dim.is_static() || dim.symbol.empty()) return sizes_.add(dim);
    std::map<std::string, size_t> parts;
    for (const std::string& symbol : symbols_of(dim.symbol)) {
      if (symbol == dim.symbol) break;
      const auto [part, fresh] = symbols_.try_emplace({step, symbol}, 0);
      if (fresh) part->second = sizes_.add({0, INT64_MAX, symbol});
      parts.emplace(symbol, part->second);
    }
    const auto [found, fresh] = symbols_.try_emplace({step, dim.symbol}, 0);
    if (fresh)
      found->second = sizes_.add(dim, std::move(parts));
    else if (parts.empty())
      sizes_.join(found->second, sizes_.add(dim));
    return found->second;
  }

  std::vector<size_t> sizes_of(size_t step, const TensorSpec& tensor) {
    std::vector<size_t> dims;
    for (const Dim& dim : tensor.dims) dims.push_back(size_of(step, dim));
    return dims;
  }

  // The shape of an output: from the package, or observed in runs.
  static TensorSpec shape_of(const ModelSignature& model, size_t at) {
    TensorSpec spec = model.spec.outputs[at];
    if (spec.has_shape || !model.outputs[at].shape_known) return spec;
    spec.has_shape = true;
    for (const int64_t size : model.outputs[at].shape)
      spec.dims.push_back({std::max<int64_t>(size, 0), size < 0 ? INT64_MAX : size, {}});
    if (model.batch_observed) spec.dims[0].symbol = model.batch_symbol();
    return spec;
  }

  void add_outputs(size_t i) {
    const ModelSignature& model = *members_[i];
    PipelinePlan::Step& step = steps_.emplace_back();
    step.outputs.resize(model.outputs.size());
    for (const PipelineSpec::Output& output : spec_.steps[i].outputs) {
      const std::optional<size_t> at = model.output_names.find(output.name);
      SCONCE_CHECK(at, kInvalidArgument, step_name(i), ": the model has no output '", excerpt(output.name),
                   "'; it has ", excerpt(model.output_names.list()));
      SCONCE_CHECK(!step.outputs[*at], kInvalidArgument, step_name(i), ": output '", excerpt(output.name),
                   "' is named twice");
      const TensorSpec& described = model.spec.outputs[*at];
      SCONCE_CHECK(!described.none, kInvalidArgument, step_name(i), ": output '", excerpt(output.name),
                   "' is always None");
      step.outputs[*at] = make(output.tensor, i);
      Value& value = values_.back();
      value.dtype = model.outputs[*at].dtype;
      const TensorSpec shape = shape_of(model, *at);
      value.has_shape = shape.has_shape;
      if (shape.has_shape) value.dims = sizes_of(i, shape);
    }
    SCONCE_CHECK(!spec_.steps[i].outputs.empty(), kInvalidArgument, step_name(i), ": it has no outputs");
  }

  void add_inputs(size_t i) {
    const ModelSignature& model = *members_[i];
    PipelinePlan::Step& step = steps_[i];
    std::vector<bool> given(model.inputs.size());
    step.inputs.resize(model.inputs.size());
    for (const PipelineSpec::Input& input : spec_.steps[i].inputs) {
      const std::optional<size_t> at = model.input_names.find(input.name);
      SCONCE_CHECK(at, kInvalidArgument, step_name(i), ": the model has no input '", excerpt(input.name), "'; it has ",
                   excerpt(model.input_names.list()));
      SCONCE_CHECK(!given[*at], kInvalidArgument, step_name(i), ": input '", excerpt(input.name), "' is named twice");
      given[*at] = true;
      const auto found = index_.find(input.tensor);
      SCONCE_CHECK(found != index_.end(), kInvalidArgument, step_name(i), ": input '", excerpt(input.name),
                   "' is tensor '", excerpt(input.tensor), "', which is no input of the pipeline and no step's output");
      Value& value = values_[found->second];
      value.used = true;
      step.inputs[*at] = {found->second, std::nullopt};
      connect_dtypes(i, input, model.inputs[*at].dtype, value, step.inputs[*at]);
      connect_sizes(i, input, model.spec.inputs[*at], value);
      ++value.readers;
      if (!value.maker && !step.inputs[*at].cast) value.strides = model.spec.inputs[*at].strides;
      if (!value.maker) continue;
      std::vector<size_t>& next = steps_[*value.maker].next;
      if (std::find(next.begin(), next.end(), i) != next.end()) continue;
      next.push_back(i);
      ++step.needs;
    }
    for (size_t k = 0; k < given.size(); ++k)
      SCONCE_CHECK(given[k], kInvalidArgument, step_name(i), ": the model's input '", model.input_names.name(k),
                   "' gets no tensor");
  }

  void connect_dtypes(size_t i, const PipelineSpec::Input& input, std::optional<DType> wanted, Value& value,
                      PipelinePlan::Input& plan) const {
    const auto what = [&] {
      return step_name(i) + ": input '" + excerpt(input.name) + "', tensor '" + excerpt(input.tensor) + "'";
    };
    if (input.cast) {
      SCONCE_CHECK(!wanted || *wanted == *input.cast, kInvalidArgument, what(), ": the cast makes it ",
                   dtype_name(*input.cast), ", the model takes ", dtype_name(*wanted));
      SCONCE_CHECK(value.dtype, kInvalidArgument, what(),
                   ": it is cast, but its own datatype is unknown; give it where the tensor is declared an input");
      SCONCE_CHECK(is_castable(*value.dtype) && is_castable(*input.cast), kInvalidArgument, what(),
                   ": there is no cast from ", dtype_name(*value.dtype), " to ", dtype_name(*input.cast));
      if (*value.dtype != *input.cast) plan.cast = input.cast;
      return;
    }
    if (!value.dtype && !value.maker) value.dtype = wanted;
    SCONCE_CHECK(!value.dtype || !wanted || *value.dtype == *wanted, kInvalidArgument, what(), ": it is ",
                 dtype_name(*value.dtype), ", the model takes ", dtype_name(*wanted), " (\"cast\" converts it)");
  }

  void connect_sizes(size_t i, const PipelineSpec::Input& input, const TensorSpec& wanted, Value& value) {
    if (!wanted.has_shape) return;
    std::vector<size_t> dims = sizes_of(i, wanted);
    if (!value.has_shape) {
      // The step that makes it does not describe its size; the run will show it.
      if (value.maker) return;
      value.has_shape = true;
      value.dims = std::move(dims);
      return;
    }
    std::vector<Dim> has;
    for (const size_t id : value.dims) has.push_back(sizes_.dim(id));
    const std::string described = step_name(i) + ": input '" + excerpt(input.name) + "', tensor '" +
                                  excerpt(input.tensor) + "': it is " + shape_text(has) + ", the model takes " +
                                  shape_text(wanted.dims);
    SCONCE_CHECK(value.dims.size() == dims.size(), kInvalidArgument, described);
    for (size_t d = 0; d < dims.size(); ++d) {
      const Dim before = sizes_.dim(value.dims[d]);
      SCONCE_CHECK(sizes_.join(value.dims[d], dims[d]), kInvalidArgument, described, ": no size of dimension ", d,
                   " suits all steps; before this one it was ", before.min, " to ", before.max);
    }
  }

  // Throws for a cycle of steps.
  void order_steps() const {
    std::vector<size_t> needs, ready;
    for (const PipelinePlan::Step& step : steps_) needs.push_back(step.needs);
    for (size_t i = 0; i < needs.size(); ++i)
      if (needs[i] == 0) ready.push_back(i);
    size_t done = 0;
    for (; !ready.empty(); ++done) {
      const size_t i = ready.back();
      ready.pop_back();
      for (const size_t next : steps_[i].next)
        if (--needs[next] == 0) ready.push_back(next);
    }
    if (done == steps_.size()) return;
    const auto stuck = std::find_if(needs.begin(), needs.end(), [](size_t n) { return n > 0; });
    SCONCE_FAIL(kInvalidArgument, step_name(static_cast<size_t>(stuck - needs.begin())),
                ": its inputs depend on its own outputs");
  }

  TensorSpec tensor_of(const Value& value, const PipelineSpec::Tensor& declared, const char* what) {
    TensorSpec tensor;
    tensor.name = value.name;
    tensor.dtype = value.dtype;
    tensor.has_shape = value.has_shape;
    for (const size_t id : value.dims) tensor.dims.push_back(sizes_.dim(id));
    if (value.readers == 1) tensor.strides = value.strides;
    SCONCE_CHECK(!declared.dtype || !value.dtype || *declared.dtype == *value.dtype, kInvalidArgument, what, " '",
                 excerpt(value.name), "' is ", dtype_name(*value.dtype), ", not ", dtype_name(*declared.dtype));
    if (!declared.shape || !value.has_shape) return tensor;
    bool fits = declared.shape->size() == tensor.dims.size();
    for (size_t d = 0; fits && d < tensor.dims.size(); ++d) {
      const int64_t size = (*declared.shape)[d];
      const Dim& dim = tensor.dims[d];
      // The file may be more general than the models, and may name one of the sizes that they accept.
      fits = size == -1 || (dim.is_static() ? size == dim.min : size >= dim.min && size <= dim.max);
    }
    std::vector<Dim> said;
    for (const int64_t size : *declared.shape) said.push_back({size, size == -1 ? INT64_MAX : size, {}});
    SCONCE_CHECK(fits, kInvalidArgument, what, " '", excerpt(value.name), "' is ", shape_text(tensor.dims), ", not ",
                 shape_text(said));
    return tensor;
  }

  ModelSignature interface_of(std::string name, int64_t version, const std::vector<size_t>& outputs) {
    ModelSpec spec;
    spec.name = name;
    spec.call_spec.known = true;
    spec.call_spec.args.kind = SpecNode::Kind::kTuple;
    std::vector<std::string> input_names, output_names;
    const auto leaves = [](const std::vector<std::string>& names, SpecNode& node) {
      node.kind = SpecNode::Kind::kDict;
      node.keys = names;
      node.int_keys.assign(names.size(), false);
      node.children.assign(names.size(), SpecNode{});
    };
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      spec.inputs.push_back(tensor_of(values_[i], spec_.inputs[i], "input"));
      spec.call_spec.input_leaf.push_back(i);
      input_names.push_back(values_[i].name);
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      spec.outputs.push_back(tensor_of(values_[outputs[k]], spec_.outputs[k], "output"));
      output_names.push_back(values_[outputs[k]].name);
    }
    leaves(input_names, spec.call_spec.kwargs);
    leaves(output_names, spec.call_spec.result);
    ModelSignature interface(std::move(name), version, std::move(spec));
    interface.input_names = interface.input_names.renamed(std::move(input_names));
    interface.output_names = interface.output_names.renamed(std::move(output_names));
    interface.pipeline = true;
    // A step's output may have rows even if its package does not say so.
    for (const ModelSignature* const member : members_)
      interface.max_batch_size = std::min(interface.max_batch_size, member->max_batch_size);
    return interface;
  }

  const PipelineSpec& spec_;
  const std::span<const ModelSignature* const> members_;
  Sizes sizes_;
  std::map<std::pair<size_t, std::string>, size_t> symbols_;
  std::vector<Value> values_;
  std::map<std::string, size_t, std::less<>> index_;
  std::vector<PipelinePlan::Step> steps_;
};

}  // namespace

PipelinePlan plan_pipeline(const PipelineSpec& spec, std::string name, int64_t version,
                           std::span<const ModelSignature* const> members) {
  const ErrorContext context(spec.origin);
  return PipelinePlanner(spec, members).plan(std::move(name), version);
}

}  // namespace sconce::server::scheduling
