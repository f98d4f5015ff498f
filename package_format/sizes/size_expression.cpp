#include "package_format/sizes/size_expression.h"

#include <algorithm>
#include <array>
#include <utility>

#include "package_format/text/source_text.h"

namespace sconce {
namespace {

constexpr size_t kMaxText = 4096, kMaxInstructions = 256;
constexpr int kMaxNesting = 48;

}  // namespace

// A recursive descent parser; each function returns false if the text is not an expression of integers.
class SizeExpressionReader {
 public:
  explicit SizeExpressionReader(std::string_view text) : text_(text) {}

  std::optional<SizeExpression> read() {
    if (text_.size() > kMaxText || !sum()) return std::nullopt;
    blanks();
    if (!text_.empty()) return std::nullopt;
    return std::move(made_);
  }

 private:
  using Op = SizeExpression::Op;

  void blanks() noexcept { text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size())); }
  bool next(std::string_view mark) noexcept {
    blanks();
    return skip(text_, mark);
  }
  bool push(Op op, int64_t operand) {
    made_.code_.push_back({op, operand});
    depth_ += op == Op::kNumber || op == Op::kSymbol ? 1 : -1;
    return depth_ <= SizeExpression::kMaxDepth && made_.code_.size() <= kMaxInstructions;
  }
  bool join(Op op) { return push(op, 0); }

  bool sum() {
    if (++nesting_ > kMaxNesting || !product()) return false;
    for (;;) {
      if (next("+")) {
        if (!product() || !join(Op::kAdd)) return false;
      } else if (next("-")) {
        if (!product() || !join(Op::kSubtract)) return false;
      } else {
        --nesting_;
        return true;
      }
    }
  }

  bool product() {
    if (!factor()) return false;
    for (;;) {
      if (next("**")) return false;  // power() has consumed the known ones
      if (next("//")) {
        if (!factor() || !join(Op::kDivide)) return false;
      } else if (next("*")) {
        if (!factor() || !join(Op::kMultiply)) return false;
      } else if (next("%")) {
        if (!factor() || !join(Op::kRemainder)) return false;
      } else {
        return true;
      }
    }
  }

  bool factor() {
    if (next("-")) return push(Op::kNumber, 0) && factor() && join(Op::kSubtract);
    return power();
  }

  // A power with a small exponent is a product.
  bool power() {
    const size_t from = made_.code_.size();
    if (!atom()) return false;
    if (!next("**")) return true;
    blanks();
    const std::optional<int64_t> exponent = skip_integer(text_);
    if (!exponent || *exponent < 1 || *exponent > 8) return false;
    const std::vector<SizeExpression::Instruction> base(made_.code_.begin() + static_cast<long>(from),
                                                        made_.code_.end());
    for (int64_t i = 1; i < *exponent; ++i) {
      for (const auto& [op, operand] : base)
        if (!push(op, operand)) return false;
      if (!join(Op::kMultiply)) return false;
    }
    return true;
  }

  bool atom() {
    blanks();
    if (text_.empty()) return false;
    if (next("(")) return sum() && next(")");
    if (text_.front() >= '0' && text_.front() <= '9') {
      const std::optional<int64_t> number = skip_integer(text_);
      if (!number) return false;
      skip(text_, "LL") || skip(text_, "L");
      return (text_.empty() || (!is_word(text_.front()) && text_.front() != '.')) && push(Op::kNumber, *number);
    }
    return named();
  }

  // "s77", "std::max<int64_t>({s0, s1, s2})", "static_cast<int64_t>(s0)"
  bool named() {
    const std::string_view all = text_;
    for (;;) {
      if (skip_word(text_).empty()) return false;
      if (!skip(text_, "::")) break;
    }
    const std::string_view name = all.substr(0, all.size() - text_.size());
    std::string_view type;
    if (skip(text_, "<")) {
      const auto inner = skip_to(text_, ">");
      if (!inner) return false;
      type = *inner;
    }
    if (!type.empty() && type != "int64_t" && type != "long" && type != "int32_t") return false;
    blanks();
    return skip(text_, "(") ? call(name) : type.empty() && symbol(name);
  }

  bool symbol(std::string_view name) {
    if (name.find(':') != std::string_view::npos) return false;
    auto& symbols = made_.symbols_;
    const auto at = std::find(symbols.begin(), symbols.end(), name);
    const auto place = static_cast<int64_t>(at - symbols.begin());
    if (at == symbols.end()) symbols.emplace_back(name);
    return push(Op::kSymbol, place);
  }

  // The arguments and the closing bracket.
  bool call(std::string_view name) {
    if (name == "static_cast" || name == "Identity") return sum() && next(")");
    if (name == "CeilDiv") {  // -(-a // b)
      return push(Op::kNumber, 0) && push(Op::kNumber, 0) && sum() && join(Op::kSubtract) && next(",") && sum() &&
             join(Op::kDivide) && join(Op::kSubtract) && next(")");
    }
    if (name == "ModularIndexing")
      return sum() && next(",") && sum() && join(Op::kDivide) && next(",") && sum() && join(Op::kRemainder) &&
             next(")");
    struct Function {
      std::string_view name;
      Op op;
      bool many;
    };
    static constexpr Function kFunctions[] = {
        {"c10::div_floor_integer", Op::kDivide, false},
        {"FloorDiv", Op::kDivide, false},
        {"CleanDiv", Op::kDivide, false},
        {"c10::div_mod", Op::kRemainder, false},
        {"Mod", Op::kRemainder, false},
        {"PythonMod", Op::kRemainder, false},
        {"std::max", Op::kMaximum, true},
        {"std::min", Op::kMinimum, true},
        {"Max", Op::kMaximum, true},
        {"Min", Op::kMinimum, true},
        {"max", Op::kMaximum, true},
        {"min", Op::kMinimum, true},
    };
    for (const Function& function : kFunctions)
      if (name == function.name) return arguments(function.op, function.many);
    return false;
  }

  bool arguments(Op op, bool many) {
    const bool braces = next("{");
    if (!sum()) return false;
    size_t count = 1;
    for (; next(","); ++count)
      if (!sum() || !join(op)) return false;
    return (many || count == 2) && (!braces || next("}")) && next(")");
  }

  std::string_view text_;
  SizeExpression made_;
  size_t depth_ = 0;
  int nesting_ = 0;
};

