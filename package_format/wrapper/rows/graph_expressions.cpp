#include <algorithm>

#include "package_format/text/source_text.h"
#include "package_format/wrapper/accesses/access_expressions.h"
#include "package_format/wrapper/rows/graph_reader.h"

namespace sconce::rows::graph {

Value literal() {
  Value value;
  value.kind = Value::Kind::kLiteral;
  return value;
}

bool understood(const Value& value) {
  if (value.kind == Value::Kind::kList)
    return std::all_of(value.list.begin(), value.list.end(),
                       [](const Value& each) { return each.kind != Value::Kind::kTensor && understood(each); });
  return value.kind != Value::Kind::kOther && value.kind != Value::Kind::kInputs &&
         value.kind != Value::Kind::kConstants;
}

Value tensor(View view) {
  Value value;
  value.kind = Value::Kind::kTensor;
  value.tensor = std::move(view);
  return value;
}

Value integer(Polynomial number) {
  Value value;
  value.kind = Value::Kind::kInteger;
  value.integer = std::move(number);
  return value;
}

// "s77", "2*s17", "8"
Polynomial GraphReader::size_named(std::string_view text) {
  const Index at = syntax_.integer(text);
  if (at == kNothing) return Polynomial::of(state_.atoms().size(kStray));
  const Value value = evaluate(at);
  return value.kind == Value::Kind::kInteger ? value.integer : Polynomial::of(state_.atoms().size(kStray));
}

void GraphReader::read_sizes(const LeastSizes& least, LookAt look) {
  Atoms& atoms = state_.atoms();
  for (const auto& [name, smallest] : least) {
    const uint8_t bits = smallest < 2 || look == LookAt::kAllSizes ? kSized : kFixed;
    const Polynomial symbol = Polynomial::of(smallest == 0 ? atoms.size_or_zero(bits) : atoms.size(bits));
    symbols_.emplace(name, symbol);
    if (smallest > 1) state_.bounds()->assume(symbol - Polynomial(smallest));
  }
}

std::vector<AccessBound> GraphReader::open() {
  return open_bounds(*state_.bounds(), state_.atoms(), [&](Atom atom) {
    const auto at = std::find_if(symbols_.begin(), symbols_.end(),
                                 [&](const auto& symbol) { return symbol.second == Polynomial::of(atom); });
    return at == symbols_.end() ? std::string() : std::string(at->first);
  });
}

void GraphReader::read_inputs(std::string_view batch) {
  const bool simple = std::all_of(batch.begin(), batch.end(), is_word);
  if (simple && !batch.empty()) symbols_.emplace(batch, Polynomial::of(state_.batch()));
  for (std::string_view rest = batch; !simple && !rest.empty();) {
    const std::string_view word = skip_word(rest);
    if (!word.empty()) symbols_.emplace(word, Polynomial::of(state_.atoms().size(kStray)));
    if (word.empty()) rest.remove_prefix(1);
  }
  for (const TensorSpec& input : spec_.inputs) {
    View view;
    view.shaped = true;
    Polynomial dense(1);
    view.strides.resize(input.dims.size());
    for (size_t d = 0; d < input.dims.size(); ++d)
      view.sizes.push_back(d == 0 && !state_.bounds()  ? Polynomial::of(state_.batch())
                           : input.dims[d].is_static() ? Polynomial(input.dims[d].min)
                                                       : size_named(input.dims[d].symbol));
    for (size_t d = input.dims.size(); d-- > 0;) {
      const bool recorded = d < input.strides.size() && input.strides[d];
      view.strides[d] = recorded ? Polynomial(*input.strides[d]) : dense;
      if (!recorded || d > 0) dense = view.strides[d] * view.sizes[d];
    }
    view.storage = state_.add_storage(input.name, view.sizes, view.strides);
    state_.storage(view.storage).read_only = true;
    read_only_.push_back(view.storage);
    inputs_.push_back(std::move(view));
  }
  constants_.resize(spec_.constants.size(), -1);
}

Value GraphReader::tensor_of_constant(int64_t index) {
  if (index < 0 || static_cast<size_t>(index) >= constants_.size()) return {};
  const ConstantSpec& constant = spec_.constants[static_cast<size_t>(index)];
  View view;
  view.shaped = constant.shape.size() == constant.strides.size();
  for (const int64_t size : constant.shape) view.sizes.emplace_back(size);
  for (const int64_t stride : constant.strides) view.strides.emplace_back(stride);
  int& storage = constants_[static_cast<size_t>(index)];
  if (storage < 0) {
    storage = state_.add_storage(constant.name, state_.bounds() ? view.sizes : std::vector<Polynomial>(),
                                 state_.bounds() ? view.strides : std::vector<Polynomial>());
    state_.storage(storage).constant = true;
    state_.storage(storage).read_only = true;
    read_only_.push_back(storage);
  }
  view.storage = storage;
  return tensor(std::move(view));
}

std::vector<Polynomial> GraphReader::integers(const Value& list) const {
  std::vector<Polynomial> result;
  for (const Value& each : list.list)
    result.push_back(each.kind == Value::Kind::kInteger ? each.integer : Polynomial::unknown());
  return result;
}

Value GraphReader::mixed_tensor(std::string_view name, int reason) {
  View view;
  view.storage = state_.add_mixed(name, "");
  state_.storage(view.storage).mixed = reason;
  return tensor(std::move(view));
}

// reinterpret_tensor_wrapper(tensor, rank, sizes, strides, offset)
Value GraphReader::view_of(const Expression& call) {
  if (call.children.size() != 5) return {};
  Value base = evaluate(call.children[0]);
  const Value sizes = evaluate(call.children[2]), strides = evaluate(call.children[3]);
  const Value offset = evaluate(call.children[4]);
  if (base.kind != Value::Kind::kTensor || sizes.kind != Value::Kind::kList || strides.kind != Value::Kind::kList)
    return {};
  View view{.storage = base.tensor.storage,
            .shaped = true,
            .sizes = integers(sizes),
            .strides = integers(strides),
            .offset = {}};
  view.offset = offset.kind == Value::Kind::kInteger ? offset.integer : Polynomial::unknown();
  if (view.sizes.size() != view.strides.size()) return {};
  if (state_.bounds() && view.storage >= 0) {
    Storage& storage = state_.storage(view.storage);
    if (!storage.elements.known() && view.offset.is(0)) {
      // The result of an operator: it was checked when the view was made.
      const int mixed = storage.mixed;
      view.storage = state_.add_storage(storage.name, view.sizes, view.strides);
      state_.storage(view.storage).mixed = mixed;
    } else {
      AccessBounds& bounds = *state_.bounds();
      const size_t mark = bounds.mark();
      Polynomial last = view.offset;
      for (size_t d = 0; d < view.sizes.size(); ++d) {
        last = last + (view.sizes[d] - Polynomial(1)) * view.strides[d];
        bounds.assume(view.sizes[d] - Polynomial(1));
      }
      bounds.access("a view of '" + std::string(storage.name) + "'", last, storage.elements);
      bounds.access("a view of '" + std::string(storage.name) + "'", view.offset, storage.elements);
      bounds.leave(mark);
    }
  }
  return tensor(std::move(view));
}

Value GraphReader::evaluate_call(const Expression& call) {
  const std::string_view function = call.text;
  if (function == "reinterpret_tensor_wrapper") return view_of(call);
  if (function == "array" || function == "vector" || function == "initializer_list") {
    Value list;
    list.kind = Value::Kind::kList;
    for (const Index child : call.children) list.list.push_back(evaluate(child));
    return list;
  }
  if (function == "scalar_to_tensor_handle" && call.children.size() == 1) {
    const Value value = evaluate(call.children[0]);
    View view;
    view.shaped = true;
    view.storage = state_.add_storage("a number", {}, {});
    if (value.kind != Value::Kind::kInteger || !state_.of_number(value.integer).free())
      state_.mix(view.storage, state_.reason("an output is a number, not a row for each of the batch"));
    return tensor(std::move(view));
  }
  if (call.qualifier.starts_with("std::numeric_limits")) return literal();
  if (function == "steal_from_raw_handles_to_raii_handles") {
    Value inputs;
    inputs.kind = Value::Kind::kInputs;
    return inputs;
  }
  static constexpr std::string_view kSame[] = {"wrap_with_raii_handle_if_needed",
                                               "move",
                                               "RAIIAtenTensorHandle",
                                               "static_cast",
                                               "temporary_reference",
                                               "int64_t",
                                               "ConstantHandle",
                                               "convert_handle_to_arrayref_tensor",
                                               "borrow_arrayref_tensor_as_tensor",
                                               "copy_arrayref_tensor_to_tensor",
                                               "copy_arrayref_tensor_if_needed"};
  if (call.children.size() == 1 && std::find(std::begin(kSame), std::end(kSame), function) != std::end(kSame))
    return evaluate(call.children[0]);
  if ((function == "div_floor_integer" || function == "max") && call.children.size() == 2) {
    const Value value = evaluate(call.children[0]), by = evaluate(call.children[1]);
    if (value.kind == Value::Kind::kInteger && by.kind == Value::Kind::kInteger)
      return integer(function == "max" ? state_.atoms().larger(value.integer, by.integer)
                                       : state_.atoms().quotient(value.integer, by.integer));
  }
  return {};
}

Value GraphReader::method(const Expression& expression) {
  const std::string_view member = expression.text;
  Value object = evaluate(expression.children[0]);
  if (member == "at" && object.kind == Value::Kind::kConstants && expression.children.size() == 2) {
    const Value index = evaluate(expression.children[1]);
    for (int64_t i = 0; i < static_cast<int64_t>(constants_.size()); ++i)
      if (index.kind == Value::Kind::kInteger && index.integer.is(i)) return tensor_of_constant(i);
    return {};
  }
  if ((member == "sizes" || member == "strides") && object.kind == Value::Kind::kTensor) {
    Value list;
    list.kind = Value::Kind::kList;
    for (const Polynomial& size : member == "sizes" ? object.tensor.sizes : object.tensor.strides)
      list.list.push_back(integer(size));
    return list;
  }
  if (member == "get" || member == "data" || member == "release" || member == "data_ptr") return object;
  return {};
}

Value GraphReader::element(const Expression& expression) {
  const Value base = evaluate(expression.children[0]), index = evaluate(expression.children[1]);
  if (index.kind != Value::Kind::kInteger) return {};
  if (base.kind == Value::Kind::kInputs)
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (index.integer.is(static_cast<int64_t>(i))) return tensor(inputs_[i]);
  if (base.kind == Value::Kind::kList)
    for (size_t i = 0; i < base.list.size(); ++i)
      if (index.integer.is(static_cast<int64_t>(i))) return base.list[i];
  return {};
}

Value GraphReader::binary(const Expression& expression) {
  const Value left = evaluate(expression.children[0]), right = evaluate(expression.children[1]);
  if (left.kind != Value::Kind::kInteger || right.kind != Value::Kind::kInteger) return {};
  const std::string_view mark = expression.text;
  if (mark == "+") return integer(left.integer + right.integer);
  if (mark == "-") return integer(left.integer - right.integer);
  if (mark == "*") return integer(left.integer * right.integer);
  if (mark == "/") return integer(state_.atoms().truncated(left.integer, right.integer));
  if (mark == "%") return integer(state_.atoms().remainder(left.integer, right.integer));
  return {};
}

Value GraphReader::evaluate(Index at) {
  if (--steps_ < 0) fail("more than can be looked at");
  if (at == kNothing || !problem_.empty()) return {};
  const Expression& expression = syntax_.expression(at);
  switch (expression.form) {
    case Form::kNumber: {
      std::string_view text = expression.text;
      const std::optional<int64_t> value = skip_integer(text);
      return value && (text.empty() || text == "L") ? integer(*value) : literal();
    }
    case Form::kString:
      return literal();
    case Form::kName: {
      if (const auto found = values_.find(expression.name); found != values_.end()) return found->second;
      if (const auto symbol = symbols_.find(expression.text); symbol != symbols_.end()) return integer(symbol->second);
      Value value;
      static constexpr std::string_view kLiterals[] = {"nullptr", "true", "false", "NAN", "INFINITY"};
      if (std::find(std::begin(kLiterals), std::end(kLiterals), expression.text) != std::end(kLiterals) ||
          expression.text.starts_with("cached_torch_"))
        return literal();
      if (expression.text == "constants_") value.kind = Value::Kind::kConstants;
      // A size that no input has as its own dimension.
      const std::string_view word = expression.text;
      if (word.size() > 1 && word[0] == 's' && word[1] >= '0' && word[1] <= '9')
        return integer(symbols_.emplace(word, Polynomial::of(state_.atoms().size())).first->second);
      return value;
    }
    case Form::kCall:
      return evaluate_call(expression);
    case Form::kMethod:
      return method(expression);
    case Form::kElement:
      return element(expression);
    case Form::kUnary: {
      const Value value = evaluate(expression.children[0]);
      if (expression.text == "-" && value.kind == Value::Kind::kInteger) return integer(Polynomial() - value.integer);
      if (expression.text == "-" && value.kind == Value::Kind::kLiteral) return literal();
      const Expression& operand = syntax_.expression(expression.children[0]);
      if (expression.text == "&" && operand.form == Form::kName) {
        Value address = value;
        if (value.kind != Value::Kind::kTensor && value.kind != Value::Kind::kLiteral)
          address.kind = Value::Kind::kAddress;
        address.name = operand.name;
        return address;
      }
      return expression.text == "&" ? value : Value();
    }
    case Form::kBinary:
      return binary(expression);
    case Form::kList: {
      Value list;
      list.kind = Value::Kind::kList;
      for (const Index child : expression.children) list.list.push_back(evaluate(child));
      return list;
    }
    default:
      return {};
  }
}

}  // namespace sconce::rows::graph
