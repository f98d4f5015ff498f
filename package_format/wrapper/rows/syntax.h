// The syntax of generated C++: kernels, and the statements of run_impl. Only forms that PyTorch 2.6 to 2.15 writes for
// the CPU; other text is an error with its position.
//
// The parts are views of the caller's text, which must outlive them. Time and memory are linear in the text's length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sconce::rows {

using Name = int32_t;  // an identifier's number
using Index = int32_t;
constexpr Index kNothing = -1;

enum class Form : uint8_t {
  kNumber,  // its text
  kString,
  kName,     // name, text
  kCall,     // text: the function's last name; qualifier: the text before it; children: arguments
  kInvoke,   // children: a callee that is not a name, arguments
  kMethod,   // text: the member; children: the object, arguments
  kElement,  // children: the base, the index
  kUnary,    // text: the operator; children: one
  kBinary,
  kChoice,  // children: condition, two values
  kLambda,  // children: the body, a statement
  kList,    // {a, b}
};

struct Expression {
  Form form = Form::kNumber;
  std::string_view text, qualifier, type;  // type: of a call, "int64_t" of static_cast<int64_t>
  Name name = -1;
  std::vector<Index> children;
};

enum class Deed : uint8_t {
  kBlock,    // children: statements
  kFor,      // name; first: from, second: the bound, third: the step; children: the body
  kIf,       // first: the condition; children: one or two statements
  kWhile,    // of the graph: first: the condition; children: the body
  kThrow,    // ends the run
  kDeclare,  // name; first: the value or kNothing; array: number of elements if any
  kAssign,   // mark: the operator; first: the target, second: the value
  kValue,    // first: an expression
  kReturn,   // first: a value or kNothing
};

struct Statement {
  Deed deed = Deed::kBlock;
  std::string_view text;    // its first line
  std::string_view mark{};  // "=", "+="
  std::string_view origin;  // of kernel calls and operators: "aten.mm", from the comment before it
  Name name = -1;
  bool array = false;
  Index first = kNothing, second = kNothing, third = kNothing;
  std::vector<Index> children;
};

struct Parameter {
  std::string_view type;  // "const float*"
  Name name = -1;
};

// Parsed text. Names are numbered across all texts of one Syntax.
class Syntax {
 public:
  const Expression& expression(Index at) const { return expressions_[static_cast<size_t>(at)]; }
  const Statement& statement(Index at) const { return statements_[static_cast<size_t>(at)]; }
  Name name_of(std::string_view word);
  size_t names() const noexcept { return words_.size(); }
  std::string_view word(Name name) const { return words_[static_cast<size_t>(name)]; }

  // Reads "(parameters)" and "{ statements }". kNothing on failure, with `problem` set to the text that is not
  // understood.
  Index function(std::string_view text, std::vector<Parameter>& parameters, std::string_view& problem);
  // Reads statements until an unmatched "}". If that is missing or text is not understood, sets `problem`.
  std::vector<Index> statements(std::string_view text, std::string_view& problem);
  // Reads one expression: "2*s17".
  Index integer(std::string_view text);

 private:
  friend class Parser;
  // The depths of the trees. They are limited, so that a recursive walk needs little stack.
  std::vector<int> expression_depths_, statement_depths_;
  std::vector<Expression> expressions_;
  std::vector<Statement> statements_;
  std::vector<std::string_view> words_;
  std::unordered_map<std::string_view, Name> numbers_;
};

}  // namespace sconce::rows
