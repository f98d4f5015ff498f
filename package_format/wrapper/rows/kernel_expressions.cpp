#include <algorithm>

#include "package_format/text/source_text.h"
#include "package_format/wrapper/rows/kernel_functions.h"
#include "package_format/wrapper/rows/kernel_reader.h"

namespace sconce::rows::kernel {

Dependence KernelReader::data_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kInteger:
      return state_.of_number(value.integer);
    case Value::Kind::kLocal:
      return slot(value.local).value.from;
    case Value::Kind::kData:
      return value.from;
    default:
      fail("a pointer as a number");
      return {};
  }
}

// Values that are not known integers become atoms.
Polynomial KernelReader::index_of(const Value& value) {
  if (value.kind == Value::Kind::kInteger) return value.integer;
  return Polynomial::of(state_.data(data_of(value)));
}

// An index: sums and products of integers, and of values of tensors.
Polynomial KernelReader::index(Index at) {
  const Expression& expression = syntax_.expression(at);
  if (!going()) return Polynomial::unknown();
  if (expression.form == Form::kBinary && expression.children.size() == 2) {
    const std::string_view mark = expression.text;
    if (mark == "+" || mark == "-" || mark == "*" || mark == "%" || mark == "/") {
      const Polynomial left = index(expression.children[0]), right = index(expression.children[1]);
      steps_ -= static_cast<int64_t>(left.terms().size() * right.terms().size());
      if (mark == "+") return left + right;
      if (mark == "-") return left - right;
      if (mark == "*") return left * right;
      return mark == "%" ? state_.atoms().remainder(left, right) : state_.atoms().truncated(left, right);
    }
  }
  if (expression.form == Form::kCall && expression.children.size() == 1 && expression.text == "static_cast" &&
      is_integer_type(expression.type))
    return index(expression.children[0]);
  const Value value = evaluate(at);
  if (state_.bounds() && expression.form == Form::kName && value.kind == Value::Kind::kData)
    return variable(expression.name, value);
  return index_of(value);
}

// A check of a variable holds for its copies: "auto tmp1 = tmp0; auto tmp2 = c10::convert<int64_t>(tmp1);"
Polynomial KernelReader::variable(Name name, const Value& value) {
  for (int copies = 0; copies < 8; ++copies) {
    const Index declared = slot(name).declared;
    if (declared == kNothing) break;
    const Expression* from = &syntax_.expression(declared);
    const bool cast = from->form == Form::kCall && from->children.size() == 1 &&
                      (from->text == "convert" || from->text == "static_cast") && from->type == "int64_t";
    if (cast) from = &syntax_.expression(from->children[0]);
    const bool once = from->form == Form::kName && from->text.starts_with("tmp") && !from->text.starts_with("tmp_acc");
    if (!once || !slot(from->name).bound || slot(from->name).array || slot(from->name).value.kind != Value::Kind::kData)
      break;
    name = from->name;
  }
  Slot& variable = slot(name);
  if (!variable.number) variable.number = state_.data(value.from);
  return Polynomial::of(*variable.number);
}

// Adds the facts that follow from the condition, if it holds or if it does not.
bool KernelReader::assume(Index condition, bool holds) {
  if (!going()) return false;
  const Expression& expression = syntax_.expression(condition);
  if (expression.form == Form::kName) {
    const Slot& variable = slot(expression.name);
    return variable.bound && !variable.array && variable.declared != kNothing && assume(variable.declared, holds);
  }
  if (expression.form == Form::kCall && expression.children.size() == 1 &&
      (expression.text.starts_with("C10_") || expression.text == "from" || expression.text == "convert" ||
       expression.text == "static_cast" || expression.text == "bool" || expression.text == "VecMask"))
    return assume(expression.children[0], holds);
  if (expression.form == Form::kMethod && expression.text == "all_masked") return assume(expression.children[0], holds);
  if (expression.form == Form::kUnary && expression.text == "!") return assume(expression.children[0], !holds);
  if (expression.form != Form::kBinary || expression.children.size() != 2) return false;
  const std::string_view mark = expression.text;
  const bool both = mark == "&&" || mark == "&", either = mark == "||" || mark == "|";
  if ((both && holds) || (either && !holds)) {
    bool all = true;
    for (const Index child : expression.children) all = assume(child, holds) && all;
    return all;
  }
  const bool less = mark == "<" || mark == "<=", more = mark == ">" || mark == ">=";
  if (!less && !more && !(mark == "==" && holds)) return false;
  const Polynomial left = index(expression.children[0]), right = index(expression.children[1]);
  AccessBounds& bounds = *state_.bounds();
  const bool known = left.known() && right.known();
  if (mark == "==") {
    bounds.assume(left - right);
    bounds.assume(right - left);
    return known;
  }
  const bool strict = (mark.size() == 1) == holds;
  const Polynomial difference = less == holds ? right - left : left - right;
  bounds.assume(strict ? difference - Polynomial(1) : difference);
  return known;
}

