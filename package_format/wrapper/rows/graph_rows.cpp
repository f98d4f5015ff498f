#include "package_format/wrapper/rows/graph_rows.h"

#include <algorithm>

#include "package_format/text/source_text.h"
#include "package_format/wrapper/rows/graph_reader.h"

namespace sconce::rows {
namespace graph {

std::string GraphReader::not_understood(std::string_view text) {
  return "its source has a statement without a rule: " +
         std::string(text.substr(0, std::min<size_t>(text.find('\n'), 100)));
}

void GraphReader::declare(const Statement& statement) {
  Value value = evaluate(statement.first);
  const std::string_view word = syntax_.word(statement.name);
  // A size of an input already has its symbol's name.
  if (value.kind == Value::Kind::kInteger && symbols_.contains(word) && value.integer != symbols_.at(word))
    return fail(statement.text);
  if (value.kind == Value::Kind::kTensor && value.name >= 0) value.name = -1;
  values_[statement.name] = std::move(value);
}

// "auto buf5 = std::move(buf3);", or "auto buf5 = wrap_with_raii_handle_if_needed(reinterpret_tensor_wrapper(buf3,
// ...)); buf3.reset();": another tensor in freed memory. If its rows are placed differently, or the old tensor was
// mixed, its state is reset, and its elements belong to a row once they are written.
void GraphReader::reuse(Index declaration, Index next) {
  const Statement& statement = syntax_.statement(declaration);
  if (statement.deed != Deed::kDeclare || statement.first == kNothing) return;
  const auto at = values_.find(statement.name);
  if (at == values_.end() || at->second.kind != Value::Kind::kTensor || !at->second.tensor.shaped) return;
  const Expression* source = &syntax_.expression(statement.first);
  bool freed = source->form == Form::kCall && source->text == "move" && source->children.size() == 1;
  if (!freed && source->form == Form::kCall && source->text == "wrap_with_raii_handle_if_needed") {
    source = &syntax_.expression(source->children[0]);
    if (source->form != Form::kCall || source->children.size() != 5) return;
    const Expression& base = syntax_.expression(source->children[0]);
    const Statement& after = syntax_.statement(next);
    if (after.deed != Deed::kValue || base.form != Form::kName) return;
    const Expression& reset = syntax_.expression(after.first);
    if (reset.form != Form::kMethod || reset.text != "reset") return;
    const Expression& object = syntax_.expression(reset.children[0]);
    freed = object.form == Form::kName && object.name == base.name;
  }
  View& view = at->second.tensor;
  if (!freed || view.storage < 0 || !view.offset.is(0) || state_.storage(view.storage).read_only) return;
  at->second.reused = true;
  if (state_.storage(view.storage).mixed < 0 && state_.place_of(view).kind != BatchPlace::Kind::kUnclear) return;
  view.storage = state_.add_storage(syntax_.word(statement.name), view.sizes, view.strides);
  state_.storage(view.storage).stale = true;
}

// aoti_torch_empty_strided(rank, sizes, strides, dtype, device, index, &handle)
void GraphReader::empty_strided(const Expression& call) {
  if (call.children.size() < 7) return fail(call.text);
  const Value sizes = evaluate(call.children[1]), strides = evaluate(call.children[2]);
  const Value handle = evaluate(call.children.back());
  if (handle.name < 0) return fail(call.text);
  View view{.storage = -1, .shaped = true, .sizes = integers(sizes), .strides = integers(strides), .offset = {}};
  std::string_view name = syntax_.word(handle.name);
  if (name.ends_with("_handle")) name.remove_suffix(7);
  state_.set_place("");
  view.storage = state_.add_storage(name, view.sizes, view.strides);
  values_[handle.name] = tensor(std::move(view));
}

// assert_size_stride(tensor, {sizes}, {strides}, ...): states the shape of an operator's result.
void GraphReader::assert_shape(const Expression& call) {
  if (call.children.size() < 3) return;
  const Expression& target = syntax_.expression(call.children[0]);
  const auto at = target.form == Form::kName ? values_.find(target.name) : values_.end();
  if (state_.bounds() && at != values_.end() && at->second.kind == Value::Kind::kTensor && at->second.expected) {
    View& view = at->second.tensor;
    view.sizes = integers(evaluate(call.children[1]));
    view.strides = integers(evaluate(call.children[2]));
    view.shaped = true;
    const int mixed = state_.storage(view.storage).mixed;
    view.storage = state_.add_storage(target.text, view.sizes, view.strides);
    state_.storage(view.storage).mixed = mixed;
    return at->second.expected.reset();
  }
  if (at == values_.end() || at->second.kind != Value::Kind::kTensor || !at->second.expected) return;
  View& view = at->second.tensor;
  view.sizes = integers(evaluate(call.children[1]));
  view.strides = integers(evaluate(call.children[2]));
  view.shaped = true;
  const BatchPlace expected = *at->second.expected;
  at->second.expected.reset();
  view.storage = state_.add_storage(target.text, view.sizes, view.strides);
  check_place(target.text, view, expected);
}

// Marks a result as mixed if its rows are not where its operator puts them.
void GraphReader::check_place(std::string_view name, const View& view, const BatchPlace& expected) {
  state_.settle(view, expected);
  const BatchPlace place = state_.place_of(view);
  const bool same =
      expected.kind == BatchPlace::Kind::kNowhere ? place.kind != BatchPlace::Kind::kUnclear : place == expected;
  if (!same) state_.mix(view.storage, state_.reason("where '" + std::string(name) + "' has the rows is not clear"));
}

void GraphReader::bind_results(std::vector<Value>& arguments, std::string_view name, const OperatorResults& results) {
  int reason = -1;
  for (const Value& argument : arguments)
    if (argument.kind == Value::Kind::kTensor && argument.tensor.storage >= 0 && reason < 0)
      reason = state_.storage(argument.tensor.storage).mixed;
  if (reason < 0) reason = state_.reason("rows meet in it, or it is not clear that they do not");
  if (results.written >= 0) {
    const auto written = static_cast<size_t>(results.written);
    View* view = written < arguments.size() ? &arguments[written].tensor : nullptr;
    if (!view || view->storage < 0 || results.list.empty()) return fail(name);
    const BatchPlace expected = results.list[0].place;
    if (arguments[written].reused && name.ends_with("_out") && arguments[written].name >= 0) {
      view->storage = state_.add_storage(syntax_.word(arguments[written].name), view->sizes, view->strides);
      values_[arguments[written].name].tensor = *view;
    }
    state_.storage(view->storage).stale = false;
    state_.settle(*view, expected);
    const BatchPlace place = state_.place_of(*view);
    state_.storage(view->storage).touched = true;
    const bool same = expected.kind == BatchPlace::Kind::kNowhere   ? place.kind != BatchPlace::Kind::kUnclear
                      : expected.kind == BatchPlace::Kind::kUnclear ? false
                                                                    : place == expected;
    if (!same || state_.storage(view->storage).read_only) state_.mix(view->storage, reason);
  }
  size_t output = 0;
  for (const Value& argument : arguments) {
    if (argument.kind != Value::Kind::kAddress || !syntax_.word(argument.name).ends_with("_handle")) continue;
    std::string_view word = syntax_.word(argument.name);
    word.remove_suffix(7);
    Value& result = values_[argument.name];
    if (results.written >= 0) {
      result = arguments[static_cast<size_t>(results.written)];
      result.name = -1;
      continue;
    }
    const OperatorResult& found = results.list[std::min(output++, results.list.size() - 1)];
    if (found.place.kind == BatchPlace::Kind::kUnclear) {
      result = mixed_tensor(word, reason);
      continue;
    }
    result = tensor({});
    if (!found.sizes.empty()) {
      result.tensor = state_.add_dense(word, found.sizes);
      check_place(word, result.tensor, found.place);
    }
    result.expected = found.place;
  }
}

// An argument of a call. A tensor passed by its name gets the name, and counts as used from now on.
Value GraphReader::used(Index at) {
  Value value = evaluate(at);
  const Expression& expression = syntax_.expression(at);
  if (value.kind != Value::Kind::kTensor) return value;
  const Expression* inner = &expression;
  while (inner->form != Form::kName && inner->children.size() == 1) inner = &syntax_.expression(inner->children[0]);
  if (inner->form == Form::kName)
    if (const auto found = values_.find(inner->name); found != values_.end()) found->second.reused = false;
  value.reused = value.reused && expression.form == Form::kName;
  if (expression.form == Form::kName) value.name = expression.name;
  return value;
}

// An operator accesses its arguments within their sizes. Of its results, only asserted facts are known.
void GraphReader::call_outside(const Expression& call) {
  bool sized = false;  // an argument depends on a size
  for (const Index child : call.children) {
    const Value value = used(child);
    const bool tensor = value.kind == Value::Kind::kTensor && value.tensor.storage >= 0;
    sized = sized || (tensor && state_.storage(value.tensor.storage).mixed >= 0);
    sized = sized || (value.kind == Value::Kind::kInteger && state_.bounds()->sized(value.integer));
  }
  if (sized)
    for (const Index child : call.children)
      if (const Value value = used(child); value.kind == Value::Kind::kTensor && value.tensor.storage >= 0)
        state_.mix(value.tensor.storage, 0);
  std::vector<Index> open(call.children.begin(), call.children.end());
  while (!open.empty()) {
    const Expression& part = syntax_.expression(open.back());
    open.pop_back();
    if (part.form == Form::kUnary && part.text == "&" && syntax_.expression(part.children[0]).form == Form::kName) {
      const Expression& name = syntax_.expression(part.children[0]);
      const auto known = values_.find(name.name);
      if (known != values_.end() && known->second.kind == Value::Kind::kTensor && known->second.tensor.shaped) continue;
      View view;
      view.storage = state_.add_storage(name.text, {Polynomial::unknown()}, {Polynomial::unknown()});
      if (sized) state_.mix(view.storage, 0);
      Value result = tensor(std::move(view));
      result.expected = BatchPlace{};
      values_[name.name] = std::move(result);
    } else {
      open.insert(open.end(), part.children.begin(), part.children.end());
    }
  }
}

int GraphReader::storage_of(const View& view) {
  if (!state_.bounds() || view.storage < 0 || !view.shaped) return view.storage;
  if (state_.storage(view.storage).elements.known()) return view.storage;
  return state_.add_storage(state_.storage(view.storage).name, view.sizes, view.strides);
}

void GraphReader::run_operator(const Statement& statement, std::string_view name, const Expression& call) {
  std::vector<Value> values;
  std::vector<OperatorArgument> arguments;
  for (const Index child : call.children) values.push_back(used(child));
  for (const Value& value : values) {
    if (!understood(value)) return fail(statement.text);
    OperatorArgument argument;
    if (value.kind == Value::Kind::kTensor) argument.tensor = &value.tensor;
    if (value.kind == Value::Kind::kInteger && value.integer.known() && value.integer.terms().size() <= 1 &&
        (value.integer.terms().empty() || value.integer.terms()[0].atoms.empty()))
      argument.integer = value.integer.terms().empty() ? 0 : value.integer.terms()[0].factor;
    if (value.kind == Value::Kind::kList)
      for (const Value& each : value.list)
        if (each.kind == Value::Kind::kInteger)
          argument.list.push_back(each.integer.terms().empty() ? 0 : each.integer.terms()[0].factor);
    argument.output =
        value.kind == Value::Kind::kAddress && value.name >= 0 && syntax_.word(value.name).ends_with("_handle");
    arguments.push_back(std::move(argument));
  }
  state_.set_place("operator " + std::string(name) +
                   (statement.origin.empty() ? "" : " of " + std::string(statement.origin)));
  const OperatorResults results = operator_rows(name, arguments, state_);
  if (!results.known) return fail(statement.text);
  bind_results(values, name, results);
}

void GraphReader::run_kernel(const Statement& statement, const Expression& call) {
  std::vector<KernelArgument> arguments;
  for (const Index child : call.children) {
    const Value value = used(child);
    KernelArgument argument;
    if (value.kind == Value::Kind::kTensor) {
      argument.storage = storage_of(value.tensor);
      argument.integer = value.tensor.offset;
      if (argument.storage < 0) return fail(statement.text);
    } else if (value.kind == Value::Kind::kInteger) {
      argument.is_integer = true;
      argument.integer = value.integer;
    } else if (state_.bounds() && value.kind == Value::Kind::kOther) {
      argument.is_integer = true;
      argument.integer = Polynomial::of(state_.atoms().any(kSized));
    } else if (value.kind != Value::Kind::kLiteral) {
      return fail(statement.text);
    }
    arguments.push_back(std::move(argument));
  }
  state_.set_place("kernel " + std::string(call.text));
  const std::string problem = kernels_.run(call.text, arguments, state_, steps_);
  if (!problem.empty()) problem_ = "kernel " + std::string(call.text) + " has a statement without a rule: " + problem;
}

void GraphReader::call(const Statement& statement) {
  const Expression* call = &syntax_.expression(statement.first);
  if (state_.bounds() && call->form == Form::kName && call->text == "break") return;
  if (call->form == Form::kMethod && (call->text == "reset" || call->text == "clear")) return;
  if (call->form != Form::kCall) return fail(statement.text);
  if (call->text == "AOTI_TORCH_ERROR_CODE_CHECK" && call->children.size() == 1) {
    call = &syntax_.expression(call->children[0]);
    if (call->form != Form::kCall) return fail(statement.text);
  }
  std::string_view name = call->text;
  if (name == "__check_inputs_outputs" || name == "assert_alignment" || name == "RECORD_FUNCTION") return;
  if (name == "assert_size_stride") return assert_shape(*call);
  if (kernels_.has(name)) return run_kernel(statement, *call);
  if (state_.bounds() && name != "aoti_torch_empty_strided" && name != "aoti_torch_assign_tensors_out" &&
      name != "aoti_torch_new_tensor_handle")
    return call_outside(*call);
  if (!skip(name, "aoti_torch_")) return fail(statement.text);
  if (name == "empty_strided") return empty_strided(*call);
  if ((name == "assign_tensors_out" || name == "new_tensor_handle") && call->children.size() == 2) {
    Value from = evaluate(call->children[0]);
    const Value to = evaluate(call->children[1]);
    if (from.kind != Value::Kind::kTensor || to.name < 0) return fail(statement.text);
    values_[to.name] = std::move(from);
    return;
  }
  skip(name, "cpu_");
  run_operator(statement, name, *call);
}

void GraphReader::execute(Index at) {
  if (!problem_.empty()) return;
  const Statement& statement = syntax_.statement(at);
  switch (statement.deed) {
    case Deed::kDeclare:
      return declare(statement);
    case Deed::kValue:
      return call(statement);
    case Deed::kBlock:
      for (const Index child : statement.children) execute(child);
      return;
    case Deed::kIf: {
      const Expression& condition = syntax_.expression(statement.first);
      if (AccessBounds* const bounds = state_.bounds()) {
        const bool depends = bounds->depends(), guarded = bounds->guarded();
        bounds->set_depends(true);
        bounds->set_guarded(true);
        for (const Index child : statement.children) execute(child);
        bounds->set_depends(depends);
        return bounds->set_guarded(guarded);
      }
      if (condition.form != Form::kCall || condition.text != "_check_aoti_runtime_check_inputs_env" ||
          statement.children.size() != 1)
        return fail(statement.text);
      return execute(statement.children[0]);
    }
    case Deed::kWhile:
      if (!state_.bounds() || statement.children.size() != 1) return fail(statement.text);
      state_.bounds()->set_guarded(true);  // for all following code, because the loop may not end
      return execute(statement.children[0]);
    case Deed::kThrow:
      if (!state_.bounds()) return fail(statement.text);
      return;
    case Deed::kAssign: {
      const Expression& target = syntax_.expression(statement.first);
      Value value = evaluate(statement.second);
      if (state_.bounds() && statement.mark == "=" && target.form == Form::kName)
        return assign(target.name, std::move(value));
      if (statement.mark != "=" || target.form != Form::kElement || value.kind != Value::Kind::kTensor)
        return fail(statement.text);
      if (syntax_.expression(target.children[0]).text != "output_handles") return fail(statement.text);
      const Value index = evaluate(target.children[1]);
      for (size_t i = 0; i < outputs_.size(); ++i)
        if (index.kind == Value::Kind::kInteger && index.integer.is(static_cast<int64_t>(i)))
          outputs_[i] = value.tensor;
      return;
    }
    default:
      return fail(statement.text);
  }
}

// A result of one branch of a condition, or of a loop's body: another branch may have another size.
void GraphReader::assign(Name name, Value value) {
  Value& target = values_[name];
  if (target.kind == Value::Kind::kTensor && value.kind == Value::Kind::kTensor && target.tensor.storage >= 0 &&
      value.tensor.storage >= 0 &&
      state_.storage(target.tensor.storage).elements != state_.storage(value.tensor.storage).elements) {
    value.tensor = {};
    value.tensor.storage = state_.add_mixed(syntax_.word(name), "it has several sizes");
  }
  target = std::move(value);
}

std::string GraphReader::judge() {
  for (const int storage : read_only_)
    if (const int reason = state_.storage(storage).mixed; reason >= 0) return state_.reason_text(reason);
  if (std::none_of(outputs_.begin(), outputs_.end(), [](const auto& output) { return output.has_value(); }))
    return "it has no outputs";
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (spec_.outputs[i].none) continue;
    const std::string name = "output " + std::to_string(i);
    if (!outputs_[i]) return name + " is not set in its source";
    if (outputs_[i]->storage < 0) return name + " has a shape that its source does not tell";
    if (const int reason = state_.storage(outputs_[i]->storage).mixed; reason >= 0) return state_.reason_text(reason);
    const BatchPlace place = state_.place_of(*outputs_[i]);
    if (place.kind != BatchPlace::Kind::kDimension || place.dimension != 0 || !place.inner.is(1) || !place.outer.is(1))
      return name + " does not have a row for each of the inputs";
  }
  return {};
}

std::string GraphReader::read() {
  const std::vector<Index>& statements = code_.statements();
  if (!code_.has_body()) return "its source has no body of run_impl";
  for (size_t i = 0; i < statements.size(); ++i) {
    execute(statements[i]);
    if (!problem_.empty()) return problem_;
    if (i + 1 < statements.size() && !state_.bounds()) reuse(statements[i], statements[i + 1]);
  }
  if (!code_.problem().empty()) return not_understood(code_.problem());
  if (state_.bounds()) return state_.bounds()->problem();
  return judge();
}

}  // namespace graph

std::string why_not_independent(ParsedCode& code, std::string_view batch, const ModelSpec& spec) {
  return graph::GraphReader(code, batch, spec).read();
}

Accesses look_at_accesses(ParsedCode& code, const LeastSizes& least, const ModelSpec& spec, LookAt look) {
  graph::GraphReader reader(code, least, spec, look);
  Accesses result{.problem = reader.read(), .open = {}};
  result.leave = reader.leaves();
  if (look == LookAt::kAllSizes) result.open = reader.open();
  return result;
}

}  // namespace sconce::rows
