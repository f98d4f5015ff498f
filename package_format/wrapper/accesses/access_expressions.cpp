#include "package_format/wrapper/accesses/access_expressions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace sconce::rows {
namespace {

// Longer expressions are left out: evaluating them would slow down each request.
constexpr size_t kMaxExpressionText = 1'000;
// Limit per element of a tensor, or per number of elements; further accesses are not compared with each other.
constexpr size_t kMaxCompared = 64;

// An access with all loops at one end: all its values consist of sizes.
struct Ended {
  std::string tensor;
  Polynomial element, elements;
  std::vector<Polynomial> facts;
};

class LoopEnd {
 public:
  LoopEnd(Atoms& atoms, bool last) : atoms_(atoms), last_(last) {}

  // nullopt: the access does not happen, or sizes determine neither that nor its element.
  std::optional<Ended> of(const OpenAccess& access) {
    Ended ended{access.tensor, placed(access.element), placed(access.elements), {}};
    for (const Polynomial& fact : access.facts) add_fact(placed(fact));
    if (never_ || !ended.element.known() || !ended.elements.known()) return std::nullopt;
    ended.facts = std::move(facts_);
    return ended;
  }

 private:
  // Facts that every accepted size fulfils are left out.
  void add_fact(Polynomial fact) {
    const std::vector<Term>& terms = fact.terms();
    never_ = never_ || !fact.known();
    if (never_ || terms.empty()) return;
    const bool has_number = terms.front().atoms.empty();
    if (has_number && terms.size() == 1) {
      never_ = terms.front().factor < 0;
      return;
    }
    const Term& last = terms.back();
    const bool least = terms.size() == (has_number ? 2 : 1) && last.factor == 1 && last.atoms.size() == 1 &&
                       atoms_.is_size(last.atoms[0]);
    if (!least && std::find(facts_.begin(), facts_.end(), fact) == facts_.end()) facts_.push_back(std::move(fact));
  }

  // Rewrites the value in terms of sizes. Unknown if it has an index other than a loop's.
  Polynomial placed(const Polynomial& value) {
    if (!value.known()) return value;
    Polynomial result;
    for (const Term& term : value.terms()) {
      Polynomial product(term.factor);
      for (const Atom atom : term.atoms) product = product * placed(atom);
      result = result + product;
    }
    return result;
  }

  Polynomial placed(Atom atom) {
    if (atoms_.is_size(atom)) return Polynomial::of(atom);
    if (const Atoms::Made made = atoms_.made(atom); made.kind != 0) {
      const Polynomial value = placed(made.value), divisor = placed(made.divisor);
      if (!value.known() || !divisor.known()) return Polynomial::unknown();
      if (made.kind == '>') return atoms_.larger(value, divisor);
      return made.kind == '/' ? atoms_.quotient(value, divisor) : atoms_.remainder(value, divisor);
    }
    if (!atoms_.is_loop(atom)) return Polynomial::unknown();
    const Polynomial end = placed(atoms_.last(atom));
    add_fact(end);  // an empty loop has no iterations
    return last_ ? end : Polynomial();
  }

  Atoms& atoms_;
  bool last_;
  std::vector<Polynomial> facts_;
  bool never_ = false;
};

// Writes polynomials in Python's form.
class Text {
 public:
  Text(const Atoms& atoms, const SizeName& name) : atoms_(atoms), name_(name) {}

  // "": a size has no name, or the text is too long.
  std::string of(const Polynomial& value) {
    fits_ = true;
    std::string text = sum(value);
    return fits_ ? text : std::string();
  }

 private:
  std::string sum(const Polynomial& value) {
    std::string result;
    for (const Term& term : value.terms()) {
      if (!result.empty()) result += " + ";
      std::string product = term.factor < 0 ? "(" + std::to_string(term.factor) + ")" : std::to_string(term.factor);
      if (term.factor == 1 && !term.atoms.empty()) product.clear();
      for (const Atom atom : term.atoms) product += (product.empty() ? "" : "*") + factor(atom);
      result += product;
      fits_ = fits_ && result.size() <= kMaxExpressionText;
      if (!fits_) return {};
    }
    return result.empty() ? "0" : result;
  }