// condition ? a : b
Value KernelReader::choice(const Expression& expression) {
  AccessBounds& bounds = *state_.bounds();
  Dependence all = data_of(evaluate(expression.children[0]));
  const bool depends = bounds.depends(), guarded = bounds.guarded();
  bounds.set_depends(depends || all.row >= 0);
  for (const size_t i : {1, 2}) {
    const size_t mark = bounds.mark();
    bounds.set_guarded(!assume(expression.children[0], i == 1) || guarded);
    all = state_.join(all, data_of(evaluate(expression.children[i])));
    bounds.leave(mark);
  }
  bounds.set_depends(depends);
  bounds.set_guarded(guarded);
  return data(all);
}

// The elements of a vector: the position of the first one, and a SIMD lane's offset from it. In a loop over vectors
// that span rows, the loop's variable represents a lane's position minus the lane.
Polynomial KernelReader::lanes(Polynomial element) {
  if (lane_ >= 0) return element + Polynomial::of(lane_);
  Polynomial factor, rest;
  for (const Atom atom : vectors_)
    if (element.coefficient(atom, factor, rest) && factor.is(1)) return element;  // represents all lanes
  return element + Polynomial::of(state_.atoms().index(kFixed));
}

// A value computed from all SIMD lanes of a vector.
Dependence KernelReader::across_lanes(const Dependence& from) {
  return lane_ >= 0 && from.row >= 0 ? state_.mixed(kMeet) : from;
}

// An array's element belongs to the SIMD lane of the same number.
bool KernelReader::same_lane(const Polynomial& element, bool vector) const {
  return lane_ < 0 || (vector ? element.is(0) : element == Polynomial::of(lane_));
}

Value KernelReader::load(const Value& from, bool vector) {
  if (from.kind == Value::Kind::kPointer)
    return data(state_.load(from.storage, vector ? lanes(from.integer) : from.integer));
  if (from.kind == Value::Kind::kLocal) {
    const std::optional<Dependence> written = elements_.read(from.local, from.integer, open_, state_);
    const Dependence all = written.value_or(slot(from.local).value.from);
    if (!same_lane(from.integer, vector) && all.row >= 0) return data(state_.mixed(kMeet));
    return data(state_.join(all, state_.of_number(from.integer)));
  }
  fail("a load from no pointer");
  return {};
}

void KernelReader::store(const Value& target, const Dependence& value, bool vector) {
  const Dependence all = state_.join(value, control_);
  if (target.kind == Value::Kind::kPointer) {
    state_.store(target.storage, vector ? lanes(target.integer) : target.integer, all);
  } else if (target.kind == Value::Kind::kLocal) {
    Dependence kept = state_.join(all, state_.of_number(target.integer));
    if (lane_ >= 0 && target.integer == Polynomial::of(lane_)) kept = all;
    if (!same_lane(target.integer, vector) && all.row >= 0) kept = state_.mixed(kMeet);
    elements_.write(target.local, target.integer, kept, conditions_ == 0, state_);
    assign(target.local, kept, true);
  } else {
    fail("a store to no pointer");
  }
}

Value KernelReader::name(const Expression& expression) {
  const std::string_view word = expression.text;
  if (word == "true" || word == "false" || word == "nullptr") return {};
  if (word.starts_with("inductor_cpu_integer_div_error")) return {};
  const Slot& at = slot(expression.name);
  if (!at.bound) {
    fail(word);
    return {};
  }
  if (at.array) return {.kind = Value::Kind::kLocal, .from = {}, .integer = {}, .local = expression.name};
  return at.value;
}

Value KernelReader::invoke(const Value& lambda) {
  if (++calls_ > 64) fail("calls within calls");
  const Dependence outer = returned_;
  returned_ = {};
  if (problem_.empty()) execute(lambda.body);
  const Value result = data(returned_);
  returned_ = outer;
  --calls_;
  return result;
}

Value KernelReader::joined(const Expression& expression, size_t from) {
  Dependence all;
  for (size_t i = from; i < expression.children.size() && problem_.empty(); ++i) {
    const Value value = evaluate(expression.children[i]);
    if (value.kind == Value::Kind::kLocal) written_.push_back(value.local);
    if (value.kind != Value::Kind::kLambda) all = state_.join(all, data_of(value));
  }
  for (const Name name : std::exchange(written_, {})) assign(name, all, true);
  return data(all);
}

