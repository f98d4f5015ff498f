#include "sconce/sizes/size_relations.h"

#include <algorithm>
#include <array>
#include <utility>

#include "package_format/sizes/size_system.h"
#include "sconce/check.h"

namespace sconce {
namespace {

using Failure = SizeSystem::Failure;
using Kind = SizeSystem::Kind;

// Few models have more symbols.
constexpr size_t kMaxOnStack = 64;

// Describes the sizes that a step expected.
class Explanation {
 public:
  Explanation(const SizeSystem& system, std::span<const int64_t> sizes, const SizeRelations::Label& label)
      : system_(system), sizes_(sizes), label_(label), values_(system.symbols.size()) {}

  std::optional<SizeRelations::Violation> violation() {
    const SizeSystem::Outcome outcome = system_.solve(sizes_.data(), values_.data());
    if (outcome.failure == Failure::kNone) return std::nullopt;
    if (outcome.failure == Failure::kBound) return broken();
    const SizeSystem::Step& step = system_.steps[outcome.step];
    const SizeSystem::Size& size = system_.sizes[step.size];
    return SizeRelations::Violation{size.place, text(outcome.failure, step, size),
                                    outcome.failure == Failure::kUndecidable || outcome.failure == Failure::kUntold};
  }

 private:
  SizeRelations::Violation broken() const {
    const SizeBounds::Broken broken = *system_.bounds.broken(values_.data());
    const std::vector<size_t> symbols = system_.bounds.symbols(broken.bound);
    return {system_.sizes[system_.symbols[symbols.at(0)].size].place,
            "these sizes do not go together: " + system_.bounds.access(broken.bound) +
                " would be accessed at element " + number(broken.element) + " of " + number(broken.elements) + ", " +
                system_.bounds.text(broken.bound) + where(symbols, {})};
  }

  static std::string number(int64_t value) { return std::to_string(value); }
  std::string place(const SizeSystem::Size& size) const {
    return "dimension " + number(static_cast<int64_t>(size.place.dim)) + " of " + label_(size.place.input);
  }

  std::string text(Failure failure, const SizeSystem::Step& step, const SizeSystem::Size& size) const {
    const std::string at = " at dimension " + number(static_cast<int64_t>(size.place.dim));
    const std::string got = ", got " + number(sizes_[step.size]);
    const std::string shown = size.expression ? size.expression->text() : size.text;
    const bool plain = step.kind == Kind::kSymbol || step.kind == Kind::kSame;
    const SizeRelations::Range& range = plain ? system_.symbols[step.other].accepted : size.accepted;
    switch (failure) {
      case Failure::kTooSmall:
        return "expected size >= " + number(range.least) + at + got;
      case Failure::kTooLarge:
        return "expected size <= " + number(range.most) + at + got;
      case Failure::kUnequal: {
        if (step.kind == Kind::kComputed)
          return "expected size " + shown + " = " + number(system_.value(size, values_.data()).value_or(0)) + at + got +
                 where(size, step);
        const size_t other = step.kind == Kind::kSame ? system_.symbols[step.other].size : step.other;
        const int64_t expected = step.kind == Kind::kSame ? values_[step.other] : sizes_[other];
        const SizeSystem::Size& first = system_.sizes[other];
        if (first.text == size.text) return "expected size " + number(expected) + at + " as in " + place(first) + got;
        return "expected size " + number(expected) + at + got + where(size, {Kind::kComputed, step.size, 0});
      }
      case Failure::kNotWhole:
        return "expected size " + shown + at + " for a whole number " + system_.symbols[step.other].name + got +
               where(size, step);
      case Failure::kSymbolRange: {
        const SizeSystem::Symbol& symbol = system_.symbols[step.other];
        const int64_t value = values_[step.other];
        const bool small = value < symbol.accepted.least;
        return "expected size " + shown + at + " with " + symbol.name + (small ? " >= " : " <= ") +
               number(small ? symbol.accepted.least : symbol.accepted.most) + got + ", so that it is " + number(value) +
               where(size, step);
      }
      case Failure::kUntold:
        return "the size " + shown + at + " does not tell " + system_.symbols[step.other].name + got +
               where(size, step);
      case Failure::kOverflow:
        return "the size " + shown + at + " has no value" + got + where(size, step);
      default:
        return "the package says of the size" + at + " only that it is " + shown +
               ", and no other dimension tells its symbols, so it cannot be checked";
    }
  }

