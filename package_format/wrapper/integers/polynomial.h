// Symbolic integers of a run: sizes, loop variables, quotients and remainders, and polynomials of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sconce::rows {

using Atom = int32_t;

// The facts that an integer may depend on, as bits.
enum Nature : uint8_t {
  kFixed = 0,    // only the sizes of other dimensions, and positions within a row
  kBatch = 1,    // the batch size
  kRow = 2,      // a row's position
  kLane = 4,     // the SIMD lane of a vector that spans rows
  kStray = 8,    // the rows, in an unknown way
  kData = 16,    // values of tensors
  kPlaced = 15,  // any of the first four
  kSized = 32,   // any size that is not fixed; used when accesses are examined, not rows
};

struct Term {
  std::vector<Atom> atoms;  // ascending; an atom may occur more than once
  int64_t factor = 0;
  bool operator==(const Term&) const = default;
};

// A sum of products. Results that overflow or grow too long are unknown.
class Polynomial {
 public:
  Polynomial() = default;
  Polynomial(int64_t value);  // NOLINT(google-explicit-constructor)
  static Polynomial of(Atom atom);
  static Polynomial unknown();

  bool known() const noexcept { return known_; }
  bool is(int64_t value) const noexcept;
  const std::vector<Term>& terms() const noexcept { return terms_; }
  bool operator==(const Polynomial&) const = default;

  Polynomial operator+(const Polynomial& other) const;
  Polynomial operator-(const Polynomial& other) const;
  Polynomial operator*(const Polynomial& other) const;

  // Splits the terms into multiples of `divisor`, a single term, and the rest: *this = quotient * divisor + rest.
  // False if the divisor is not a single positive term.
  bool split(const Polynomial& divisor, Polynomial& quotient, Polynomial& rest) const;
  // Splits off the terms with `atom`, divided by it, from the rest. False if a term contains it more than once.
  bool coefficient(Atom atom, Polynomial& factor, Polynomial& rest) const;

 private:
  friend class Atoms;
  void add(const Term& term);
  bool known_ = true;
  std::vector<Term> terms_;  // ascending by atoms; no factor is 0
};

// The atoms of one graph. All atoms are >= 0; sizes are >= 1: code for an empty tensor does nothing.
class Atoms {
 public:
  // A size; `bits` is kBatch for the batch size.
  Atom size(uint8_t bits = kFixed);
  // A size that may be 0.
  Atom size_or_zero(uint8_t bits);
  // An integer in [0, last]; `last` unknown: no bound.
  Atom index(uint8_t bits, Polynomial last = Polynomial::unknown());
  // A loop's variable: it takes each value in [0, last] if that depends only on sizes.
  Atom loop(uint8_t bits, Polynomial last);
  // Any integer.
  Atom any(uint8_t bits);

  // Rounded down.
  Polynomial quotient(const Polynomial& value, const Polynomial& divisor);
  // C++'s `/` and `%`, which differ from quotient() for negative values: unknown where the difference could depend on
  // a row's position.
  Polynomial truncated(const Polynomial& value, const Polynomial& divisor);
  Polynomial remainder(const Polynomial& value, const Polynomial& divisor);
  Polynomial larger(const Polynomial& a, const Polynomial& b);

  uint8_t nature(Atom atom) const { return known_[static_cast<size_t>(atom)].bits; }
  uint8_t nature(const Polynomial& value) const;
  // The largest value of an index; unknown: no bound.
  const Polynomial& last(Atom atom) const { return known_[static_cast<size_t>(atom)].last; }
  bool is_size(Atom atom) const { return known_[static_cast<size_t>(atom)].is_size; }
  bool may_be_zero(Atom atom) const { return known_[static_cast<size_t>(atom)].may_be_zero; }
  bool is_loop(Atom atom) const { return known_[static_cast<size_t>(atom)].is_loop; }
  bool may_be_negative(Atom atom) const { return known_[static_cast<size_t>(atom)].may_be_negative; }
  // For a quotient '/', a remainder '%' or a maximum '>'; the kind is 0 for all others.
  struct Made {
    char kind = 0;
    Polynomial value, divisor;
  };
  Made made(Atom atom) const {
    const Known& known = known_[static_cast<size_t>(atom)];
    return {known.kind, known.value, known.divisor};
  }
  // Whether larger sizes never make the value smaller, judged by its terms.
  bool grows(const Polynomial& value) const;
  // Whether value >= 0 for all values of the atoms; false if unknown.
  bool at_least_zero(const Polynomial& value) const;
  // Adds the known facts about quotients and maxima in the value, as polynomials that are 0 or more.
  void add_facts(const Polynomial& value, std::vector<Polynomial>& facts) const;
  // Whether 0 <= value < bound for all values of the atoms; false if unknown.
  bool within(const Polynomial& value, const Polynomial& bound) const;
  // The number for the sizes and indices given by `of`; nullopt if `of` lacks one, and if the number does not fit.
  // Quotients, remainders and maxima are computed.
  using Places = std::function<std::optional<int64_t>(Atom)>;
  std::optional<int64_t> number(const Polynomial& value, const Places& of) const;
  // Whether there are too many atoms to continue.
  bool exhausted() const noexcept { return known_.size() > 200000; }
  // The atoms of kind kData in the value, those within quotients and remainders included.
  std::vector<Atom> data(const Polynomial& value) const;

 private:
  struct Known {
    uint8_t bits = kFixed;
    bool is_size = false;
    bool may_be_negative = false;
    Polynomial last = Polynomial::unknown();
    bool may_be_zero = false;  // of a size
    bool is_loop = false;
    bool falls = false;         // it may be smaller for larger sizes
    char kind = 0;              // of a quotient '/', remainder '%' or maximum '>'
    Polynomial value, divisor;  // its operands
    std::vector<Atom> data;     // for a quotient or remainder: the atoms of kind kData in its operands
  };
  Atom made_of(char kind, const Polynomial& value, const Polynomial& divisor, Polynomial last);
  std::optional<int64_t> number(Atom atom, const Places& of) const;
  Polynomial largest(const Polynomial& value) const;
  bool not_negative(const Polynomial& value) const;

  std::vector<Known> known_;
  std::unordered_map<std::string, Atom> made_;
};

}  // namespace sconce::rows
