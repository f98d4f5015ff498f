#include "package_format/wrapper/rows/kernel_rows.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "package_format/wrapper/rows/kernel_reader.h"

namespace sconce::rows {
namespace kernel {

void KernelReader::assign(Name name, const Dependence& value, bool keep) {
  Slot& target = slot(name);
  Dependence all = state_.join(value, control_);
  const Dependence before =
      target.value.kind == Value::Kind::kInteger ? state_.of_number(target.value.integer) : target.value.from;
  if (keep || branches_ > 0) all = state_.join(before, all);
  assigned_.push_back({name, before});
  target.value = data(all);
  target.declared = kNothing;
  target.number.reset();
}

void KernelReader::assign(const Statement& statement) {
  const Expression& target = syntax_.expression(statement.first);
  const bool keep = statement.mark != "=";
  if (target.form == Form::kName && !(slot(target.name).bound && slot(target.name).array)) {
    if (target.text.starts_with("inductor_cpu_integer_div_error")) return;
    const Dependence value = data_of(evaluate(statement.second));
    if (!slot(target.name).bound) return fail(statement.text);
    return assign(target.name, value, keep);
  }
  if (target.form != Form::kElement) return fail(target.text);
  Value place = evaluate(target.children[0]);
  place.integer = place.integer + index(target.children[1]);
  Dependence value = data_of(evaluate(statement.second));
  if (keep) value = state_.join(value, data_of(load(place, false)));
  store(place, value, false);
}

void KernelReader::declare(const Statement& statement) {
  Slot fresh{.value = {}, .bound = true, .array = statement.array};
  if (statement.first != kNothing) {
    const Expression& value = syntax_.expression(statement.first);
    if (value.form == Form::kCall && value.text == "make_unique") {
      fresh.array = true;
    } else {
      fresh.value = evaluate(statement.first);
      fresh.declared = statement.first;
      if (statement.array) fresh.value = data(data_of(fresh.value));
      if (fresh.value.kind == Value::Kind::kData) fresh.value.from = state_.join(fresh.value.from, control_);
    }
  }
  undo_.push_back({statement.name, slot(statement.name)});
  slot(statement.name) = fresh;
  elements_.forget(statement.name);
}

void KernelReader::leave_scope(size_t mark, size_t assigned) {
  std::unordered_set<Name> left;
  while (undo_.size() > mark) {
    left.insert(undo_.back().name);
    slot(undo_.back().name) = undo_.back().before;
    undo_.pop_back();
  }
  const auto inner = assigned_.begin() + static_cast<std::ptrdiff_t>(assigned);
  assigned_.erase(
      std::remove_if(inner, assigned_.end(), [&](const Assigned& each) { return left.contains(each.name); }),
      assigned_.end());
}

void KernelReader::branch(const Statement& statement) {
  const Expression& condition = syntax_.expression(statement.first);
  const Dependence outer = control_;
  // A loop's main part and its remainder; for an empty mask, the result is that of the mask.
  const bool tile = condition.form == Form::kCall && condition.text.starts_with("C10_");
  const bool shortcut = condition.form == Form::kMethod && condition.text == "all_zero";
  if (!tile && !shortcut) control_ = state_.join(control_, data_of(evaluate(statement.first)));
  ++branches_;
  conditions_ += tile ? 0 : 1;
  AccessBounds* const bounds = state_.bounds();
  const bool depends = bounds && bounds->depends(), guarded = bounds && bounds->guarded();
  if (bounds && !tile && !shortcut) bounds->set_depends(depends || control_.row >= 0);
  for (size_t i = 0; i < statement.children.size(); ++i) {
    const size_t mark = bounds ? bounds->mark() : 0;
    if (bounds) bounds->set_guarded(!assume(statement.first, i == 0) || guarded);
    execute(statement.children[i]);
    if (bounds) bounds->leave(mark);
  }
  if (bounds) {
    bounds->set_depends(depends);
    bounds->set_guarded(guarded);
  }
  --branches_;
  conditions_ -= tile ? 0 : 1;
  control_ = outer;
}

// Evaluates the body until its results no longer change.
void KernelReader::run_body(const Statement& loop, Atom row) {
  const WrittenElements before = row >= 0 ? WrittenElements() : elements_;
  for (int pass = 0; pass < 6 && problem_.empty(); ++pass) {
    elements_ = before;
    const size_t first = assigned_.size();
    const int mixes = state_.mixes();
    execute(loop.children[0]);
    bool changed = state_.mixes() != mixes;
    std::unordered_map<Name, Dependence> earliest;  // values of variables before the body
    for (size_t i = assigned_.size(); i-- > first;) {
      const Assigned each = assigned_[i];
      Dependence& now = slot(each.name).value.from;
      now = state_.join(each.before, now);
      if (now.row >= 0 && now.row == row) now = state_.mixed(kMeet);
      earliest[each.name] = each.before;
    }
    for (const auto& [name, before_body] : earliest) changed = changed || !(slot(name).value.from == before_body);
    if (!changed) return;
  }
  fail("a loop that carries too much");
}

void KernelReader::loop(const Statement& statement) {
  const Value from = evaluate(statement.first), bound = evaluate(statement.second), step = evaluate(statement.third);
  if (!problem_.empty()) return;
  Atoms& atoms = state_.atoms();
  const auto fixed = [&](const Value& value) {
    return value.kind == Value::Kind::kInteger && (atoms.nature(value.integer) & (kPlaced | kData)) == 0;
  };
  const std::string_view word = syntax_.word(statement.name);
  const Atom outer_lane = lane_;
  const Name outer_loop = lane_loop_;
  const Dependence outer_control = control_;
  const size_t vectors = vectors_.size(), open = open_.size();
  AccessBounds* const bounds = state_.bounds();
  const bool depends = bounds && bounds->depends(), guarded = bounds && bounds->guarded();
  const size_t facts = bounds ? bounds->mark() : 0;
  const bool vector = step.kind != Value::Kind::kInteger || !step.integer.is(1);
  std::optional<Polynomial> inner;
  if (fixed(from) && from.integer.is(0) && bound.kind == Value::Kind::kInteger) inner = state_.per_row(bound.integer);
  Atom row = -1;
  Polynomial place;
  // A vector's variable already represents the positions of all SIMD lanes.
  const bool lanes_of_vector =
      bounds && word.ends_with("_inner") && std::any_of(vectors_.begin(), vectors_.end(), [&](Atom atom) {
        return vector_names_[atom] == word.substr(0, word.size() - 6);
      });
  if (lanes_of_vector) {
    place = Polynomial();
  } else if (lane_ >= 0 && word.ends_with("_inner") && word.substr(0, word.size() - 6) == syntax_.word(lane_loop_)) {
    place = Polynomial::of(lane_);
  } else if (fixed(from) && fixed(bound)) {
    const Polynomial last = bound.integer - from.integer - Polynomial(1);
    const Atom atom = atoms.loop(atoms.nature(last) & kSized, last);
    place = from.integer + Polynomial::of(atom);
    if (bounds) {
      bounds->assume(last - Polynomial::of(atom));
      bounds->set_depends(depends || bounds->sized(from.integer) || !atoms.grows(last));
    }
    open_.push_back(atom);
    if (vector) vectors_.push_back(atom);
    if (vector && bounds) vector_names_[atom] = word;
  } else if (inner && !(vector && lane_ >= 0)) {
    row = atoms.index(kRow, Polynomial::of(state_.batch()) - Polynomial(1));
    open_.push_back(row);
    place = Polynomial::of(row);
    Polynomial places, left;
    if (!inner->is(1) && places_inner_ && inner->split(*places_inner_, places, left) && left.is(0) && !places.is(1)) {
      open_.push_back(atoms.index(kFixed, places - Polynomial(1)));
      const Polynomial outer = Polynomial::of(open_.back()) * Polynomial::of(state_.batch());
      place = (outer + place) * *places_inner_;
      if (!places_inner_->is(1)) {
        open_.push_back(atoms.index(kFixed, *places_inner_ - Polynomial(1)));
        place = place + Polynomial::of(open_.back());
      }
      inner = *places_inner_;
    } else if (!inner->is(1)) {
      open_.push_back(atoms.index(kFixed, *inner - Polynomial(1)));
      place = place * *inner + Polynomial::of(open_.back());
    }
    // Vectors that divide a row do not span rows.
    Polynomial vectors_in_row, rest;
    const bool within =
        vector && step.kind == Value::Kind::kInteger && inner->split(step.integer, vectors_in_row, rest) && rest.is(0);
    if (within) {
      vectors_.push_back(open_.back());
    } else if (vector) {
      lane_ = atoms.index(kLane);
      lane_loop_ = statement.name;
      place = place - Polynomial::of(lane_);
    }
  } else {
    place = Polynomial::of(atoms.index(kStray));
    for (const Value* value : {&from, &bound}) control_ = state_.join(control_, data_of(*value));
    if (bounds) {
      bounds->set_depends(true);
      bounds->set_guarded(true);
    }
  }
  const size_t mark = undo_.size(), assigned = assigned_.size();
  undo_.push_back({statement.name, slot(statement.name)});
  slot(statement.name) = {.value = number(place), .bound = true};
  run_body(statement, row);
  leave_scope(mark, assigned);
  lane_ = outer_lane;
  lane_loop_ = outer_loop;
  control_ = outer_control;
  vectors_.resize(vectors);
  open_.resize(open);
  if (bounds) {
    bounds->leave(facts);
    bounds->set_depends(depends);
    bounds->set_guarded(guarded);
  }
}

void KernelReader::execute(Index at) {
  if (at == kNothing || !going()) return;
  const Statement& statement = syntax_.statement(at);
  switch (statement.deed) {
    case Deed::kBlock: {
      const size_t mark = undo_.size(), assigned = assigned_.size();
      AccessBounds* const bounds = state_.bounds();
      const size_t facts = bounds ? bounds->mark() : 0;
      for (const Index child : statement.children) execute(child);
      if (bounds) bounds->leave(facts);
      return leave_scope(mark, assigned);
    }
    case Deed::kFor:
      return loop(statement);
    case Deed::kIf:
      return branch(statement);
    case Deed::kDeclare:
      return declare(statement);
    case Deed::kAssign:
      return assign(statement);
    case Deed::kReturn:
      if (statement.first != kNothing)
        returned_ = state_.join(returned_, state_.join(control_, data_of(evaluate(statement.first))));
      return;
    case Deed::kValue:
      evaluate(statement.first);
      return;
    case Deed::kWhile:
    case Deed::kThrow:
      return fail(statement.text);
  }
}

}  // namespace kernel

namespace {

std::string run_once(const Syntax& syntax, const std::vector<Parameter>& parameters, Index body,
                     const std::vector<KernelArgument>& arguments, RowState& state, int64_t& steps,
                     std::optional<Polynomial> places_inner) {
  kernel::KernelReader reader(syntax, state, steps, std::move(places_inner));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    kernel::Value value = kernel::data(argument.from);
    if (argument.storage >= 0)
      value = {
          .kind = kernel::Value::Kind::kPointer, .from = {}, .integer = argument.integer, .storage = argument.storage};
    else if (argument.is_integer)
      value = kernel::number(argument.integer);
    reader.bind(parameters[i].name, std::move(value));
  }
  return reader.run(body);
}

}  // namespace