// A check of an index that comes from values: if the bound is the batch size, values choose rows.
void KernelReader::check(const Expression& expression) {
  if (state_.bounds()) {
    if (!expression.children.empty()) assume(expression.children[0], true);
    return;
  }
  bool placed = false, values = false;
  std::vector<Index> open(expression.children.begin(), expression.children.end());
  while (!open.empty() && going()) {
    const Expression& part = syntax_.expression(open.back());
    open.pop_back();
    open.insert(open.end(), part.children.begin(), part.children.end());
    if (part.form != Form::kName || !slot(part.name).bound) continue;
    const Value& value = slot(part.name).value;
    if (value.kind == Value::Kind::kData) values = values || !value.from.free();
    if (value.kind == Value::Kind::kInteger) placed = placed || (state_.atoms().nature(value.integer) & kPlaced) != 0;
  }
  if (placed && values) fail("values choose rows");
}

// transpose_mxn(from, its stride, to, its stride, ...)
void KernelReader::transpose(const Expression& expression) {
  if (expression.children.size() < 4) return fail(expression.text);
  Value from = evaluate(expression.children[0]), to = evaluate(expression.children[2]);
  const auto widen = [&](Value& value, Index stride) {
    if (value.kind != Value::Kind::kPointer) return;
    if (state_.bounds()) return;  // loops over tiles cover all positions
    value.integer = value.integer + index(stride) * Polynomial::of(state_.atoms().index(kFixed)) +
                    Polynomial::of(state_.atoms().index(kFixed));
  };
  widen(from, expression.children[1]);
  widen(to, expression.children[3]);
  const Dependence value = across_lanes(data_of(load(from, false)));
  store(to, lane_ >= 0 && value.row >= 0 ? state_.mixed(kMeet) : value, false);
}

Value KernelReader::call(const Expression& expression) {
  const std::string_view function = expression.text;
  const auto& arguments = expression.children;
  if (expression.name >= 0 && slot(expression.name).bound && slot(expression.name).value.kind == Value::Kind::kLambda)
    return invoke(slot(expression.name).value);
  if (function == "static_cast" || function == "convert" || function == "int64_t" || function == "int32_t" ||
      function == "Vectorized" || function == "VectorizedN" || function == "float" || function == "double") {
    if (arguments.size() != 1) return joined(expression);
    Value value = evaluate(arguments[0]);
    if (value.kind == Value::Kind::kPointer) return value;
    const std::string_view type =
        expression.type.empty() ? function : expression.type.substr(0, expression.type.find(','));
    if (is_integer_type(type) && value.kind == Value::Kind::kInteger) return value;
    return data(data_of(value));
  }
  if (function == "div_floor_integer" && arguments.size() == 2) {
    const Value value = evaluate(arguments[0]), by = evaluate(arguments[1]);
    if (value.kind == Value::Kind::kInteger && by.kind == Value::Kind::kInteger)
      return number(state_.atoms().quotient(value.integer, by.integer));
    return data(state_.join(data_of(value), data_of(by)));
  }
  if (function == "max" && expression.qualifier == "std::" && arguments.size() == 2) {
    const Value a = evaluate(arguments[0]), b = evaluate(arguments[1]);
    if (a.kind == Value::Kind::kInteger && b.kind == Value::Kind::kInteger)
      return number(state_.atoms().larger(a.integer, b.integer));
    return data(state_.join(data_of(a), data_of(b)));
  }
  if (function == "loadu" || function == "load") {
    if (arguments.empty()) fail(function);
    return arguments.empty() ? Value() : load(evaluate(arguments[0]), true);
  }
  if (function == "from" && !arguments.empty()) {
    const Value first = evaluate(arguments[0]);
    if (first.kind == Value::Kind::kPointer || first.kind == Value::Kind::kLocal) return load(first, true);
    return data(state_.join(data_of(first), joined(expression, 1).from));
  }
  if (function == "arange" && arguments.size() == 2) {
    const Value first = evaluate(arguments[0]), step = evaluate(arguments[1]);
    if (first.kind != Value::Kind::kInteger || step.kind != Value::Kind::kInteger) {
      return data(across_lanes(state_.join(data_of(first), data_of(step))));
    }
    const Atom lane = lane_ >= 0 ? lane_ : state_.atoms().index(kFixed);
    return number(first.integer + step.integer * Polynomial::of(lane));
  }
  if (function == "AOTI_TORCH_CHECK" || function == "TORCH_CHECK") {
    check(expression);
    return {};
  }
  if (function == "transpose_mxn") {
    transpose(expression);
    return {};
  }
  if (function == "inductor_cpu_throw_if_integer_div_error") return {};
  if (is_random(function)) return data(state_.mixed("it draws random numbers"));
  if (!is_pure(expression.qualifier, function)) {
    fail(function);
    return {};
  }
  const Value all = joined(expression);
  return crosses_lanes(function) ? data(across_lanes(all.from)) : all;
}