std::optional<SizeExpression> SizeExpression::parse(std::string_view text) { return SizeExpressionReader(text).read(); }

std::string SizeExpression::text() const {
  // The precedence of a part: a sum, a product, or a single piece.
  struct Part {
    std::string text;
    int binding;  // 1: sum, 2: product, 3: one piece
  };
  std::vector<Part> parts;
  const auto at_least = [](Part part, int binding) {
    return part.binding >= binding ? std::move(part.text) : "(" + part.text + ")";
  };
  for (const auto& [op, operand] : code_) {
    if (op == Op::kNumber) {
      parts.push_back({std::to_string(operand), 3});
      continue;
    }
    if (op == Op::kSymbol) {
      parts.push_back({symbols_[static_cast<size_t>(operand)], 3});
      continue;
    }
    Part right = std::move(parts.back());
    parts.pop_back();
    Part left = std::move(parts.back());
    switch (op) {
      case Op::kAdd:
        parts.back() = {left.text + " + " + at_least(std::move(right), 2), 1};
        break;
      case Op::kSubtract:
        if (left.text == "0")
          parts.back() = {"-" + at_least(std::move(right), 3), 1};
        else
          parts.back() = {left.text + " - " + at_least(std::move(right), 2), 1};
        break;
      case Op::kMultiply:
        parts.back() = {at_least(std::move(left), 2) + "*" + at_least(std::move(right), 3), 2};
        break;
      case Op::kDivide:
        parts.back() = {at_least(std::move(left), 3) + " // " + at_least(std::move(right), 3), 2};
        break;
      case Op::kRemainder:
        parts.back() = {at_least(std::move(left), 3) + " % " + at_least(std::move(right), 3), 2};
        break;
      default:
        parts.back() = {(op == Op::kMinimum ? "Min(" : "Max(") + left.text + ", " + right.text + ")", 3};
    }
  }
  return std::move(parts.back().text);
}

SizeExpression SizeExpression::renamed(std::vector<std::string> names) const {
  SizeExpression other = *this;
  other.symbols_ = std::move(names);
  return other;
}

SizeExpression SizeExpression::placed(std::span<const size_t> places) const {
  SizeExpression other = *this;
  for (Instruction& instruction : other.code_)
    if (instruction.op == Op::kSymbol)
      instruction.operand = static_cast<int64_t>(places[static_cast<size_t>(instruction.operand)]);
  other.sum_ = other.as_sum();
  return other;
}

