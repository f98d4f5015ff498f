// Value: an argument or result of an operator that is called by name. Its type is known only at run time.
//
// Dtypes, layouts and memory formats are integers of c10's numbering. A tensor is owned, or borrowed for the duration
// of a call; writing an argument writes the borrowed object.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sconce/tensor.h"

namespace sconce {
class Generator;
}

namespace sconce::custom_ops {

class Value {
 public:
  using Ints = std::vector<int64_t>;
  using Reals = std::vector<double>;
  using List = std::vector<Value>;

  Value() noexcept;  // None
  Value(Tensor tensor) noexcept;
  Value(int64_t number) noexcept;
  Value(double number) noexcept;
  Value(bool flag) noexcept;
  Value(std::complex<double> number) noexcept;
  Value(std::string text) noexcept;
  Value(Device device) noexcept;
  Value(Generator* generator) noexcept;
  Value(Ints values) noexcept;
  Value(Reals values) noexcept;
  Value(List values) noexcept;
  static Value borrow(Tensor& tensor) noexcept;
  // Defined in value.cpp: a variant's copy functions are long, and each source file would compile them.
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  bool is_none() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  bool is_tensor() const noexcept {
    return std::holds_alternative<Tensor>(value_) || std::holds_alternative<Tensor*>(value_);
  }
  template <class T>
  const T* get_if() const noexcept {
    return std::get_if<T>(&value_);
  }
  template <class T>
  T* get_if() noexcept {
    return std::get_if<T>(&value_);
  }

  // Throws kInvalidArgument "expected a tensor, got an int" for another kind.
  Tensor& tensor();
  template <class T>
  T& as() {
    if (T* value = get_if<T>()) [[likely]]
      return *value;
    fail_as<T>();
  }
  int64_t to_int() const;             // from an int or a bool
  double to_double() const;           // from any real number
  bool to_bool() const;               // from a bool or an int
  const char* kind() const noexcept;  // "a tensor", "None"

 private:
  template <class T>
  [[noreturn]] void fail_as() const;
  [[noreturn]] void fail(const char* expected) const;

  std::variant<std::monostate, Tensor, Tensor*, int64_t, double, bool, std::complex<double>, std::string, Device,
               Generator*, Ints, Reals, List>
      value_;
};

}  // namespace sconce::custom_ops