  // The symbols that are known before the step.
  std::string where(const SizeSystem::Size& size, const SizeSystem::Step& step) const {
    return where(size.symbols, step.kind == Kind::kComputed ? std::nullopt : std::optional<size_t>(step.other));
  }

  std::string where(const std::vector<size_t>& symbols, std::optional<size_t> left_out) const {
    std::string text;
    for (const size_t index : symbols) {
      if (index == left_out) continue;
      const SizeSystem::Symbol& symbol = system_.symbols[index];
      const SizeSystem::Size& by = system_.sizes[symbol.size];
      text += (text.empty() ? ", where " : ", and ") + symbol.name + " = " + number(values_[index]) + " ";
      if (by.expression->is_symbol())
        text += "is " + place(by);
      else
        text += "as " + place(by) + " is " + by.expression->text() + " = " + number(sizes_[symbol.size]);
    }
    return text;
  }

  const SizeSystem& system_;
  std::span<const int64_t> sizes_;
  const SizeRelations::Label& label_;
  std::vector<int64_t> values_;
};

// Values of symbols for which all sizes are in their ranges.
class Choice {
 public:
  Choice(const SizeSystem& system, const std::map<std::string, int64_t>& given)
      : system_(system),
        given_(given),
        values_(system.symbols.size()),
        chosen_(system.symbols.size()),
        fixed_(system.symbols.size()),
        sizes_(system.sizes.size()) {}

  std::optional<std::vector<int64_t>> sizes(const SizeRelations::Value& value) {
    for (size_t i = 0; i < values_.size(); ++i)
      if (const auto at = given_.find(system_.symbols[i].name); at != given_.end()) fix(i, at->second);
    for (const auto& [text, wanted] : given_)
      if (!solve(text, wanted)) return std::nullopt;
    for (size_t i = 0; i < system_.sizes.size(); ++i) choose(i, value);
    constexpr int kMaxChanges = 512;
    for (int change = 0; change < kMaxChanges; ++change) {
      const std::optional<size_t> wrong = first_wrong();
      if (!wrong) {
        const std::optional<SizeBounds::Broken> broken = system_.bounds.broken(values_.data());
        if (!broken) return sizes_;
        if (!give_room(broken->bound)) break;
      } else if (!change_for(*wrong)) {
        break;
      }
    }
    return std::nullopt;
  }

 private:
  void fix(size_t symbol, int64_t value) {
    values_[symbol] = value;
    chosen_[symbol] = fixed_[symbol] = true;
  }

  // An expression with a given value, in which exactly one symbol has no value.
  bool solve(const std::string& text, int64_t wanted) {
    const std::optional<SizeExpression> expression = SizeExpression::parse(text);
    if (!expression || expression->is_symbol()) return true;
    std::vector<size_t> places;
    std::optional<size_t> unknown;
    for (size_t k = 0; k < expression->symbols().size(); ++k) {
      const auto& all = system_.symbols;
      const auto at = std::find_if(all.begin(), all.end(),
                                   [&](const auto& symbol) { return symbol.name == expression->symbols()[k]; });
      if (at == all.end()) return true;  // not an expression of the model
      places.push_back(static_cast<size_t>(at - all.begin()));
      if (chosen_[places.back()]) continue;
      if (unknown) return false;
      unknown = k;
    }
    if (!unknown) return true;
    const std::optional<Kind> kind = SizeSystem::kind_of(expression->growth(*unknown));
    if (!kind) return false;
    const size_t symbol = places[*unknown];
    if (system_.invert(expression->placed(places), symbol, *kind, wanted, values_.data()) != Failure::kNone)
      return false;
    fix(symbol, values_[symbol]);
    return true;
  }

  // In the order of the dimensions.
  void choose(size_t i, const SizeRelations::Value& value) {
    const SizeSystem::Size& size = system_.sizes[i];
    if (!size.expression) {
      const std::string name =
          size.text.empty() ? std::to_string(size.place.input) + "," + std::to_string(size.place.dim) : size.text;
      const auto at = given_.find(name);
      sizes_[i] = at == given_.end() ? value(name, size.recorded) : at->second;
      for (size_t j = 0; j < i && !size.text.empty(); ++j)
        if (system_.sizes[j].text == size.text) sizes_[i] = sizes_[j];
      return;
    }
    for (const size_t symbol : size.symbols) {
      if (chosen_[symbol]) continue;
      values_[symbol] = value(system_.symbols[symbol].name, system_.symbols[symbol].recorded);
      chosen_[symbol] = true;
    }
  }

