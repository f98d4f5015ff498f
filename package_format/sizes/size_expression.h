// SizeExpression: a size as PyTorch writes it, in terms of symbols: "2*s17", "1 + s77", "(s0*s1) // 4",
// "c10::div_floor_integer(static_cast<int64_t>(s0), static_cast<int64_t>(2L))". Immutable and thread-safe.
//
// Integers are those of 64 bits, division rounds down, and a remainder has the divisor's sign, as in sympy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package_format/sizes/size_sum.h"

namespace sconce {

class SizeExpression {
 public:
  // How a value depends on one symbol while all others stay fixed.
  enum class Growth : uint8_t {
    kNone,    // independent of the symbol
    kAffine,  // by a*s + b; a may depend on the others, and may be 0
    kStrict,  // increases with s, for all s >= 0
    kOther,
  };

  // Reads C++ and Python, as sympy's printers of torch 2.6 to 2.15 write them. nullopt if the text, which comes from a
  // package, is not an expression of integers, or is too long or too deep.
  static std::optional<SizeExpression> parse(std::string_view text);

  // Names in order of appearance, each once.
  const std::vector<std::string>& symbols() const noexcept { return symbols_; }
  // Whether the expression is a single symbol.
  bool is_symbol() const noexcept { return code_.size() == 1 && code_[0].op == Op::kSymbol; }
  // In Python's form, which parse() reads: "s0 // 2", "Max(s0, s1)".
  std::string text() const;
  // The expression with other names, one for each of symbols().
  SizeExpression renamed(std::vector<std::string> names) const;
  // The expression for value() alone, with the value of symbols()[i] at places[i] among all values.
  SizeExpression placed(std::span<const size_t> places) const;
  // values: one for each of symbols(). nullopt if a number overflows 64 bits, or on division by 0. Does not allocate.
  std::optional<int64_t> value(std::span<const int64_t> values) const noexcept {
    if (sum_)
      if (const std::optional<int64_t> value = sum_->value(values)) return value;
    return computed(values);
  }
  // Of a placed() expression that is a sum.
  const std::optional<SizeSum>& sum() const noexcept { return sum_; }
  // Symbols may be 0 or more. symbol: its index in symbols().
  Growth growth(size_t symbol) const;

 private:
  enum class Op : uint8_t { kNumber, kSymbol, kAdd, kSubtract, kMultiply, kDivide, kRemainder, kMinimum, kMaximum };
  struct Instruction {
    Op op;
    int64_t operand;  // a number, or the index of a symbol
  };
  friend class SizeExpressionReader;
  static constexpr size_t kMaxDepth = 24;  // of values on the evaluation stack

  std::optional<int64_t> computed(std::span<const int64_t> values) const noexcept;
  std::optional<SizeSum> as_sum() const;  // nullopt: it is none

  std::vector<Instruction> code_;  // postfix
  std::vector<std::string> symbols_;
  std::optional<SizeSum> sum_;  // of placed()
};

}  // namespace sconce
