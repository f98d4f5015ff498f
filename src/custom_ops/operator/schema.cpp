#include "src/custom_ops/operator/schema.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "sconce/check.h"
#include "src/support/parse_number.h"

namespace sconce::custom_ops {
namespace {

constexpr size_t kMaxText = 1 << 16;
constexpr int kMaxNesting = 8;
constexpr size_t kMaxListSize = 4096;  // a single default of a fixed-size list is repeated

constexpr std::pair<std::string_view, TypeKind> kTypes[] = {
    {"Tensor", TypeKind::kTensor},
    {"int", TypeKind::kInt},
    {"SymInt", TypeKind::kInt},
    {"float", TypeKind::kFloat},
    {"SymFloat", TypeKind::kFloat},
    {"bool", TypeKind::kBool},
    {"SymBool", TypeKind::kBool},
    {"Scalar", TypeKind::kScalar},
    {"number", TypeKind::kScalar},
    {"str", TypeKind::kString},
    {"ScalarType", TypeKind::kDType},
    {"Layout", TypeKind::kLayout},
    {"MemoryFormat", TypeKind::kMemoryFormat},
    {"Device", TypeKind::kDevice},
    {"Generator", TypeKind::kGenerator},
};

// Names of numbers in defaults.
constexpr std::pair<std::string_view, int64_t> kNamedNumbers[] = {
    {"Mean", 1},
    {"Sum", 2},
    {"contiguous_format", 0},
    {"preserve_format", 1},
    {"channels_last", 2},
    {"channels_last_3d", 3},
    {"strided", 0},
    {"sparse_coo", 1},
    {"_mkldnn", 3},
    {"uint8", 0},
    {"int8", 1},
    {"short", 2},
    {"int16", 2},
    {"int", 3},
    {"int32", 3},
    {"long", 4},
    {"int64", 4},
    {"half", 5},
    {"float16", 5},
    {"float", 6},
    {"float32", 6},
    {"double", 7},
    {"float64", 7},
    {"complex64", 9},
    {"complex128", 10},
    {"bool", 11},
    {"bfloat16", 15},
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view default_ns) : text_(text), default_ns_(default_ns) {
    SCONCE_CHECK(text.size() <= kMaxText, kInvalidArgument, "schema of ", text.size(), " characters: too long");
  }

  Schema schema() {
    Schema result = operator_name();
    expect('(');
    bool keyword_only = false;
    if (!accept(')')) {
      do {
        if (accept('*')) {
          if (keyword_only) fail("a second *");
          keyword_only = true;
          continue;
        }
        result.arguments.push_back(argument());
        result.arguments.back().keyword_only = keyword_only;
      } while (accept(','));
      expect(')');
    }
    for (size_t i = 0; i < result.arguments.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (result.arguments[i].name == result.arguments[j].name)
          fail("two arguments are named ", result.arguments[i].name);
    expect('-');
    expect('>');
    if (accept('(')) {
      if (!accept(')')) {
        do result.results.push_back(result_type());
        while (accept(','));
        expect(')');
      }
    } else {
      result.results.push_back(result_type());
    }
    skip();
    if (at_ != text_.size()) fail("text after the results");
    return result;
  }

  Schema operator_name() {
    Schema result;
    result.ns = default_ns_;
    result.name = word("the operator's name");
    if (text_.substr(at_).starts_with("::")) {
      at_ += 2;
      result.ns = std::exchange(result.name, word("the operator's name"));
    }
    if (result.ns.empty()) fail("no namespace");
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      result.overload = word("the overload's name");
    }
    return result;
  }

  void end() {
    skip();
    if (at_ != text_.size()) fail("text after the name");
  }

