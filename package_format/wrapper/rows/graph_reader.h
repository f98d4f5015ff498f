// The statements and expressions of run_impl.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "package_format/wrapper/rows/graph_rows.h"
#include "package_format/wrapper/rows/operator_rows.h"
#include "package_format/wrapper/rows/parsed_code.h"
#include "package_format/wrapper/rows/row_state.h"
#include "package_format/wrapper/rows/syntax.h"
#include "sconce/package.h"

namespace sconce::rows::graph {

constexpr int64_t kMaxSteps = 8'000'000;  // for kernels' expressions: some seconds

struct Value {
  enum class Kind : uint8_t { kOther, kLiteral, kTensor, kInteger, kList, kSizes, kAddress, kInputs, kConstants };
  Kind kind = Kind::kOther;
  View tensor;
  std::optional<BatchPlace> expected;  // for a tensor of unknown shape
  bool reused = false;                 // a tensor in freed memory that has not been used since
  Polynomial integer;
  std::vector<Value> list;
  Name name = -1;  // whose address is taken
};

class GraphReader {
 public:
  // Examines accesses instead of rows.
  GraphReader(ParsedCode& code, const LeastSizes& least, const ModelSpec& spec, LookAt look)
      : spec_(spec), code_(code), outputs_(spec.outputs.size()) {
    state_.look_at_accesses();
    read_sizes(least, look);
    read_inputs({});
  }

  GraphReader(ParsedCode& code, std::string_view batch, const ModelSpec& spec)
      : spec_(spec), code_(code), outputs_(spec.outputs.size()) {
    read_inputs(batch);
  }

  // Returns the reason why rows are not known to be independent; "" if they are.
  std::string read();
  // Whether an access is known to leave its tensor.
  bool leaves() { return state_.bounds() && state_.bounds()->leaves(); }
  // Accesses to check against the sizes of a request.
  std::vector<AccessBound> open();

 private:
  static std::string not_understood(std::string_view text);
  void fail(std::string_view text) {
    if (problem_.empty()) problem_ = not_understood(text);
  }

  void read_inputs(std::string_view batch);
  void read_sizes(const LeastSizes& least, LookAt look);
  void call_outside(const Expression& call);
  void assign(Name name, Value value);
  // The storage for a kernel's argument.
  int storage_of(const View& view);
  Polynomial size_named(std::string_view text);
  std::string judge();

  void execute(Index at);
  void declare(const Statement& statement);
  void reuse(Index declaration, Index next);
  void call(const Statement& statement);
  void run_kernel(const Statement& statement, const Expression& call);
  void run_operator(const Statement& statement, std::string_view name, const Expression& call);
  void empty_strided(const Expression& call);
  void assert_shape(const Expression& call);
  void check_place(std::string_view name, const View& view, const BatchPlace& expected);
  void bind_results(std::vector<Value>& arguments, std::string_view name, const OperatorResults& results);

  Value evaluate(Index at);
  Value used(Index at);
  Value evaluate_call(const Expression& call);
  Value method(const Expression& expression);
  Value element(const Expression& expression);
  Value binary(const Expression& expression);
  Value view_of(const Expression& call);
  Value tensor_of_constant(int64_t index);
  std::vector<Polynomial> integers(const Value& list) const;
  // A tensor whose values are not known to depend on one row each.
  Value mixed_tensor(std::string_view name, int reason);

  const ModelSpec& spec_;
  ParsedCode& code_;
  Syntax& syntax_ = code_.syntax();
  KernelLibrary& kernels_ = code_.kernels();
  RowState state_;
  std::unordered_map<Name, Value> values_;
  std::unordered_map<std::string_view, Polynomial> symbols_;
  std::vector<View> inputs_;
  std::vector<std::optional<View>> outputs_;
  std::vector<int> constants_;  // storages; -1: not used yet
  std::vector<int> read_only_;
  int64_t steps_ = kMaxSteps;
  std::string_view assertion_ = {};
  std::string problem_;
};

Value literal();
Value tensor(View view);
Value integer(Polynomial number);
// Whether every part of an operator's argument is understood.
bool understood(const Value& value);

}  // namespace sconce::rows::graph