  const SizeRelations::Range& accepted(const SizeSystem::Size& size) const {
    return size.expression->is_symbol() ? system_.symbols[size.symbols[0]].accepted : size.accepted;
  }

  // Computes all sizes. Returns the first whose expression leaves its range.
  std::optional<size_t> first_wrong() {
    for (size_t i = 0; i < system_.sizes.size(); ++i) {
      const SizeSystem::Size& size = system_.sizes[i];
      if (!size.expression) continue;
      const std::optional<int64_t> value = system_.value(size, values_.data());
      sizes_[i] = value.value_or(-1);
      if (!value) return i;
      // A given symbol is used as it is.
      if (size.expression->is_symbol() && fixed_[size.symbols[0]] && *value >= 0) continue;
      const bool all_fixed =
          std::all_of(size.symbols.begin(), size.symbols.end(), [&](size_t symbol) { return fixed_[symbol]; });
      if (all_fixed && *value >= 0) continue;
      const SizeRelations::Range& range = accepted(size);
      if (*value < range.least || *value > range.most || *value < 0) return i;
    }
    return std::nullopt;
  }

  // Moves a symbol of the size towards the range, in growing steps. Returns false if none can move.
  bool change_for(size_t i) {
    const SizeSystem::Size& size = system_.sizes[i];
    const bool up = sizes_[i] < accepted(size).least;
    step_ = i == last_ && up == last_up_ ? std::min(step_ * 2, kLargestStep) : 1;
    last_ = i;
    last_up_ = up;
    // Some expressions stay the same over several values of a symbol.
    for (int64_t step = step_; step <= kLargestStep; step *= 2) {
      for (const size_t symbol : size.symbols) {
        if (fixed_[symbol]) continue;
        const SizeRelations::Range& range = system_.symbols[symbol].accepted;
        const int64_t before = values_[symbol];
        for (const bool more : {true, false}) {
          const int64_t room = more ? range.most - before : before - range.least;
          if (room <= 0) continue;
          values_[symbol] = more ? before + std::min(step, room) : before - std::min(step, room);
          const std::optional<int64_t> moved = system_.value(size, values_.data());
          if (moved && (up ? *moved > sizes_[i] : *moved < sizes_[i] || sizes_[i] == -1)) return true;
        }
        values_[symbol] = before;
      }
    }
    return false;
  }

  // Enlarges the tensor that an access would leave, or else makes the accessed element smaller. Returns false if no
  // symbol can change.
  bool give_room(size_t bound) {
    const std::vector<size_t> symbols = system_.bounds.symbols(bound);
    for (size_t k = 0; k < symbols.size(); ++k) {
      const size_t symbol = symbols[k];
      const SizeRelations::Range& range = system_.symbols[symbol].accepted;
      const bool grow = k < system_.bounds.symbols_of_tensor(bound);
      const int64_t before = values_[symbol];
      if (fixed_[symbol] || (grow ? before >= range.most : before <= range.least)) continue;
      values_[symbol] = grow ? before + std::min(range.most - before, std::max<int64_t>(before, 1))
                             : std::max(range.least, before / 2);
      return true;
    }
    return false;
  }

