// Value: an argument or result of an operator that is called by name. Its type is known only at run time.
//
// Dtypes, layouts and memory formats are integers of c10's numbering. A tensor is owned, or borrowed from somebody who
// keeps it during the call; writing an argument writes the borrowed object.
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

  Value() noexcept = default;  // None
  Value(Tensor tensor) noexcept : value_(std::move(tensor)) {}
  Value(int64_t number) noexcept : value_(number) {}
  Value(double number) noexcept : value_(number) {}
  Value(bool flag) noexcept : value_(flag) {}
  Value(std::complex<double> number) noexcept : value_(number) {}
  Value(std::string text) noexcept : value_(std::move(text)) {}
  Value(Device device) noexcept : value_(device) {}
  Value(Generator* generator) noexcept : value_(generator) {}
  Value(Ints values) noexcept : value_(std::move(values)) {}
  Value(Reals values) noexcept : value_(std::move(values)) {}
  Value(List values) noexcept : value_(std::move(values)) {}
  static Value borrow(Tensor& tensor) noexcept {
    Value value;
    value.value_ = &tensor;
    return value;
  }

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
