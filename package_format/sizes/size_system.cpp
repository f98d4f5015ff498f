#include "package_format/sizes/size_system.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

namespace sconce {
namespace {

using Failure = SizeSystem::Failure;
using Kind = SizeSystem::Kind;
using Range = SizeRelations::Range;

// A package may hold anything, and the time to order its expressions grows with the square of their number.
constexpr size_t kMaxExpressions = 1024;

// torch.export specialises 0 and 1, and records 2 where they are allowed.
Range accepted_of(Range recorded, int64_t smallest) noexcept {
  return {recorded.least == 2 && recorded.most > 2 ? smallest : std::max<int64_t>(recorded.least, 0), recorded.most};
}

}  // namespace

SizeSystem::SizeSystem(std::span<const TensorSpec> inputs, std::span<const AccessBound> bounds) {
  std::unordered_map<std::string, size_t> named;
  const auto symbol_named = [&](const std::string& name) {
    const auto [at, fresh] = named.emplace(name, symbols.size());
    if (fresh) symbols.push_back({.name = name, .recorded = {}, .accepted = {}});
    return at->second;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].dims.size(); ++d) {
      const Dim& dim = inputs[i].dims[d];
      if (dim.is_static()) continue;
      const Range recorded{dim.min, dim.max};
      Size size{.place = {i, d},
                .text = dim.symbol,
                .expression = SizeExpression::parse(dim.symbol),
                .placed = {},
                .symbols = {},
                .recorded = recorded,
                .accepted = accepted_of(recorded, dim.smallest)};
      if (size.expression)
        for (const std::string& name : size.expression->symbols()) {
          size.symbols.push_back(symbol_named(name));
          Symbol& symbol = symbols[size.symbols.back()];
          symbol.smallest = std::max(symbol.smallest, dim.smallest);
        }
      if (size.expression) size.placed = size.expression->placed(size.symbols);
      sizes.push_back(std::move(size));
    }
  }
  add_plain();
  add_expressions();
  add_rest();
  finish_ranges();
  separate_sums();
  std::vector<std::string> told;
  for (const Symbol& symbol : symbols) told.push_back(symbol.known ? symbol.name : std::string());
  this->bounds = SizeBounds(bounds, told);
}

// A dimension that is a single symbol defines its value. Later ones are compared with it.
void SizeSystem::add_plain() {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Size& size = sizes[i];
    if (!size.expression || !size.expression->is_symbol()) continue;
    Symbol& symbol = symbols[size.symbols[0]];
    symbol.recorded.least = std::max(symbol.recorded.least, size.recorded.least);
    symbol.recorded.most = std::min(symbol.recorded.most, size.recorded.most);
    steps.push_back(
        {symbol.known ? Kind::kSame : Kind::kSymbol, static_cast<uint32_t>(i), static_cast<uint32_t>(size.symbols[0])});
    if (!symbol.known) symbol.size = i;
    symbol.known = true;
  }
}

// Repeats until no expression has exactly one unknown symbol.
void SizeSystem::add_expressions() {
  std::vector<size_t> open;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].expression && !sizes[i].expression->is_symbol()) open.push_back(i);
  if (open.size() > kMaxExpressions) return;
  while (std::erase_if(open, [&](size_t i) { return add_expression(i); }) > 0) {
  }
}

bool SizeSystem::add_expression(size_t i) {
  const Size& size = sizes[i];
  std::optional<size_t> unknown;
  for (size_t k = 0; k < size.symbols.size(); ++k) {
    if (symbols[size.symbols[k]].known) continue;
    if (unknown) return false;
    unknown = k;
  }
  if (!unknown) {
    steps.push_back({Kind::kComputed, static_cast<uint32_t>(i), 0});
    return true;
  }
  const std::optional<Kind> kind = kind_of(size.expression->growth(*unknown));
  if (!kind) return false;
  const size_t symbol = size.symbols[*unknown];
  learn_range(size, symbol);
  steps.push_back({*kind, static_cast<uint32_t>(i), static_cast<uint32_t>(symbol)});
  symbols[symbol].known = true;
  symbols[symbol].size = i;
  return true;
}

