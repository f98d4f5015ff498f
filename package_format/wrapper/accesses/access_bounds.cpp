#include "package_format/wrapper/accesses/access_bounds.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace sconce::rows {
namespace {

constexpr int kMaxBoundDepth = 3;

// Positive factors with which `times` of one term is `factor` of another.
struct Multiple {
  int64_t times = 1;
  Polynomial factor;
};

// times * of == factor * by
std::optional<Multiple> positive_multiple(const Term& of, const Term& by) {
  if ((of.factor < 0) != (by.factor < 0) || of.factor == INT64_MIN || by.factor == INT64_MIN) return std::nullopt;
  if (!std::includes(of.atoms.begin(), of.atoms.end(), by.atoms.begin(), by.atoms.end())) return std::nullopt;
  const int64_t common = std::gcd(of.factor, by.factor);
  Multiple multiple{std::abs(by.factor) / common, Polynomial(std::abs(of.factor) / common)};
  std::vector<Atom> rest;
  std::set_difference(of.atoms.begin(), of.atoms.end(), by.atoms.begin(), by.atoms.end(), std::back_inserter(rest));
  for (const Atom atom : rest) multiple.factor = multiple.factor * Polynomial::of(atom);
  return multiple;
}

}  // namespace

// A loop over a size that is 1 has one iteration, so that each of its ends covers it.
Polynomial AccessBounds::at_end(const Polynomial& difference, bool last) const {
  Polynomial result;
  for (const Term& term : difference.terms()) {
    Polynomial product(term.factor);
    for (const Atom atom : term.atoms) {
      const Polynomial size = atoms_.is_loop(atom) ? atoms_.last(atom) + Polynomial(1) : Polynomial();
      const bool over_size = size.known() && size.terms().size() == 1 && size.terms()[0].factor == 1 &&
                             size.terms()[0].atoms.size() == 1 && atoms_.is_size(size.terms()[0].atoms[0]) &&
                             sized(size);
      product = product * (!over_size ? Polynomial::of(atom) : last ? atoms_.last(atom) : Polynomial());
    }
    result = result + product;
  }
  return result;
}

// With each loop over a size at the end where the difference is smallest.
bool AccessBounds::same_for_all_sizes(Polynomial difference) const {
  for (int pass = 0; pass < kMaxBoundDepth; ++pass) {
    if (!sized(difference)) return true;
    Polynomial next;
    bool moved = false;
    for (const Term& term : difference.terms()) {
      Polynomial product(term.factor);
      for (const Atom atom : term.atoms) {
        const bool loop = atoms_.is_loop(atom) && (atoms_.nature(atom) & kSized) != 0;
        moved = moved || loop;
        product = product * (!loop ? Polynomial::of(atom) : term.factor > 0 ? Polynomial() : atoms_.last(atom));
      }
      next = next + product;
    }
    if (!next.known() || !moved) return false;
    difference = std::move(next);
  }
  return false;
}

bool AccessBounds::not_negative(const Polynomial& value, int depth) const {
  if (!value.known()) return false;
  if (atoms_.at_least_zero(value)) return true;
  if (depth == 0) return false;
  std::vector<Polynomial> facts = facts_;
  atoms_.add_facts(value, facts);
  // A fact times a factor that cancels the first term that may be negative; the others follow in turn.
  const auto first = std::find_if(value.terms().begin(), value.terms().end(), [&](const Term& term) {
    return !term.atoms.empty() && (term.factor < 0 || std::any_of(term.atoms.begin(), term.atoms.end(), [&](Atom atom) {
                                     return atoms_.may_be_negative(atom);
                                   }));
  });
  // Only a constant is negative: a fact times a factor that cancels one of the other terms.
  const bool any = first == value.terms().end();
  for (const Term& term : value.terms()) {
    if (any ? term.atoms.empty() : &term != &*first) continue;
    for (const Polynomial& fact : facts)
      for (const Term& by : fact.terms()) {
        const std::optional<Multiple> multiple = positive_multiple(term, by);
        if (!multiple || by.atoms.empty()) continue;
        if (--steps_ < 0) return false;
        if (atoms_.at_least_zero(multiple->factor) &&
            not_negative(Polynomial(multiple->times) * value - multiple->factor * fact, depth - 1))
          return true;
      }
  }
  return false;
}

