#include "package_format/wrapper/rows/written_elements.h"

#include <algorithm>

namespace sconce::rows {
namespace {

constexpr size_t kMaxWrites = 64;

// The set of elements, as text: loop variables are replaced by their ranges, except those in `same`. nullopt if a
// variable occurs more than once, so that the set does not contain all combinations.
std::optional<std::string> elements_of(const Polynomial& element, const std::vector<Atom>& same,
                                       const RowState& state) {
  if (!element.known()) return std::nullopt;
  const Atoms& atoms = state.atoms();
  std::vector<std::string> terms;
  std::vector<Atom> ranges;
  for (const Term& term : element.terms()) {
    std::vector<std::string> factors;
    for (const Atom atom : term.atoms) {
      const bool variable = !atoms.is_size(atom) && std::find(same.begin(), same.end(), atom) == same.end();
      if (!variable) {
        factors.push_back("#" + std::to_string(atom));
        continue;
      }
      if (atoms.nature(atom) != kFixed || !atoms.last(atom).known()) return std::nullopt;
      if (std::find(ranges.begin(), ranges.end(), atom) != ranges.end()) return std::nullopt;
      ranges.push_back(atom);
      std::string range = "[";
      for (const Term& part : atoms.last(atom).terms()) {
        range += std::to_string(part.factor);
        for (const Atom size : part.atoms) range.append("*").append(std::to_string(size));
        range += '+';
      }
      factors.push_back(range + "]");
    }
    std::sort(factors.begin(), factors.end());
    std::string text = std::to_string(term.factor);
    for (const std::string& factor : factors) text += factor;
    terms.push_back(std::move(text));
  }
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const std::string& term : terms) text.append(term).append(";");
  return text;
}

}  // namespace

void WrittenElements::write(Name array, const Polynomial& element, const Dependence& value, bool certain,
                            RowState& state) {
  for (Write& each : writes_)
    if (each.array == array) each.value = state.join(each.value, value);
  const bool known = std::any_of(writes_.begin(), writes_.end(),
                                 [&](const Write& each) { return each.array == array && each.element == element; });
  if (known || !certain || writes_.size() >= kMaxWrites) return;
  Dependence all = value;
  for (const Write& each : writes_)
    if (each.array == array) all = state.join(all, each.value);
  writes_.push_back({array, element, all});
}

std::optional<Dependence> WrittenElements::read(Name array, const Polynomial& element, const std::vector<Atom>& open,
                                                const RowState& state) const {
  for (const Write& each : writes_) {
    if (each.array != array) continue;
    // An enclosing loop has written the element of this iteration, and possibly no other.
    std::vector<Atom> shared;
    for (const Atom atom : open) {
      Polynomial factor, rest;
      if (each.element.coefficient(atom, factor, rest) && !factor.is(0)) shared.push_back(atom);
    }
    const auto written = elements_of(each.element, shared, state);
    if (written && written == elements_of(element, shared, state)) return each.value;
  }
  return std::nullopt;
}

void WrittenElements::forget(Name array) {
  std::erase_if(writes_, [&](const Write& each) { return each.array == array; });
}

}  // namespace sconce::rows