// The recorded range of a symbol that only an expression determines: PyTorch computed the expression's range from it,
// with the smallest values of the other symbols for the minimum.
void SizeSystem::learn_range(const Size& size, size_t symbol) {
  std::vector<int64_t> values;
  for (const Symbol& each : symbols) values.push_back(each.recorded.least);
  const auto at = [&](int64_t value) {
    values[symbol] = value;
    return this->value(size, values.data());
  };
  const auto first = at(0), second = at(1);
  if (!first || !second || *first == *second) return;
  Range& range = symbols[symbol].recorded;
  const bool grows = *second > *first;
  // The smallest value whose expression is `wanted` or beyond.
  const auto reach = [&](int64_t wanted) -> int64_t {
    int64_t below = -1, above = 1;  // in between
    const auto reached = [&](int64_t value) {
      const auto result = at(value);
      return !result || (grows ? *result >= wanted : *result <= wanted);
    };
    while (!reached(above)) {
      if (above > INT64_MAX / 4) return INT64_MAX;
      below = above;
      above *= 2;
    }
    while (above - below > 1) {
      const int64_t middle = below + (above - below) / 2;
      (reached(middle) ? above : below) = middle;
    }
    return above;
  };
  const int64_t from = grows ? size.recorded.least : size.recorded.most;
  const int64_t to = grows ? size.recorded.most : size.recorded.least;
  if (grows || from != INT64_MAX) range.least = std::max(range.least, reach(from));
  if (grows && to == INT64_MAX) return;
  const int64_t beyond = reach(grows ? to + 1 : to - 1);
  if (beyond != INT64_MAX) range.most = std::max(range.least, beyond - 1);
}

// Sizes whose symbols nothing determines. If a single expression contains all uses of the symbols, compiled code
// cannot use them elsewhere, and the expression counts as a symbol itself.
void SizeSystem::add_rest() {
  std::vector<bool> placed(sizes.size());
  for (const Step& step : steps) placed[step.size] = true;
  // By symbol: the first size that has it, and whether a size with another expression has it too.
  std::vector<size_t> first(symbols.size(), SIZE_MAX);
  std::vector<bool> several(symbols.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    for (const size_t symbol : sizes[i].symbols) {
      if (first[symbol] == SIZE_MAX) first[symbol] = i;
      several[symbol] = several[symbol] || sizes[first[symbol]].text != sizes[i].text;
    }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (placed[i]) continue;
    const Size& size = sizes[i];
    const bool alone = std::none_of(size.symbols.begin(), size.symbols.end(),
                                    [&](size_t symbol) { return symbols[symbol].known || several[symbol]; });
    const size_t same = size.symbols.empty() ? i : first[size.symbols[0]];
    if (!size.text.empty() && (!size.expression || !alone))
      steps.push_back({Kind::kUndecidable, static_cast<uint32_t>(i), 0});
    else
      steps.push_back({same == i ? Kind::kRange : Kind::kEqual, static_cast<uint32_t>(i), static_cast<uint32_t>(same)});
  }
}

void SizeSystem::finish_ranges() {
  std::vector<int64_t> values;
  for (Symbol& symbol : symbols) {
    symbol.accepted = accepted_of(symbol.recorded, symbol.smallest);
    values.push_back(symbol.recorded.least);
  }
  // A minimum that follows from the symbols belongs to them; a larger one is the dimension's own.
  for (const Step& step : steps) {
    if (step.kind != Kind::kAffine && step.kind != Kind::kStrict && step.kind != Kind::kComputed) continue;
    Size& size = sizes[step.size];
    const std::optional<int64_t> implied = value(size, values.data());
    size.accepted.least = implied && size.recorded.least > *implied ? size.recorded.least : 0;
  }
}

