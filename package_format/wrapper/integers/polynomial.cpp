#include "package_format/wrapper/integers/polynomial.h"

#include <algorithm>
#include <utility>

namespace sconce::rows {
namespace {

constexpr size_t kMaxTerms = 48;
constexpr size_t kMaxAtoms = 8;  // of a term

// Whether all atoms of `part` are among those of `whole`; the others go to `rest`.
bool divides(const std::vector<Atom>& part, const std::vector<Atom>& whole, std::vector<Atom>& rest) {
  if (!std::includes(whole.begin(), whole.end(), part.begin(), part.end())) return false;
  rest.clear();
  std::set_difference(whole.begin(), whole.end(), part.begin(), part.end(), std::back_inserter(rest));
  return true;
}

}  // namespace

Polynomial::Polynomial(int64_t value) {
  if (value != 0) terms_.push_back({{}, value});
}

Polynomial Polynomial::of(Atom atom) {
  Polynomial result;
  result.terms_.push_back({{atom}, 1});
  return result;
}

Polynomial Polynomial::unknown() {
  Polynomial result;
  result.known_ = false;
  return result;
}

bool Polynomial::is(int64_t value) const noexcept {
  if (!known_) return false;
  if (terms_.empty()) return value == 0;
  return terms_.size() == 1 && terms_[0].atoms.empty() && terms_[0].factor == value;
}

void Polynomial::add(const Term& term) {
  if (!known_ || term.factor == 0) return;
  const auto at = std::lower_bound(terms_.begin(), terms_.end(), term,
                                   [](const Term& a, const Term& b) { return a.atoms < b.atoms; });
  if (at == terms_.end() || at->atoms != term.atoms) {
    if (terms_.size() >= kMaxTerms || term.atoms.size() > kMaxAtoms)
      *this = unknown();
    else
      terms_.insert(at, term);
    return;
  }
  if (__builtin_add_overflow(at->factor, term.factor, &at->factor)) {
    *this = unknown();
  } else if (at->factor == 0) {
    terms_.erase(at);
  }
}

Polynomial Polynomial::operator+(const Polynomial& other) const {
  if (!other.known_) return other;
  Polynomial result = *this;
  for (const Term& term : other.terms_) result.add(term);
  return result;
}

Polynomial Polynomial::operator-(const Polynomial& other) const { return *this + other * Polynomial(-1); }

Polynomial Polynomial::operator*(const Polynomial& other) const {
  if (!known_ || !other.known_) return unknown();
  Polynomial result;
  for (const Term& a : terms_)
    for (const Term& b : other.terms_) {
      Term product;
      if (__builtin_mul_overflow(a.factor, b.factor, &product.factor)) return unknown();
      std::merge(a.atoms.begin(), a.atoms.end(), b.atoms.begin(), b.atoms.end(), std::back_inserter(product.atoms));
      result.add(product);
    }
  return result;
}

bool Polynomial::split(const Polynomial& divisor, Polynomial& quotient, Polynomial& rest) const {
  quotient = rest = Polynomial();
  if (!known_ || !divisor.known_ || divisor.terms_.size() != 1 || divisor.terms_[0].factor <= 0) return false;
  const Term& by = divisor.terms_[0];
  for (const Term& term : terms_) {
    Term part;
    if (term.factor % by.factor == 0 && divides(by.atoms, term.atoms, part.atoms)) {
      part.factor = term.factor / by.factor;
      quotient.add(part);
    } else {
      rest.add(term);
    }
  }
  return true;
}

bool Polynomial::coefficient(Atom atom, Polynomial& factor, Polynomial& rest) const {
  factor = rest = Polynomial();
  if (!known_) return false;
  for (const Term& term : terms_) {
    const auto count = std::count(term.atoms.begin(), term.atoms.end(), atom);
    if (count > 1) return false;
    if (count == 0) {
      rest.add(term);
      continue;
    }
    Term part = term;
    part.atoms.erase(std::find(part.atoms.begin(), part.atoms.end(), atom));
    factor.add(part);
  }
  return true;
}

Atom Atoms::size(uint8_t bits) {
  known_.push_back({.bits = bits, .is_size = true, .value = {}, .divisor = {}, .data = {}});
  return static_cast<Atom>(known_.size()) - 1;
}

Atom Atoms::size_or_zero(uint8_t bits) {
  const Atom atom = size(bits);
  known_.back().may_be_zero = true;
  return atom;
}

Atom Atoms::loop(uint8_t bits, Polynomial last) {
  const Atom atom = index(bits, std::move(last));
  known_.back().is_loop = true;
  return atom;
}

Atom Atoms::any(uint8_t bits) {
  const Atom atom = index(bits);
  known_.back().may_be_negative = true;
  return atom;
}

bool Atoms::grows(const Polynomial& value) const {
  if (!value.known()) return false;
  for (const Term& term : value.terms())
    for (const Atom atom : term.atoms) {
      const Known& known = known_[static_cast<size_t>(atom)];
      if (known.falls || ((known.bits & kSized) != 0 && (term.factor < 0 || known.may_be_negative))) return false;
    }
  return true;
}

void Atoms::add_facts(const Polynomial& value, std::vector<Polynomial>& facts) const {
  for (const Term& term : value.terms())
    for (const Atom atom : term.atoms) {
      const Known& known = known_[static_cast<size_t>(atom)];
      const Polynomial self = Polynomial::of(atom);
      if (known.kind == '/' && !known.may_be_negative) {
        facts.push_back(known.value - known.divisor * self);
        facts.push_back(known.divisor * self + known.divisor - Polynomial(1) - known.value);
      } else if (known.kind == '>') {
        facts.push_back(self - known.value);
        facts.push_back(self - known.divisor);
      }
    }
}

std::optional<int64_t> Atoms::number(const Polynomial& value, const Places& of) const {
  if (!value.known()) return std::nullopt;
  int64_t sum = 0;
  for (const Term& term : value.terms()) {
    int64_t product = term.factor;
    for (const Atom atom : term.atoms) {
      const std::optional<int64_t> factor = number(atom, of);
      if (!factor || __builtin_mul_overflow(product, *factor, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

std::optional<int64_t> Atoms::number(Atom atom, const Places& of) const {
  const Known& known = known_[static_cast<size_t>(atom)];
  if (known.kind == 0) return of(atom);
  const std::optional<int64_t> value = number(known.value, of), divisor = number(known.divisor, of);
  if (!value || !divisor) return std::nullopt;
  if (known.kind == '>') return std::max(*value, *divisor);
  if (*divisor <= 0) return std::nullopt;
  const int64_t rest = (*value % *divisor + *divisor) % *divisor;
  return known.kind == '%' ? rest : (*value - rest) / *divisor;
}

Atom Atoms::index(uint8_t bits, Polynomial last) {
  known_.push_back({.bits = bits, .last = std::move(last), .value = {}, .divisor = {}, .data = {}});
  return static_cast<Atom>(known_.size()) - 1;
}

uint8_t Atoms::nature(const Polynomial& value) const {
  if (!value.known()) return kStray;
  uint8_t bits = kFixed;
  for (const Term& term : value.terms())
    for (const Atom atom : term.atoms) bits |= nature(atom);
  return bits;
}

std::vector<Atom> Atoms::data(const Polynomial& value) const {
  std::vector<Atom> found;
  for (const Term& term : value.terms())
    for (const Atom atom : term.atoms) {
      const Known& known = known_[static_cast<size_t>(atom)];
      if (known.bits == kData && known.data.empty()) found.push_back(atom);
      found.insert(found.end(), known.data.begin(), known.data.end());
    }
  return found;
}

// The largest value as a polynomial of sizes; unknown if there is no bound.
Polynomial Atoms::largest(const Polynomial& value) const {
  if (!value.known()) return value;
  Polynomial result;
  for (const Term& term : value.terms()) {
    Polynomial product(term.factor);
    for (const Atom atom : term.atoms) {
      const Known& known = known_[static_cast<size_t>(atom)];
      if (known.may_be_negative) return Polynomial::unknown();
      if (known.is_size)
        product = product * Polynomial::of(atom);
      else if (term.factor < 0)
        product = Polynomial();  // an index may be 0
      else
        product = product * known.last;
    }
    result = result + product;
  }
  return result;
}

// For a polynomial of sizes: whether each negative term is outweighed by a positive term with all its atoms, and no
// others that may be 0.
bool Atoms::not_negative(const Polynomial& value) const {
  if (!value.known()) return false;
  std::vector<Term> positive;
  for (const Term& term : value.terms()) {
    for (const Atom atom : term.atoms)
      if (!known_[static_cast<size_t>(atom)].is_size) return false;
    if (term.factor > 0) positive.push_back(term);
  }
  std::vector<Atom> rest;
  for (const Term& term : value.terms()) {
    int64_t missing = term.factor < 0 ? -term.factor : 0;
    for (Term& other : positive) {
      if (missing <= 0) break;
      if (!divides(term.atoms, other.atoms, rest)) continue;
      if (std::any_of(rest.begin(), rest.end(),
                      [&](Atom atom) { return known_[static_cast<size_t>(atom)].may_be_zero; }))
        continue;
      const int64_t taken = std::min(missing, other.factor);
      other.factor -= taken;
      missing -= taken;
    }
    if (missing > 0) return false;
  }
  return true;
}

// At the smallest value, indices that add are 0, and indices that subtract are largest.
bool Atoms::at_least_zero(const Polynomial& value) const {
  return not_negative(largest(value * Polynomial(-1)) * Polynomial(-1));
}

bool Atoms::within(const Polynomial& value, const Polynomial& bound) const {
  return at_least_zero(value) && not_negative(bound - Polynomial(1) - largest(value));
}

Atom Atoms::made_of(char kind, const Polynomial& value, const Polynomial& divisor, Polynomial last) {
  std::string key(1, kind);
  for (const Polynomial* part : {&value, &divisor}) {
    for (const Term& term : part->terms()) {
      key += std::to_string(term.factor);
      for (const Atom atom : term.atoms) key.append("*").append(std::to_string(atom));
      key += '+';
    }
    key += '/';
  }
  const auto [at, added] = made_.emplace(key, static_cast<Atom>(known_.size()));
  if (!added) return at->second;
  auto bits = static_cast<uint8_t>(nature(value) | nature(divisor));
  if ((bits & kPlaced) != 0) bits |= kStray;
  std::vector<Atom> data;
  for (const Polynomial* part : {&value, &divisor})
    for (const Atom atom : this->data(*part))
      if (std::find(data.begin(), data.end(), atom) == data.end()) data.push_back(atom);
  if (data.size() > kMaxTerms) {
    data.clear();
    bits |= kStray;
  }
  known_.push_back({.bits = bits,
                    .is_size = false,
                    .may_be_negative = kind == '>' || (kind == '/' && !at_least_zero(value)),
                    .last = std::move(last),
                    .falls = !grows(value) || (nature(divisor) & kSized) != 0,
                    .kind = kind,
                    .value = value,
                    .divisor = divisor,
                    .data = std::move(data)});
  return at->second;
}

Polynomial Atoms::quotient(const Polynomial& value, const Polynomial& divisor) {
  Polynomial whole, rest;
  if (!value.split(divisor, whole, rest)) return Polynomial::unknown();
  if (within(rest, divisor)) return whole;
  Polynomial last = Polynomial::unknown();
  const Polynomial most = largest(rest);
  // floor((w * d - n) / d) <= w - 1 for n >= 1.
  Polynomial ends, behind;
  if (most.split(divisor, ends, behind) && !ends.is(0) && at_least_zero(Polynomial() - behind - Polynomial(1)))
    last = ends - Polynomial(1);
  // Otherwise, only a positive number with a numeric bound has a bound.
  const auto number = [](const Polynomial& p) {
    return p.known() && p.terms().size() == 1 && p.terms()[0].atoms.empty();
  };
  if (number(most) && number(divisor) && most.terms()[0].factor > 0)
    last = Polynomial(most.terms()[0].factor / divisor.terms()[0].factor);
  return whole + Polynomial::of(made_of('/', rest, divisor, last));
}

Polynomial Atoms::truncated(const Polynomial& value, const Polynomial& divisor) {
  Polynomial whole, rest;
  if (value.split(divisor, whole, rest) && rest.is(0)) return whole;
  if ((nature(value) & (kPlaced | kSized)) != 0 && !at_least_zero(value)) return Polynomial::unknown();
  return quotient(value, divisor);
}

Polynomial Atoms::remainder(const Polynomial& value, const Polynomial& divisor) {
  if ((nature(value) & (kPlaced | kSized)) != 0 && !at_least_zero(value)) return Polynomial::unknown();
  Polynomial whole, rest;
  if (!value.split(divisor, whole, rest)) return Polynomial::unknown();
  if (within(rest, divisor)) return rest;
  return Polynomial::of(made_of('%', rest, divisor, divisor - Polynomial(1)));
}

Polynomial Atoms::larger(const Polynomial& a, const Polynomial& b) {
  if (!a.known() || !b.known()) return Polynomial::unknown();
  return Polynomial::of(made_of('>', a, b, Polynomial::unknown()));
}

}  // namespace sconce::rows