  std::string factor(Atom atom) {
    if (const Atoms::Made made = atoms_.made(atom); made.kind != 0) {
      const std::string value = sum(made.value), divisor = sum(made.divisor);
      if (made.kind == '>') return "Max(" + value + ", " + divisor + ")";
      return "((" + value + (made.kind == '/' ? ") // (" : ") % (") + divisor + "))";
    }
    std::string name = name_(atom);
    fits_ = fits_ && !name.empty();
    return name;
  }

  const Atoms& atoms_;
  const SizeName& name_;
  bool fits_ = true;
};

bool same_facts(const std::vector<Polynomial>& a, const std::vector<Polynomial>& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin());
}

// The facts without one that only one side has and the other denies: a loop's main part and its remainder.
std::optional<std::vector<Polynomial>> without_case(const std::vector<Polynomial>& a,
                                                    const std::vector<Polynomial>& b) {
  if (a.size() != b.size()) return std::nullopt;
  for (size_t i = 0; i < a.size(); ++i) {
    std::vector<Polynomial> denied = a;
    denied[i] = Polynomial(-1) - a[i];
    if (!same_facts(denied, b)) continue;
    denied.erase(denied.begin() + static_cast<std::ptrdiff_t>(i));
    return denied;
  }
  return std::nullopt;
}

// Adds an access to others of the same element, with as few conditions as possible.
void add(std::vector<Ended>& group, Ended added) {
  for (size_t i = 0; i < group.size() && i < kMaxCompared;) {
    if (same_facts(group[i].facts, added.facts)) return;
    if (auto facts = without_case(group[i].facts, added.facts)) {
      added.facts = std::move(*facts);
      group.erase(group.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    } else {
      ++i;
    }
  }
  group.push_back(std::move(added));
}

}  // namespace

std::vector<AccessBound> open_bounds(AccessBounds& bounds, Atoms& atoms, const SizeName& name) {
  Text text(atoms, name);
  // By the number of elements, and by the element.
  std::map<std::string, std::map<std::string, std::vector<Ended>>> tensors;
  const auto inside = [&](const Ended& ended) {
    return bounds.follows(ended.elements - Polynomial(1) - ended.element, ended.facts) &&
           bounds.follows(ended.element, ended.facts);
  };
  for (const OpenAccess& access : bounds.open())
    for (const bool last : {false, true}) {
      std::optional<Ended> ended = LoopEnd(atoms, last).of(access);
      if (!ended || inside(*ended)) continue;
      const std::string elements = text.of(ended->elements), element = text.of(ended->element);
      if (!elements.empty() && !element.empty()) add(tensors[elements][element], std::move(*ended));
    }
  std::vector<AccessBound> result;
  for (const auto& [elements, places] : tensors) {
    std::vector<std::pair<const std::string*, const Ended*>> all;
    for (const auto& [element, group] : places)
      for (const Ended& ended : group) all.emplace_back(&element, &ended);
    for (const auto& [element, ended] : all) {
      // An access implied by another element is left out.
      const auto implies = [&, ended = ended](const auto& other) {
        return other.second != ended && same_facts(other.second->facts, ended->facts) &&
               bounds.follows(other.second->element - ended->element, ended->facts) &&
               !(other.second->element == ended->element);
      };
      if (all.size() <= kMaxCompared && bounds.follows(ended->element, ended->facts) &&
          std::any_of(all.begin(), all.end(), implies))
        continue;
      AccessBound bound{.access = ended->tensor, .made = {}, .element = *element, .elements = elements};
      for (const Polynomial& fact : ended->facts) bound.made.push_back(text.of(fact));
      if (std::none_of(bound.made.begin(), bound.made.end(), [](const auto& each) { return each.empty(); }))
        result.push_back(std::move(bound));
    }
  }
  return result;
}

}  // namespace sconce::rows