// For a tensor that is the same for all sizes, and an element that a larger size reads too: loops over larger sizes
// cover all iterations of loops over smaller ones.
bool AccessBounds::shared(const Polynomial& element, const Polynomial& elements) const {
  if (sized(elements) || !element.known()) return false;
  for (const Term& term : element.terms())
    for (const Atom atom : term.atoms)
      if ((atoms_.nature(atom) & (kSized | kStray)) != 0 && !atoms_.is_loop(atom)) return false;
  return true;
}

// Tries each size at its smallest value (at 1 if that is 0), with all loops at their first or last iteration.
bool AccessBounds::has_example(const Polynomial& element, const Polynomial& elements) const {
  if (guarded_ || !element.known() || !elements.known()) return false;
  for (const int64_t zero : {0, 1})
    for (const bool last : {false, true}) {
      const Atoms::Places places = [&](Atom atom) -> std::optional<int64_t> {
        if (atoms_.is_size(atom)) return atoms_.may_be_zero(atom) ? zero : smallest(atom);
        if (!atoms_.is_loop(atom)) return std::nullopt;
        const std::optional<int64_t> end = atoms_.number(atoms_.last(atom), places);
        // an empty loop has no iteration
        return !end || *end < 0 ? std::nullopt : last ? end : std::optional<int64_t>(0);
      };
      const std::optional<int64_t> at = atoms_.number(element, places), count = atoms_.number(elements, places);
      const auto holds = [&](const Polynomial& fact) { return atoms_.number(fact, places).value_or(-1) >= 0; };
      if (at && count && (*at < 0 || *at >= *count) && std::all_of(facts_.begin(), facts_.end(), holds)) return true;
    }
  return false;
}

// The number in a fact `size - number >= 0` about the size.
int64_t AccessBounds::smallest(Atom size) const {
  int64_t least = 1;
  for (const Polynomial& fact : facts_) {
    const Polynomial number = fact - Polynomial::of(size);
    if (number.known() && number.terms().size() == 1 && number.terms()[0].atoms.empty())
      least = std::max(least, -number.terms()[0].factor);
  }
  return least;
}

void AccessBounds::access(std::string_view tensor, const Polynomial& element, const Polynomial& elements) {
  if (leaves_) return;
  if (!depends_ && elements.known() && shared(element, elements)) return;
  const Polynomial left = elements - Polynomial(1) - element;
  const auto holds = [&](const Polynomial& difference) {
    return (!depends_ && difference.known() &&
            (same_for_all_sizes(difference) || same_for_all_sizes(at_end(difference, true)) ||
             same_for_all_sizes(at_end(difference, false)))) ||
           not_negative(difference, kMaxBoundDepth);
  };
  if (holds(left) && holds(element)) return;
  if (!guarded_ && element.known() && elements.known() && open_.size() < kMaxOpen)
    open_.push_back({std::string(tensor), element, elements, facts_});
  leaves_ = has_example(element, elements);
  if (leaves_)
    problem_ = std::string(tensor) + " is accessed outside of its elements";
  else if (problem_.empty())
    problem_ = std::string(tensor) + " may be accessed outside of its elements";
}

bool AccessBounds::follows(const Polynomial& value, const std::vector<Polynomial>& facts) {
  const size_t mark = this->mark();
  facts_.insert(facts_.end(), facts.begin(), facts.end());
  std::swap(steps_, steps_of_ends_);
  // Cancels a number that a fact also contains first.
  const bool result =
      not_negative(value, kMaxBoundDepth) || std::any_of(facts.begin(), facts.end(), [&](const Polynomial& fact) {
        return --steps_ > 0 && not_negative(value - fact, kMaxBoundDepth);
      });
  std::swap(steps_, steps_of_ends_);
  leave(mark);
  return result;
}

}  // namespace sconce::rows
