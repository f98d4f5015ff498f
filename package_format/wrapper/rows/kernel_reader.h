// Evaluates a kernel's statements and expressions, with all iterations of a loop taken together.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "package_format/wrapper/rows/row_state.h"
#include "package_format/wrapper/rows/syntax.h"
#include "package_format/wrapper/rows/written_elements.h"

namespace sconce::rows::kernel {

constexpr std::string_view kMeet = "values of several rows meet";

struct Value {
  enum class Kind : uint8_t { kData, kInteger, kPointer, kLocal, kLambda };
  Kind kind = Kind::kData;
  Dependence from;     // of data
  Polynomial integer;  // or the offset of a pointer or local array
  int storage = -1;
  Name local = -1;
  Index body = kNothing;
};

inline Value data(const Dependence& from) { return {.kind = Value::Kind::kData, .from = from, .integer = {}}; }
inline Value number(Polynomial value) {
  return {.kind = Value::Kind::kInteger, .from = {}, .integer = std::move(value)};
}

inline bool is_integer_type(std::string_view type) {
  return type == "int64_t" || type == "int32_t" || type == "long" || type == "int" || type == "long long" ||
         type == "int16_t" || type == "size_t";
}

// A variable, or an array whose elements are taken together.
struct Slot {
  Value value;
  bool bound = false;
  bool array = false;
  Index declared = kNothing;     // its defining expression
  std::optional<Atom> number{};  // the atom that represents it as an integer
};

struct Undo {
  Name name;
  Slot before;
};

struct Assigned {
  Name name;
  Dependence before;
};

class KernelReader {
 public:
  // places_inner: for tensors with other dimensions outside the batch, the size of the innermost part of a loop over
  // positions, rows and elements; nullopt: rows are outermost.
  KernelReader(const Syntax& syntax, RowState& state, int64_t& steps, std::optional<Polynomial> places_inner)
      : syntax_(syntax), state_(state), steps_(steps), slots_(syntax.names()), places_inner_(std::move(places_inner)) {}

  void bind(Name name, Value value) { slot(name) = {.value = std::move(value), .bound = true}; }
  std::string run(Index body) {
    execute(body);
    return problem_;
  }

 private:
  Slot& slot(Name name) { return slots_[static_cast<size_t>(name)]; }
  bool going() {
    if (--steps_ < 0 || state_.atoms().exhausted()) fail("more than can be looked at");
    return problem_.empty();
  }
  void fail(std::string_view text) {
    if (problem_.empty()) problem_ = std::string(text.substr(0, std::min<size_t>(text.find('\n'), 80)));
  }

  void execute(Index at);
  void declare(const Statement& statement);
  void assign(const Statement& statement);
  void assign(Name name, const Dependence& value, bool keep);
  void branch(const Statement& statement);
  void loop(const Statement& statement);
  void run_body(const Statement& loop, Atom row);
  void leave_scope(size_t mark, size_t assigned);

  Value evaluate(Index at);
  Value call(const Expression& expression);
  Value method(const Expression& expression);
  Value element(const Expression& expression);
  Value unary(const Expression& expression);
  Value binary(const Expression& expression);
  Value name(const Expression& expression);
  Value invoke(const Value& lambda);
  Value joined(const Expression& expression, size_t from = 0);
  void check(const Expression& expression);
  // Adds the condition to the facts; true if they express all of it.
  bool assume(Index condition, bool holds);
  Value choice(const Expression& expression);
  void transpose(const Expression& expression);

  Dependence data_of(const Value& value);
  Polynomial index(Index at);
  Polynomial index_of(const Value& value);
  // The integer that represents a variable of values; it is the same at each use.
  Polynomial variable(Name name, const Value& value);
  Polynomial lanes(Polynomial element);
  Dependence across_lanes(const Dependence& from);
  Value load(const Value& from, bool vector);
  void store(const Value& target, const Dependence& value, bool vector);
  bool same_lane(const Polynomial& element, bool vector) const;

  const Syntax& syntax_;
  RowState& state_;
  int64_t& steps_;
  std::vector<Slot> slots_;
  std::optional<Polynomial> places_inner_;
  std::vector<Undo> undo_;
  std::vector<Assigned> assigned_;
  Dependence control_;                 // decides whether the statement runs
  int branches_ = 0, conditions_ = 0;  // branches being evaluated; how many of them are not part of a loop
  WrittenElements elements_;
  std::vector<Atom> open_;  // variables of the enclosing loops
  Dependence returned_;
  Atom lane_ = -1;  // for the loop whose vectors span rows
  Name lane_loop_ = -1;
  std::vector<Name> written_;  // variables whose addresses are passed to the call
  std::vector<Atom> vectors_;  // variables of the other loops over vectors
  std::unordered_map<Atom, std::string_view> vector_names_;
  int calls_ = 0;
  std::string problem_;
};

}  // namespace sconce::rows::kernel