std::string run_kernel(const Syntax& syntax, const std::vector<Parameter>& parameters, Index body,
                       const std::vector<KernelArgument>& arguments, RowState& state, int64_t& steps) {
  if (parameters.size() != arguments.size()) return "a call with another number of arguments";
  // The meaning of a single loop over positions and rows depends on which of them are outermost in the tensors.
  std::vector<std::optional<Polynomial>> meanings{std::nullopt};
  for (const KernelArgument& argument : arguments) {
    if (argument.storage < 0 || !state.storage(argument.storage).outer) continue;
    for (const Polynomial& inner : {Polynomial(1), state.storage(argument.storage).stride})
      if (meanings.size() < 4 && std::find(meanings.begin(), meanings.end(), inner) == meanings.end())
        meanings.emplace_back(inner);
  }
  // Kernels write these before they read them.
  for (size_t i = 0; i < parameters.size(); ++i)
    if (arguments[i].storage >= 0 && syntax.word(parameters[i].name).starts_with("out_ptr"))
      state.storage(arguments[i].storage).stale = false;
  const std::vector<Storage> storages = state.storages();
  const int mixes = state.mixes();
  for (const std::optional<Polynomial>& meaning : meanings) {
    state.restore(storages, mixes);
    std::string problem = run_once(syntax, parameters, body, arguments, state, steps, meaning);
    if (!problem.empty() || state.mixes() == mixes) return problem;
  }
  return {};
}

}  // namespace sconce::rows