std::optional<SizeSum> SizeExpression::as_sum() const {
  std::vector<SizeSum> parts;
  for (const auto& [op, operand] : code_) {
    std::optional<SizeSum> part;
    if (op == Op::kNumber) {
      part = SizeSum::of_number(operand);
    } else if (op == Op::kSymbol) {
      part = SizeSum::of_symbol(static_cast<size_t>(operand));
    } else {
      const SizeSum right = parts.back();
      parts.pop_back();
      const SizeSum left = parts.back();
      parts.pop_back();
      if (op == Op::kMultiply) part = SizeSum::multiplied(left, right);
      if (op == Op::kAdd || op == Op::kSubtract) part = SizeSum::added(left, right, op == Op::kAdd ? 1 : -1);
    }
    if (!part) return std::nullopt;
    parts.push_back(*part);
  }
  return parts.back();
}

std::optional<int64_t> SizeExpression::computed(std::span<const int64_t> values) const noexcept {
  std::array<int64_t, kMaxDepth> stack;
  size_t top = 0;
  for (const auto& [op, operand] : code_) {
    if (op == Op::kNumber || op == Op::kSymbol) {
      stack[top++] = op == Op::kNumber ? operand : values[static_cast<size_t>(operand)];
      continue;
    }
    const int64_t right = stack[--top];
    int64_t& left = stack[top - 1];
    switch (op) {
      case Op::kAdd:
        if (__builtin_add_overflow(left, right, &left)) return std::nullopt;
        break;
      case Op::kSubtract:
        if (__builtin_sub_overflow(left, right, &left)) return std::nullopt;
        break;
      case Op::kMultiply:
        if (__builtin_mul_overflow(left, right, &left)) return std::nullopt;
        break;
      case Op::kDivide:
      case Op::kRemainder: {
        if (right == 0 || (right == -1 && left == INT64_MIN)) return std::nullopt;
        const int64_t remainder = left % right;
        const bool down = remainder != 0 && (remainder < 0) != (right < 0);
        left = op == Op::kDivide ? left / right - (down ? 1 : 0) : remainder + (down ? right : 0);
        break;
      }
      case Op::kMinimum:
        left = std::min(left, right);
        break;
      default:
        left = std::max(left, right);
    }
  }
  return stack[0];
}

SizeExpression::Growth SizeExpression::growth(size_t symbol) const {
  struct Part {
    bool has = false;      // contains the symbol
    bool affine = true;    // is affine in it
    bool strict = false;   // increases with it
    bool natural = false;  // 0 or more
    bool positive = false;
  };
  std::vector<Part> parts;
  for (const auto& [op, operand] : code_) {
    if (op == Op::kNumber) {
      parts.push_back({.natural = operand >= 0, .positive = operand > 0});
      continue;
    }
    if (op == Op::kSymbol) {
      const bool it = static_cast<size_t>(operand) == symbol;
      parts.push_back({.has = it, .strict = it, .natural = true});
      continue;
    }
    const Part right = parts.back();
    parts.pop_back();
    const Part left = parts.back();
    Part& both = parts.back();
    both = {.has = left.has || right.has, .affine = !left.has && !right.has};
    switch (op) {
      case Op::kAdd:
        both.affine = left.affine && right.affine;
        both.strict = (left.strict && (right.strict || !right.has)) || (right.strict && !left.has);
        both.natural = left.natural && right.natural;
        both.positive = both.natural && (left.positive || right.positive);
        break;
      case Op::kSubtract:
        both.affine = left.affine && right.affine;
        both.strict = left.strict && !right.has;
        break;
      case Op::kMultiply:
        both.affine = (!left.has && right.affine) || (!right.has && left.affine);
        both.strict = (left.strict && right.strict && left.natural && right.natural) ||
                      (left.strict && !right.has && right.positive) || (right.strict && !left.has && left.positive);
        both.natural = left.natural && right.natural;
        both.positive = left.positive && right.positive;
        break;
      case Op::kDivide:
        both.natural = left.natural && right.natural;
        break;
      case Op::kRemainder:
        both.natural = right.natural;
        break;
      case Op::kMinimum:
        both.natural = left.natural && right.natural;
        both.positive = left.positive && right.positive;
        break;
      default:
        both.natural = left.natural || right.natural;
        both.positive = left.positive || right.positive;
    }
  }
  const Part& all = parts.back();
  if (!all.has) return Growth::kNone;
  return all.affine ? Growth::kAffine : all.strict ? Growth::kStrict : Growth::kOther;
}

}  // namespace sconce
