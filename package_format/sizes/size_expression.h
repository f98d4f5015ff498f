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

namespace sconce {

class SizeExpression {
 public:
  // How a value depends on one symbol while all others stay.
  enum class Growth : uint8_t {
    kNone,    // it does not
    kAffine,  // by a*s + b; a may depend on the others, and may be 0
    kStrict,  // it grows with s, for all s from 0 on
    kOther,
  };

  // Reads C++ and Python, as sympy's printers of torch 2.6 to 2.15 write them. nullopt if the text is no expression of
  // integers, or is too long or too deep: it comes from a package.
  static std::optional<SizeExpression> parse(std::string_view text);

  // Names in the order in which the text has them, each once.
  const std::vector<std::string>& symbols() const noexcept { return symbols_; }
  // The expression is the one symbol, and nothing else.
  bool is_symbol() const noexcept { return code_.size() == 1 && code_[0].op == Op::kSymbol; }
  // In Python's form, which parse() reads: "s0 // 2", "Max(s0, s1)".
  std::string text() const;
  // The same with other names, one for each of symbols().
  SizeExpression renamed(std::vector<std::string> names) const;
  // The same for value() alone, with the value of symbols()[i] at places[i] among all values.
  SizeExpression placed(std::span<const size_t> places) const;
  // values: one for each of symbols(). nullopt if a number leaves 64 bits, or at a division by 0. Does not allocate.
  std::optional<int64_t> value(std::span<const int64_t> values) const noexcept;
  // Symbols may be 0 or more. symbol: its place in symbols().
  Growth growth(size_t symbol) const;

 private:
  enum class Op : uint8_t { kNumber, kSymbol, kAdd, kSubtract, kMultiply, kDivide, kRemainder, kMinimum, kMaximum };
  struct Instruction {
    Op op;
    int64_t operand;  // a number, or the place of a symbol
  };
  friend class SizeExpressionReader;
  static constexpr size_t kMaxDepth = 24;  // of values on evaluation's stack

  std::vector<Instruction> code_;  // postfix
  std::vector<std::string> symbols_;
};

}  // namespace sconce