Value KernelReader::method(const Expression& expression) {
  const std::string_view function = expression.text;
  const Value object = evaluate(expression.children[0]);
  if (function == "store" && expression.children.size() >= 2) {
    store(evaluate(expression.children[1]), data_of(object), true);
    return {};
  }
  if ((function == "data" || function == "get") && object.kind == Value::Kind::kLocal) return object;
  if (function == "loadu" && expression.children.size() >= 2) {
    const Value loaded = load(evaluate(expression.children[1]), true);
    return data(state_.join(loaded.from, data_of(object)));
  }
  if (!is_pure_method(function)) {
    fail(function);
    return {};
  }
  const Dependence all = state_.join(data_of(object), joined(expression, 1).from);
  return data(crosses_lanes(function) ? across_lanes(all) : all);
}

Value KernelReader::element(const Expression& expression) {
  Value base = evaluate(expression.children[0]);
  const Polynomial at = index(expression.children[1]);
  if (base.kind == Value::Kind::kPointer || base.kind == Value::Kind::kLocal) {
    base.integer = base.integer + at;
    return load(base, false);
  }
  // A SIMD lane of a vector.
  const Dependence from = data_of(base);
  if (lane_ >= 0 && from.row >= 0 && at != Polynomial::of(lane_)) return data(state_.mixed(kMeet));
  return data(from);
}

Value KernelReader::unary(const Expression& expression) {
  const Index operand = expression.children[0];
  if (expression.text == "&") {
    // The function may write it.
    const Expression& target = syntax_.expression(operand);
    const Value value = evaluate(operand);
    if (target.form == Form::kName && value.kind == Value::Kind::kData && slot(target.name).bound)
      written_.push_back(target.name);
    return data(data_of(value));
  }
  const Value value = evaluate(operand);
  if (expression.text == "*") fail(expression.text);
  if (expression.text == "-" && value.kind == Value::Kind::kInteger) return number(Polynomial() - value.integer);
  return data(data_of(value));
}

Value KernelReader::binary(const Expression& expression) {
  Value left = evaluate(expression.children[0]), right = evaluate(expression.children[1]);
  const std::string_view mark = expression.text;
  if (mark == "+" && (left.kind == Value::Kind::kPointer || left.kind == Value::Kind::kLocal)) {
    left.integer = left.integer + index(expression.children[1]);
    return left;
  }
  if (left.kind == Value::Kind::kInteger && right.kind == Value::Kind::kInteger) {
    steps_ -= static_cast<int64_t>(left.integer.terms().size() * right.integer.terms().size());
    if (mark == "+") return number(left.integer + right.integer);
    if (mark == "-") return number(left.integer - right.integer);
    if (mark == "*") return number(left.integer * right.integer);
    if (mark == "%") return number(state_.atoms().remainder(left.integer, right.integer));
    if (mark == "/") return number(state_.atoms().truncated(left.integer, right.integer));
  }
  return data(state_.join(data_of(left), data_of(right)));
}

Value KernelReader::evaluate(Index at) {
  if (!going()) return {};
  const Expression& expression = syntax_.expression(at);
  switch (expression.form) {
    case Form::kNumber: {
      std::string_view text = expression.text;
      const std::optional<int64_t> value = skip_integer(text);
      return value && (text.empty() || text == "L" || text == "LL" || text == "UL") ? number(*value) : Value();
    }
    case Form::kString:
      return {};
    case Form::kName:
      return name(expression);
    case Form::kCall:
      return call(expression);
    case Form::kInvoke: {
      const Value callee = evaluate(expression.children[0]);
      if (callee.kind != Value::Kind::kLambda || expression.children.size() > 1) {
        fail(expression.text);
        return {};
      }
      return invoke(callee);
    }
    case Form::kMethod:
      return method(expression);
    case Form::kElement:
      return element(expression);
    case Form::kUnary:
      return unary(expression);
    case Form::kBinary:
      return binary(expression);
    case Form::kLambda:
      return {.kind = Value::Kind::kLambda, .from = {}, .integer = {}, .body = expression.children[0]};
    case Form::kChoice:
      if (state_.bounds() && expression.children.size() == 3) return choice(expression);
      return joined(expression);
    case Form::kList:
      return joined(expression);
  }
  return {};
}

}  // namespace sconce::rows::kernel
