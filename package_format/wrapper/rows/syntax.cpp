#include "package_format/wrapper/rows/syntax.h"

#include <algorithm>
#include <array>

#include "package_format/wrapper/rows/tokens.h"

namespace sconce::rows {

namespace {

constexpr int kDeepest = 400;  // nesting of expressions and statements

// Binding of binary operators; 0: none.
int binding(std::string_view mark) noexcept {
  struct Operator {
    std::string_view mark;
    int binding;
  };
  static constexpr Operator kOperators[] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                                            {"!=", 6}, {"<", 7},  {">", 7},  {"<=", 7}, {">=", 7}, {"<<", 8},
                                            {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
  const auto* at = std::find_if(std::begin(kOperators), std::end(kOperators), [&](const Operator& each) {
    return each.mark.front() == mark.front() && each.mark == mark;
  });
  return at == std::end(kOperators) ? 0 : at->binding;
}

}  // namespace

class Parser {
 public:
  Parser(Syntax& syntax, std::string_view text) : syntax_(syntax), tokens_(tokens_of(text)) {}

  Index expression(int least = 0);
  Index statement();
  Index block();
  Index body();
  bool parameters(std::vector<Parameter>& list);
  std::vector<Index> all_statements();
  bool ended() const { return token().kind == TokenKind::kEnd; }
  // The text that was not understood; empty if all was.
  std::string_view problem() const { return problem_; }

 private:
  struct Depth {
    explicit Depth(Parser& parser) : parser(parser) {
      if (++parser.depth_ > kDeepest) parser.fail();
    }
    ~Depth() { --parser.depth_; }
    Parser& parser;
  };

