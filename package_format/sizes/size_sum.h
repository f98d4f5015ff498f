// SizeSum: a sum of symbols times fixed numbers, "3*s0 + s1 + 2", which most sizes are. Its value takes a fraction of
// the time that SizeExpression's instructions take, and is the same: where one of these might overflow, it has none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

namespace sconce {

class SizeSum {
 public:
  static SizeSum of_symbol(size_t place) noexcept {
    SizeSum sum;
    sum.terms_[sum.count_++] = {1, place};
    return sum;
  }
  // nullopt for the least number, whose negative overflows.
  static std::optional<SizeSum> of_number(int64_t number) noexcept {
    if (number == INT64_MIN) return std::nullopt;
    SizeSum sum;
    sum.constant_ = number;
    return sum.weighs(std::max<int64_t>(std::abs(number), 1));  // not 0, which would hide the factor of a product
  }

  // left + sign * right, left * right. nullopt if that is no sum, has too many symbols, or a number overflows.
  static std::optional<SizeSum> added(const SizeSum& left, const SizeSum& right, int64_t sign) noexcept {
    SizeSum sum = left;
    int64_t weight = 0;
    if (!sum.add(right, sign) || __builtin_add_overflow(left.weight_, right.weight_, &weight)) return std::nullopt;
    return sum.weighs(weight);
  }
  static std::optional<SizeSum> multiplied(const SizeSum& left, const SizeSum& right) noexcept {
    if (left.count_ > 0 && right.count_ > 0) return std::nullopt;
    SizeSum sum;
    const bool fits = left.count_ > 0 ? sum.add(left, right.constant_) : sum.add(right, left.constant_);
    int64_t weight = 0;
    if (!fits || __builtin_mul_overflow(left.weight_, right.weight_, &weight)) return std::nullopt;
    return sum.weighs(weight);
  }

  // values: at the places of the symbols. nullopt if a symbol is negative, or so large that a step may overflow.
  std::optional<int64_t> value(std::span<const int64_t> values) const noexcept {
    int64_t value = constant_;
    for (size_t i = 0; i < count_; ++i) {
      const int64_t symbol = values[terms_[i].place];
      if (static_cast<uint64_t>(symbol) > most_) return std::nullopt;
      value += terms_[i].factor * symbol;
    }
    return value;
  }

 private:
  struct Term {
    int64_t factor;
    size_t place;
  };
  static constexpr size_t kMaxTerms = 4;

  SizeSum& weighs(int64_t weight) noexcept {
    weight_ = weight;
    most_ = static_cast<uint64_t>(INT64_MAX / weight);
    return *this;
  }

  // Adds the other sum times `factor`, except for its weight. A symbol stays even if its factors add up to 0, because a
  // step of the instructions may overflow all the same.
  bool add(const SizeSum& other, int64_t factor) noexcept {
    const auto add_to = [&](int64_t& to, int64_t number) {
      int64_t product = 0;
      return !__builtin_mul_overflow(number, factor, &product) && !__builtin_add_overflow(to, product, &to);
    };
    if (!add_to(constant_, other.constant_)) return false;
    for (size_t i = 0; i < other.count_; ++i) {
      size_t at = 0;
      while (at < count_ && terms_[at].place != other.terms_[i].place) ++at;
      if (at == kMaxTerms) return false;
      if (at == count_) terms_[count_++] = {0, other.terms_[i].place};
      if (!add_to(terms_[at].factor, other.terms_[i].factor)) return false;
    }
    return true;
  }

  int64_t constant_ = 0;
  int64_t weight_ = 1;         // no step exceeds this times the largest symbol, or times 1
  uint64_t most_ = INT64_MAX;  // no step overflows for symbols of at most this
  size_t count_ = 0;
  std::array<Term, kMaxTerms> terms_{};
};

}  // namespace sconce