  const SizeSystem& system_;
  const std::map<std::string, int64_t>& given_;
  std::vector<int64_t> values_;
  std::vector<bool> chosen_, fixed_;
  std::vector<int64_t> sizes_;
  static constexpr int64_t kLargestStep = int64_t{1} << 40;
  int64_t step_ = 1;
  size_t last_ = SIZE_MAX;
  bool last_up_ = false;
};

SizeRelations alone(const Dim& dim) {
  TensorSpec spec;
  spec.dims = {dim};
  return SizeRelations({&spec, 1});
}

}  // namespace

struct SizeRelations::Program {
  Program(std::span<const TensorSpec> inputs, std::span<const AccessBound> bounds) : system(inputs, bounds) {
    for (const SizeSystem::Size& size : system.sizes) places.push_back(size.place);
  }
  size_t index_of(Place place) const {
    const auto at = std::lower_bound(places.begin(), places.end(), place);
    SCONCE_CHECK(at != places.end() && *at == place, kInternal, "dimension ", place.dim, " of input ", place.input,
                 " is fixed");
    return static_cast<size_t>(at - places.begin());
  }
  SizeSystem system;
  std::vector<Place> places;  // in ascending order
};

SizeRelations::SizeRelations() : SizeRelations(std::span<const TensorSpec>()) {}

SizeRelations::SizeRelations(std::span<const TensorSpec> inputs, std::span<const AccessBound> bounds)
    : program_(std::make_shared<Program>(inputs, bounds)) {}

const std::vector<SizeRelations::Place>& SizeRelations::places() const noexcept { return program_->places; }

bool SizeRelations::agrees(std::span<const int64_t> sizes) const {
  const SizeSystem& system = program_->system;
  std::array<int64_t, kMaxOnStack> few;
  std::vector<int64_t> many;
  if (system.symbols.size() > few.size()) many.resize(system.symbols.size());
  return system.agrees(sizes.data(), many.empty() ? few.data() : many.data());
}

std::optional<SizeRelations::Violation> SizeRelations::violation(std::span<const int64_t> sizes,
                                                                 const Label& label) const {
  return Explanation(program_->system, sizes, label).violation();
}

SizeRelations::Range SizeRelations::range(Place place) const {
  const SizeSystem& system = program_->system;
  const SizeSystem::Size& size = system.sizes[program_->index_of(place)];
  if (!size.expression) return size.accepted;
  if (size.expression->is_symbol()) return system.symbols[size.symbols[0]].accepted;
  // If an expression increases with each symbol, its minimum and maximum are at theirs.
  Range range{std::max<int64_t>(size.accepted.least, 0), size.recorded.most};
  std::vector<int64_t> least, most;
  bool grows = true, bounded = true;
  for (const SizeSystem::Symbol& symbol : system.symbols) {
    least.push_back(symbol.accepted.least);
    most.push_back(symbol.accepted.most);
  }
  for (size_t k = 0; k < size.symbols.size(); ++k) {
    const size_t symbol = size.symbols[k];
    grows = grows && size.expression->growth(k) != SizeExpression::Growth::kOther;
    bounded = bounded && most[symbol] != INT64_MAX;
    const std::optional<int64_t> at = system.value(size, least.data());
    ++least[symbol];
    const std::optional<int64_t> next = system.value(size, least.data());
    --least[symbol];
    grows = grows && at && next && *next >= *at;
  }
  if (!grows) return {range.least, range.most};
  if (const auto value = system.value(size, least.data())) range.least = std::max(range.least, *value);
  if (bounded)
    if (const auto value = system.value(size, most.data())) range.most = std::min(range.most, *value);
  return range;
}

bool SizeRelations::takes(Place place, int64_t wanted) const {
  const SizeSystem& system = program_->system;
  const SizeSystem::Size& size = system.sizes[program_->index_of(place)];
  const Range all = range(place);
  if (wanted < all.least || wanted > all.most) return false;
  if (!size.expression || size.symbols.size() != 1) return true;
  const std::optional<SizeSystem::Kind> kind = SizeSystem::kind_of(size.expression->growth(0));
  if (!kind) return true;
  const size_t symbol = size.symbols[0];
  std::vector<int64_t> values(system.symbols.size());
  if (system.invert(*size.placed, symbol, *kind, wanted, values.data()) != Failure::kNone) return false;
  const Range& accepted = system.symbols[symbol].accepted;
  return values[symbol] >= accepted.least && values[symbol] <= accepted.most;
}

std::optional<std::vector<int64_t>> SizeRelations::sizes(const std::map<std::string, int64_t>& given,
                                                         const Value& value) const {
  return Choice(program_->system, given).sizes(value);
}

int64_t least_size(const Dim& dim) { return dim.is_static() ? dim.min : alone(dim).range({}).least; }

bool takes_size(const Dim& dim, int64_t size) {
  if (dim.is_static()) return size == dim.min;
  return alone(dim).takes({}, size);
}

std::vector<std::string> symbols_of(std::string_view expression) {
  const std::optional<SizeExpression> parsed = SizeExpression::parse(expression);
  return parsed ? parsed->symbols() : std::vector<std::string>();
}

std::string renamed_symbols(std::string_view expression, const std::function<std::string(const std::string&)>& name) {
  const std::optional<SizeExpression> parsed = SizeExpression::parse(expression);
  if (!parsed) return std::string(expression);
  std::vector<std::string> names;
  for (const std::string& symbol : parsed->symbols()) names.push_back(name(symbol));
  return parsed->renamed(std::move(names)).text();
}

bool closed_under_sums(std::string_view expression) {
  const std::optional<SizeExpression> parsed = SizeExpression::parse(expression);
  if (!parsed || parsed->symbols().size() != 1 || parsed->growth(0) != SizeExpression::Growth::kAffine) return false;
  const int64_t zero = 0;
  return parsed->value({&zero, 1}) == 0;
}

}  // namespace sconce