  const Token& token(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool next(std::string_view text) const {
    const Token& token = this->token();
    // Nearly all differ in the first character, and comparing it costs no call.
    return token.text.size() == text.size() && (text.empty() || token.text.front() == text.front()) &&
           token.text == text && token.kind != TokenKind::kString;
  }
  bool take(std::string_view text) {
    if (!next(text)) return false;
    ++at_;
    return true;
  }
  bool failed() const { return !problem_.empty(); }
  // The text from here to the end of the line.
  std::string_view line() const {
    const char* begin = token().text.data();
    const auto rest = std::string_view(begin, static_cast<size_t>(tokens_.back().text.data() - begin));
    return rest.substr(0, std::min<size_t>(rest.find('\n'), 160));
  }
  Index fail() {
    if (problem_.empty()) problem_ = line();
    if (problem_.empty()) problem_ = "the end of the text";
    return kNothing;
  }
  bool expect(std::string_view text) {
    if (!failed() && take(text)) return true;
    fail();
    return false;
  }
  int depth_of(const std::vector<int>& depths, Index at) const {
    return at == kNothing ? 0 : depths[static_cast<size_t>(at)];
  }
  Index add(Expression expression) {
    int depth = 0;
    const bool lambda = expression.form == Form::kLambda;
    for (const Index child : expression.children)
      depth = std::max(depth, depth_of(lambda ? syntax_.statement_depths_ : syntax_.expression_depths_, child));
    if (depth > kDeepest) return fail();
    syntax_.expression_depths_.push_back(depth + 1);
    syntax_.expressions_.push_back(std::move(expression));
    return static_cast<Index>(syntax_.expressions_.size()) - 1;
  }
  Index add(Statement statement) {
    int depth = 0;
    for (const Index part : {statement.first, statement.second, statement.third})
      depth = std::max(depth, depth_of(syntax_.expression_depths_, part));
    for (const Index child : statement.children) depth = std::max(depth, depth_of(syntax_.statement_depths_, child));
    if (depth > kDeepest) return fail();
    syntax_.statement_depths_.push_back(depth + 1);
    syntax_.statements_.push_back(std::move(statement));
    return static_cast<Index>(syntax_.statements_.size()) - 1;
  }
  static bool is_variable(std::string_view word) {
    return word.starts_with("tmp") || (word.size() > 1 && word[0] == 'x' && word[1] >= '0' && word[1] <= '9') ||
           word.starts_with("ks");
  }

  Index primary();
  Index postfix(Index base);
  Index named();
  Index lambda();
  bool arguments(std::string_view close, std::vector<Index>& list);
  size_t template_end(size_t from) const;
  size_t bracket_end(size_t from) const;
  size_t type_end(size_t from) const;
  Index loop();
  Index condition(Deed deed);
  Index declaration(size_t type_end);

  Syntax& syntax_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string_view problem_;
};

// The position after "<...>" at `from`, if that can be a list of template arguments; else `from`.
size_t Parser::template_end(size_t from) const {
  if (tokens_[from].text != "<") return from;
  int depth = 0, brackets = 0;
  for (size_t i = from; i < tokens_.size() && i < from + 200; ++i) {
    const Token& token = tokens_[i];
    const std::string_view text = token.text;
    if (text == "(" || text == "[") ++brackets;
    if (text == ")" || text == "]") --brackets;
    if (brackets < 0) return from;
    if (text == "<") ++depth;
    if (text == ">" && --depth == 0) return i + 1;
    const bool part = token.kind == TokenKind::kWord || token.kind == TokenKind::kNumber || text == "::" ||
                      text == "," || text == "<" || text == ">" || text == "*" || text == "&" || text == "(" ||
                      text == ")" || text == "[" || text == "]";
    if (!part || (brackets == 0 && is_variable(text))) return from;
  }
  return from;
}

size_t Parser::bracket_end(size_t from) const {
  int depth = 0;
  for (size_t i = from; i < tokens_.size(); ++i) {
    const std::string_view text = tokens_[i].kind == TokenKind::kString ? std::string_view() : tokens_[i].text;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if ((text == ")" || text == "]" || text == "}") && --depth == 0) return i + 1;
  }
  return tokens_.size() - 1;
}

// The position after a type ("const at::vec::Vectorized<float>*", "auto&", "decltype(auto)"), or `from`.
size_t Parser::type_end(size_t from) const {
  size_t i = from;
  while (tokens_[i].text == "const" || tokens_[i].text == "static" || tokens_[i].text == "constexpr" ||
         tokens_[i].text == "unsigned")
    ++i;
  if (tokens_[i].kind != TokenKind::kWord || is_variable(tokens_[i].text)) return from;
  for (;;) {
    const bool computed = tokens_[i].text == "decltype";
    ++i;
    if (computed && tokens_[i].text == "(") i = bracket_end(i);
    i = template_end(i);
    if (tokens_[i].text != "::" || tokens_[i + 1].kind != TokenKind::kWord) break;
    ++i;
  }
  while (tokens_[i].text == "*" || tokens_[i].text == "&" || tokens_[i].text == "const" ||
         tokens_[i].text == "__restrict__")
    ++i;
  return i;
}

bool Parser::arguments(std::string_view close, std::vector<Index>& list) {
  while (!take(close)) {
    list.push_back(expression());
    if (failed()) return false;
    if (!take(",") && !next(close)) {
      fail();
      return false;
    }
  }
  return true;
}

Index Parser::lambda() {
  Expression result{.form = Form::kLambda, .text = token().text, .qualifier = {}, .type = {}, .children = {}};
  at_ = bracket_end(at_);
  if (next("(")) at_ = bracket_end(at_);
  if (take("mutable") && failed()) return kNothing;
  const Index body = block();
  if (failed()) return kNothing;
  result.children.push_back(body);
  return add(std::move(result));
}

// "tmp0", "std::exp(x)", "static_cast<int64_t>(x)", "at::vec::Vectorized<float>::loadu(p, 8)",
// "decltype(a)::blendv(...)"
Index Parser::named() {
  const char* const begin = token().text.data();
  std::string_view last, type;
  for (;;) {
    last = token().text;
    ++at_;
    if (last == "decltype" && next("(")) at_ = bracket_end(at_);
    const size_t from = at_;
    if (!is_variable(last)) at_ = template_end(at_);
    type = {};
    if (at_ > from + 2) {
      const char* const first = tokens_[from + 1].text.data();
      type = std::string_view(first, static_cast<size_t>(tokens_[at_ - 1].text.data() - first));
    }
    if (!next("::") || token(1).kind != TokenKind::kWord) break;
    ++at_;
  }
  const auto whole = std::string_view(begin, static_cast<size_t>(last.data() - begin));
  if (next("(") || (next("{") && !(whole.empty() && type.empty()))) {
    Expression call{.form = Form::kCall, .text = last, .qualifier = whole, .type = type, .children = {}};
    const std::string_view close = next("(") ? ")" : "}";
    ++at_;
    if (!arguments(close, call.children)) return kNothing;
    // A call of a local lambda: "tmp5()".
    if (whole.empty() && syntax_.numbers_.contains(last)) call.name = syntax_.name_of(last);
    return add(std::move(call));
  }
  return add({.form = Form::kName,
              .text = last,
              .qualifier = whole,
              .type = {},
              .name = syntax_.name_of(last),
              .children = {}});
}

Index Parser::primary() {
  const Depth depth(*this);
  if (failed()) return kNothing;
  const Token& first = token();
  if (first.kind == TokenKind::kNumber || first.kind == TokenKind::kString) {
    ++at_;
    return add({.form = first.kind == TokenKind::kNumber ? Form::kNumber : Form::kString,
                .text = first.text,
                .qualifier = {},
                .type = {},
                .children = {}});
  }
  if (first.text == "throw") {
    while (!ended() && !next(")") && !next(";") && !next(",")) at_ = next("(") ? bracket_end(at_) : at_ + 1;
    return add({.form = Form::kString, .text = first.text, .qualifier = {}, .type = {}, .children = {}});
  }
  if (first.kind == TokenKind::kWord) return named();
  for (const std::string_view mark : {"-", "!", "~", "+", "&", "*"}) {
    if (!take(mark)) continue;
    const Index operand = postfix(primary());
    if (failed()) return kNothing;
    return add({.form = Form::kUnary, .text = mark, .qualifier = {}, .type = {}, .children = {operand}});
  }
  if (next("[")) return lambda();
  if (next("{")) {
    Expression list{.form = Form::kList, .text = first.text, .qualifier = {}, .type = {}, .children = {}};
    ++at_;
    if (!arguments("}", list.children)) return kNothing;
    return add(std::move(list));
  }
  if (!take("(")) return fail();
  // A cast: "(const float*)(x)".
  if (const size_t end = type_end(at_); end > at_ && tokens_[end].text == ")" && tokens_[end - 1].text == "*") {
    at_ = end + 1;
    return postfix(primary());
  }
  Index inner = expression();
  while (!failed() && take(",")) inner = expression();
  expect(")");
  return inner;
}

Index Parser::postfix(Index base) {
  while (!failed()) {
    if (next("(") && base != kNothing) {
      Expression call{.form = Form::kInvoke, .text = token().text, .qualifier = {}, .type = {}, .children = {base}};
      ++at_;
      if (!arguments(")", call.children)) return kNothing;
      base = add(std::move(call));
    } else if (take("[")) {
      const Index index = expression();
      if (!expect("]")) return kNothing;
      base =
          add({.form = Form::kElement, .text = token().text, .qualifier = {}, .type = {}, .children = {base, index}});
    } else if (next(".") || next("->")) {
      ++at_;
      take("template");
      if (token().kind != TokenKind::kWord) return fail();
      Expression method{.form = Form::kMethod, .text = token().text, .qualifier = {}, .type = {}, .children = {base}};
      ++at_;
      at_ = template_end(at_);
      if (take("(") && !arguments(")", method.children)) return kNothing;
      base = add(std::move(method));
    } else {
      return base;
    }
  }
  return kNothing;
}

Index Parser::expression(int least) {
  const Depth depth(*this);
  if (failed()) return kNothing;
  Index left = postfix(primary());
  while (!failed()) {
    const std::string_view mark = token().text;
    const int strength = token().kind == TokenKind::kMark ? binding(mark) : 0;
    if (strength == 0 || strength <= least) break;
    ++at_;
    const Index right = expression(strength);
    if (failed()) return kNothing;
    left = add({.form = Form::kBinary, .text = mark, .qualifier = {}, .type = {}, .children = {left, right}});
  }
  if (least > 0 || failed() || !take("?")) return left;
  const Index yes = expression();
  if (!expect(":")) return kNothing;
  const Index no = expression();
  if (failed()) return kNothing;
  return add({.form = Form::kChoice, .text = "?", .qualifier = {}, .type = {}, .children = {left, yes, no}});
}

Index Parser::block() {
  Statement block{.deed = Deed::kBlock, .text = line(), .origin = {}, .children = {}};
  if (!expect("{")) return kNothing;
  while (!failed() && !take("}")) {
    if (ended()) return fail();
    const Index child = statement();
    if (child != kNothing) block.children.push_back(child);
  }
  return failed() ? kNothing : add(std::move(block));
}

// The statement of a loop or a condition: an empty one, which statement() gives no index, is a block without
// statements.
Index Parser::body() {
  const Index child = statement();
  if (child != kNothing || failed()) return child;
  return add(Statement{.deed = Deed::kBlock, .text = ";", .origin = {}, .children = {}});
}

// "for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(ks0); x0+=static_cast<int64_t>(1L))"
Index Parser::loop() {
  Statement loop{.deed = Deed::kFor, .text = line(), .origin = {}, .children = {}};
  ++at_;
  if (!expect("(")) return kNothing;
  at_ = type_end(at_);
  const std::string_view variable = token().text;
  if (token().kind != TokenKind::kWord) return fail();
  loop.name = syntax_.name_of(variable);
  ++at_;
  if (!expect("=")) return kNothing;
  loop.first = expression();
  if (!expect(";") || !expect(variable) || !expect("<")) return kNothing;
  loop.second = expression();
  if (!expect(";") || !expect(variable)) return kNothing;
  if (take("++")) {
    loop.third = add({.form = Form::kNumber, .text = "1", .qualifier = {}, .type = {}, .children = {}});
  } else {
    if (!expect("+=")) return kNothing;
    loop.third = expression();
  }
  if (!expect(")")) return kNothing;
  const Index repeated = body();
  if (failed()) return kNothing;
  loop.children.push_back(repeated);
  return add(std::move(loop));
}

Index Parser::condition(Deed deed) {
  Statement result{.deed = deed, .text = line(), .origin = {}, .children = {}};
  ++at_;
  if (!expect("(")) return kNothing;
  result.first = expression();
  if (!expect(")")) return kNothing;
  const Index yes = body();
  if (failed()) return kNothing;
  result.children.push_back(yes);
  if (deed == Deed::kIf && take("else")) {
    const Index no = body();
    if (failed()) return kNothing;
    result.children.push_back(no);
  }
  return add(std::move(result));
}

// Forms after the type: "x = v;", "x;", "x(v);", "x{v};", "x[8*8];", "x[] = {v};"
Index Parser::declaration(size_t end) {
  Statement result{.deed = Deed::kDeclare, .text = line(), .origin = token().origin, .children = {}};
  const bool array_type = std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
                                      tokens_.begin() + static_cast<std::ptrdiff_t>(end),
                                      [](const Token& token) { return token.text == "array"; });
  at_ = end;
  result.name = syntax_.name_of(token().text);
  result.array = array_type;
  ++at_;
  while (next("[")) {
    result.array = true;
    at_ = bracket_end(at_);
  }
  if (next("{") || next("(")) {
    const bool list = next("{");
    ++at_;
    std::vector<Index> values;
    if (!arguments(list ? "}" : ")", values)) return kNothing;
    result.first = values.size() == 1
                       ? values[0]
                       : add({.form = Form::kList, .text = "{", .qualifier = {}, .type = {}, .children = values});
  } else if (take("=")) {
    result.first = expression();
  }
  if (!expect(";")) return kNothing;
  return add(std::move(result));
}

Index Parser::statement() {
  const Depth depth(*this);
  if (failed()) return kNothing;
  if (next("{")) return block();
  if (next("for")) return loop();
  if (next("if")) return condition(Deed::kIf);
  if (next("while")) return condition(Deed::kWhile);
  if (next("throw")) {
    Statement result{.deed = Deed::kThrow, .text = line(), .origin = {}, .children = {}};
    ++at_;
    result.first = expression();
    if (!expect(";")) return kNothing;
    return add(std::move(result));
  }
  if (take(";")) return kNothing;
  if (next("[") && token(1).text == "[") at_ = bracket_end(at_);  // [[maybe_unused]]
  if (next("alignas")) {
    ++at_;
    at_ = bracket_end(at_);
  }
  take("__at_align__");
  if (next("return")) {
    Statement result{.deed = Deed::kReturn, .text = line(), .origin = {}, .children = {}};
    ++at_;
    if (!next(";")) result.first = expression();
    if (!expect(";")) return kNothing;
    return add(std::move(result));
  }
  if (const size_t end = type_end(at_); end > at_ && tokens_[end].kind == TokenKind::kWord) {
    const std::string_view after = tokens_[std::min(end + 1, tokens_.size() - 1)].text;
    if (after == "=" || after == ";" || after == "(" || after == "{" || after == "[") return declaration(end);
  }
  Statement result{.deed = Deed::kValue, .text = line(), .origin = token().origin, .children = {}};
  result.first = expression();
  if (failed()) return kNothing;
  for (const std::string_view mark : {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^="}) {
    if (!take(mark)) continue;
    result.deed = Deed::kAssign;
    result.mark = mark;
    result.second = expression();
    break;
  }
  if (!take(";")) {
    problem_ = result.text;
    return kNothing;
  }
  return add(std::move(result));
}

std::vector<Index> Parser::all_statements() {
  std::vector<Index> list;
  while (!failed() && !ended() && !next("}")) {
    const Index child = statement();
    if (child != kNothing) list.push_back(child);
  }
  return list;
}

// "(const float* in_ptr0, const int64_t ks0)"
bool Parser::parameters(std::vector<Parameter>& list) {
  if (!expect("(")) return false;
  while (!failed() && !take(")")) {
    const size_t end = type_end(at_);
    if (end == at_ || tokens_[end].kind != TokenKind::kWord) {
      fail();
      return false;
    }
    const char* const begin = token().text.data();
    const std::string_view name = tokens_[end].text;
    list.push_back({{begin, static_cast<size_t>(name.data() - begin)}, syntax_.name_of(name)});
    at_ = end + 1;
    if (!take(",") && !next(")")) fail();
  }
  return !failed();
}

Name Syntax::name_of(std::string_view word) {
  const auto [at, added] = numbers_.emplace(word, static_cast<Name>(words_.size()));
  if (added) words_.push_back(word);
  return at->second;
}

Index Syntax::function(std::string_view text, std::vector<Parameter>& parameters, std::string_view& problem) {
  Parser parser(*this, text);
  const Index body = parser.parameters(parameters) ? parser.block() : kNothing;
  problem = parser.problem();
  return body;
}

std::vector<Index> Syntax::statements(std::string_view text, std::string_view& problem) {
  Parser parser(*this, text);
  std::vector<Index> list = parser.all_statements();
  problem = parser.problem();
  if (problem.empty() && parser.ended()) problem = "the end of the text";
  return list;
}

Index Syntax::integer(std::string_view text) {
  Parser parser(*this, text);
  const Index value = parser.expression();
  return parser.ended() ? value : kNothing;
}

}  // namespace sconce::rows
