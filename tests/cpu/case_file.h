// Operator cases with expected results from PyTorch, read from tests/data/*.cases. The scripts make_*_cases.py write
// them with case_writer.py, which describes the format.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sconce/tensor.h"
#include "src/operators/arguments.h"

namespace sconce::testing {

struct Value;
using Values = std::vector<Value>;
struct Value {
  std::variant<std::monostate, Tensor, int64_t, double, bool, std::string, Values, std::complex<double>> held;

  const Tensor& tensor() const { return std::get<Tensor>(held); }
  Tensor& tensor() { return std::get<Tensor>(held); }
  const Tensor* optional_tensor() const { return std::get_if<Tensor>(&held); }
  int64_t integer() const { return std::get<int64_t>(held); }
  double real() const;  // of an int, too
  bool boolean() const { return std::get<bool>(held); }
  const std::string& text() const { return std::get<std::string>(held); }
  const Values& list() const { return std::get<Values>(held); }
  bool none() const { return std::holds_alternative<std::monostate>(held); }
  template <class T>
  std::optional<T> optional() const {
    return none() ? std::nullopt : std::optional<T>(std::get<T>(held));
  }
  std::vector<int64_t> integers() const;
};

struct Expected {
  int argument = -1;  // the argument that was written, -1 for a result that was returned
  Tensor tensor;
};

struct Case {
  std::string op;
  int number = 0;  // in its file
  Values args;
  std::vector<Expected> results;
  bool fails = false;    // PyTorch raised
  std::string message;   // a part of its error, which ours must contain
  double tolerance = 0;  // 0: bits must be equal, except those of NaNs; else relative and absolute

  const Tensor& tensor(size_t i) const { return args[i].tensor(); }
  int64_t integer(size_t i) const { return args[i].integer(); }
  double real(size_t i) const { return args[i].real(); }
  bool boolean(size_t i) const { return args[i].boolean(); }
  const std::string& text(size_t i) const { return args[i].text(); }
};

// The cases of one operator in tests/data/FILE and in the file that the environment variable SCONCE_CASES names.
std::vector<Case> cases_of(std::string_view file, std::string_view op);

// Runs the cases of an operator. `call` runs the operator on a case's arguments and returns its results. The test
// compares sizes, strides, dtype and elements of every result, all bytes of a written argument's storage, and the error
// if PyTorch raised one. It fails if there is no case.
void run_cases(std::string_view file, std::string_view op, const std::function<std::vector<Tensor>(Case&)>& call);

// A list argument in the form that kernels take. It points into the case, which must outlive it.
class ListArgument {
 public:
  explicit ListArgument(const Values& values);
  TensorList tensors() const { return {pointers_.data(), pointers_.size()}; }
  OptTensorList optional_tensors() const { return {handles_.data(), handles_.size()}; }

 private:
  std::vector<const Tensor*> pointers_;
  std::vector<const Tensor* const*> handles_;
};

}  // namespace sconce::testing