 private:
  template <class... What>
  [[noreturn]] void fail(const What&... what) const {
    SCONCE_FAIL(kInvalidArgument, "schema '", text_.substr(0, 200), text_.size() > 200 ? "..." : "", "': ", what...,
                " at character ", at_);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("expected '", c, "'");
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::string word(const char* what) {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) fail("expected ", what);
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Reads "(a!)", "(a -> *)" or "(a|b)"; keeps the names before the arrow.
  void alias(SchemaArgument& to) {
    const auto names = [&](bool keep) {
      do {
        if (accept('*')) {
          if (keep) to.alias.assign(1, '*');
        } else {
          std::string name = word("an alias");
          if (keep && to.alias.empty()) to.alias = std::move(name);
        }
      } while (accept('|'));
      if (accept('!')) to.written = true;
    };
    names(true);
    if (accept('-')) {
      expect('>');
      names(false);
    }
    expect(')');
  }

  void type(SchemaArgument& to) {
    skip();
    std::string name = word("a type");
    while (at_ < text_.size() && text_[at_] == '.') {  // __torch__.torch.classes.X
      ++at_;
      name += '.';
      name += word("a type");
    }
    Type parsed;
    for (const auto& [known, kind] : kTypes)
      if (known == name) parsed.kind = kind;
    if (parsed.kind == TypeKind::kOther) {
      if (at_ < text_.size() && text_[at_] == '(' && name == "Dict") {
        const size_t begin = at_;
        int depth = 0;
        do {
          if (at_ >= text_.size()) fail("an open (");
          depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
          ++at_;
        } while (depth > 0);
        name += text_.substr(begin, at_ - begin);
      }
      parsed.name = name;
    }
    for (int nesting = 0;; ++nesting) {
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (c != '(' && c != '[' && c != '?') break;
      if (nesting == kMaxNesting) fail("a type of too many parts");
      ++at_;
      if (c == '(') {
        if (!to.alias.empty()) fail("a second alias");
        alias(to);
        continue;
      }
      Type outer;
      outer.kind = c == '?' ? TypeKind::kOptional : TypeKind::kList;
      if (c == '[' && peek() != ']') {
        outer.list_size = integer();
        if (outer.list_size < 1 || outer.list_size > static_cast<int64_t>(kMaxListSize))
          fail("a list size out of range");
      }
      if (c == '[') expect(']');
      outer.element = std::make_shared<const Type>(std::move(parsed));
      parsed = std::move(outer);
    }
    to.type = std::move(parsed);
  }

  SchemaArgument argument() {
    SchemaArgument result;
    type(result);
    result.name = word("an argument's name");
    if (accept('=')) result.default_value = default_value(result.type, 0);
    return result;
  }

  SchemaArgument result_type() {
    SchemaArgument result;
    type(result);
    if (is_word(peek())) result.name = word("a result's name");
    return result;
  }

  int64_t integer() {
    skip();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  Value number(const Type& type) {
    skip();
    const size_t begin = at_;
    size_t end = at_;
    const auto is_number = [](char c) {
      return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+';
    };
    while (end < text_.size() && is_number(text_[end]) &&
           (end == begin || (text_[end] != '-' && text_[end] != '+') || text_[end - 1] == 'e' || text_[end - 1] == 'E'))
      ++end;
    const std::string_view token = text_.substr(begin, end - begin);
    const bool real = token.find_first_of(".eE") != std::string_view::npos;
    const bool imaginary = end < text_.size() && text_[end] == 'j';
    if (!real && !imaginary) {
      const int64_t value = integer();
      if (type.kind == TypeKind::kFloat) return static_cast<double>(value);
      if (type.kind == TypeKind::kBool) return value != 0;
      return value;
    }
    const auto value = parse_number<double>(token);
    if (!value) fail("expected a number");
    at_ = end + (imaginary ? 1 : 0);
    if (imaginary) return std::complex<double>(0, *value);
    if (type.kind != TypeKind::kFloat && type.kind != TypeKind::kScalar) fail("a fraction for ", type.text());
    return *value;
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char c = text_[++at_];
        value += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else {
        value += text_[at_];
      }
      ++at_;
    }
    if (at_ >= text_.size()) fail("an open string");
    ++at_;
    return value;
  }

  Value default_value(const Type& type, int depth) {
    if (depth > kMaxNesting) fail("a default of too many parts");
    const char c = peek();
    if (type.optional()) {
      if (text_.substr(at_).starts_with("None")) {
        at_ += 4;
        return {};
      }
      return default_value(*type.element, depth + 1);
    }
    if (type.kind == TypeKind::kList) {
      Value::List items;
      if (accept('[')) {
        if (!accept(']')) {
          do {
            if (items.size() == kMaxListSize) fail("a list too long");
            items.push_back(default_value(*type.element, depth + 1));
          } while (accept(','));
          expect(']');
        }
      } else if (text_.substr(at_).starts_with("None")) {  // PyTorch allows this for Tensor[]?
        fail("None for ", type.text());
      } else {
        const Value item = default_value(*type.element, depth + 1);
        items.assign(static_cast<size_t>(std::max<int64_t>(type.list_size, 1)), item);
      }
      return pack_list(type, std::move(items));
    }
    if (c == '"' || c == '\'') {
      std::string value = quoted();
      if (type.kind == TypeKind::kDevice) return parse_device(value);
      if (type.kind != TypeKind::kString) fail("a string for ", type.text());
      return value;
    }
    const bool negative = c == '-' && at_ + 1 < text_.size() && text_[at_ + 1] == 'i';
    if ((c >= '0' && c <= '9') || c == '.' || (c == '-' && !negative)) return number(type);
    if (negative) ++at_;
    const std::string name = word("a default value");
    const bool takes_reals = type.kind == TypeKind::kFloat || type.kind == TypeKind::kScalar;
    if (name == "inf" && takes_reals)
      return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    if (name == "nan" && takes_reals) return std::numeric_limits<double>::quiet_NaN();
    if (name == "True" || name == "False") {
      if (type.kind != TypeKind::kBool && type.kind != TypeKind::kScalar) fail(name, " for ", type.text());
      return name == "True";
    }
    if (type.kind == TypeKind::kDevice) return parse_device(name);
    if (type.kind == TypeKind::kDType || type.kind == TypeKind::kLayout || type.kind == TypeKind::kMemoryFormat ||
        type.kind == TypeKind::kInt)
      for (const auto& [known, value] : kNamedNumbers)
        if (known == name) return value;
    fail("a default '", name, "' for ", type.text());
  }

  static Value pack_list(const Type& type, Value::List items) {
    if (type.element->kind == TypeKind::kInt) {
      Value::Ints values;
      for (const Value& item : items) values.push_back(item.to_int());
      return values;
    }
    if (type.element->kind == TypeKind::kFloat) {
      Value::Reals values;
      for (const Value& item : items) values.push_back(item.to_double());
      return values;
    }
    return items;
  }

  std::string_view text_, default_ns_;
  size_t at_ = 0;
};

}  // namespace

std::string Type::text() const {
  if (kind == TypeKind::kOptional) return element->text().append("?");
  if (kind == TypeKind::kList)
    return element->text().append("[").append(list_size ? std::to_string(list_size) : std::string()).append("]");
  for (const auto& [known, of] : kTypes)
    if (of == kind) return std::string(known);
  return name;
}

std::string Schema::qualified() const {
  std::string text = ns;
  text.append("::").append(name);
  if (!overload.empty()) text.append(".").append(overload);
  return text;
}

int Schema::argument(std::string_view argument_name) const noexcept {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name == argument_name) return static_cast<int>(i);
  return -1;
}

Schema parse_schema(std::string_view text, std::string_view default_ns) { return Parser(text, default_ns).schema(); }

Schema parse_operator_name(std::string_view text, std::string_view default_ns) {
  Parser parser(text, default_ns);
  Schema name = parser.operator_name();
  parser.end();
  return name;
}

}  // namespace sconce::custom_ops