std::optional<Kind> SizeSystem::kind_of(SizeExpression::Growth growth) noexcept {
  switch (growth) {
    case SizeExpression::Growth::kAffine:
      return Kind::kAffine;
    case SizeExpression::Growth::kStrict:
      return Kind::kStrict;
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> SizeSystem::value(const Size& size, const int64_t* values) const noexcept {
  return size.placed->value({values, symbols.size()});
}

Failure SizeSystem::invert(const SizeExpression& placed, size_t symbol, Kind kind, int64_t wanted,
                           int64_t* values) const noexcept {
  const auto at = [&](int64_t value) {
    values[symbol] = value;
    return placed.value({values, symbols.size()});
  };
  const std::optional<int64_t> base = at(0);
  if (!base) return Failure::kOverflow;
  int64_t rest = 0;
  if (__builtin_sub_overflow(wanted, *base, &rest)) return Failure::kOverflow;
  if (kind == Kind::kAffine) {
    const std::optional<int64_t> next = at(1);
    int64_t factor = 0;
    if (!next || __builtin_sub_overflow(*next, *base, &factor)) return Failure::kOverflow;
    if (factor == 0) return rest == 0 ? Failure::kUntold : Failure::kNotWhole;
    if (factor == -1 ? rest == INT64_MIN : rest % factor != 0) return Failure::kNotWhole;
    values[symbol] = rest / factor;
    return Failure::kNone;
  }
  // It grows by at least 1 with each step of the symbol. A value that does not fit into 64 bits is beyond all sizes.
  if (rest < 0) return Failure::kNotWhole;
  const auto reached = [&](int64_t value) {
    const std::optional<int64_t> result = at(value);
    return !result || *result >= wanted;
  };
  int64_t below = -1, above = 0;
  // Squares are the usual case.
  if (const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(rest))); !reached(root - 1)) {
    below = root - 1;
    above = root;
  }
  for (int64_t step = 1; !reached(above); step *= 2) {
    below = above;
    above = rest - above < step ? rest : above + step;
  }
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    (reached(middle) ? above : below) = middle;
  }
  return at(above) == wanted ? Failure::kNone : Failure::kNotWhole;
}

SizeSystem::Outcome SizeSystem::solve(std::span<const Step> steps, const int64_t* given,
                                      int64_t* values) const noexcept {
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Size& size = sizes[step.size];
    const int64_t is = given[step.size];
    const auto failed = [&](Failure failure) { return Outcome{failure, i}; };
    const bool plain = step.kind == Kind::kSymbol || step.kind == Kind::kSame;
    const Range& range = plain ? symbols[step.other].accepted : size.accepted;
    if (step.kind == Kind::kSame) {
      if (is != values[step.other]) return failed(Failure::kUnequal);
      continue;
    }
    if (is < range.least) return failed(Failure::kTooSmall);
    if (is > range.most) return failed(Failure::kTooLarge);
    switch (step.kind) {
      case Kind::kSymbol:
        values[step.other] = is;
        break;
      case Kind::kEqual:
        if (is != given[step.other]) return failed(Failure::kUnequal);
        break;
      case Kind::kAffine:
      case Kind::kStrict: {
        const Failure failure = invert(*size.placed, step.other, step.kind, is, values);
        if (failure != Failure::kNone) return failed(failure);
        const Range& symbol = symbols[step.other].accepted;
        if (values[step.other] < symbol.least || values[step.other] > symbol.most) return failed(Failure::kSymbolRange);
        break;
      }
      case Kind::kComputed: {
        const std::optional<int64_t> expected = value(size, values);
        if (!expected) return failed(Failure::kOverflow);
        if (is != *expected) return failed(Failure::kUnequal);
        break;
      }
      case Kind::kUndecidable:
        return failed(Failure::kUndecidable);
      default:
        break;
    }
  }
  return {};
}

SizeSystem::Outcome SizeSystem::solve(const int64_t* given, int64_t* values) const noexcept {
  const Outcome outcome = solve(steps, given, values);
  if (outcome.failure != Failure::kNone) return outcome;
  if (bounds.size() > 0)
    if (const auto broken = bounds.broken(values)) return {Failure::kBound, broken->bound};
  return {};
}

bool SizeSystem::agrees(const int64_t* given, int64_t* values) const noexcept {
  if (solve(other_steps_, given, values).failure != Failure::kNone) return false;
  for (const SumCheck& check : sums_) {
    const int64_t is = given[check.size];
    std::optional<int64_t> expected = check.sum.value({values, symbols.size()});
    if (!expected) [[unlikely]]  // a symbol so large that a step of the sum might overflow
      expected = value(sizes[check.size], values);
    if (is != expected || is < check.accepted.least || is > check.accepted.most) return false;
  }
  return bounds.size() == 0 || !bounds.broken(values);
}

void SizeSystem::separate_sums() {
  for (const Step& step : steps) {
    const Size& size = sizes[step.size];
    if (step.kind == Kind::kComputed && size.placed->sum())
      sums_.push_back({*size.placed->sum(), size.accepted, step.size});
    else
      other_steps_.push_back(step);
  }
}

}  // namespace sconce
