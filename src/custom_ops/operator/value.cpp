#include "src/custom_ops/operator/value.h"

#include "sconce/check.h"

namespace sconce::custom_ops {

Value::Value() noexcept = default;
Value::Value(Tensor tensor) noexcept : value_(std::move(tensor)) {}
Value::Value(int64_t number) noexcept : value_(number) {}
Value::Value(double number) noexcept : value_(number) {}
Value::Value(bool flag) noexcept : value_(flag) {}
Value::Value(std::complex<double> number) noexcept : value_(number) {}
Value::Value(std::string text) noexcept : value_(std::move(text)) {}
Value::Value(Device device) noexcept : value_(device) {}
Value::Value(Generator* generator) noexcept : value_(generator) {}
Value::Value(Ints values) noexcept : value_(std::move(values)) {}
Value::Value(Reals values) noexcept : value_(std::move(values)) {}
Value::Value(List values) noexcept : value_(std::move(values)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value Value::borrow(Tensor& tensor) noexcept {
  Value value;
  value.value_ = &tensor;
  return value;
}

const char* Value::kind() const noexcept {
  static constexpr const char* kNames[] = {"None",           "a tensor",         "a tensor", "an int",   "a float",
                                           "a bool",         "a complex number", "a string", "a device", "a generator",
                                           "a list of ints", "a list of floats", "a list"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(value_)>);
  return kNames[value_.index()];
}

void Value::fail(const char* expected) const { SCONCE_FAIL(kInvalidArgument, "expected ", expected, ", got ", kind()); }

template <class T>
void Value::fail_as() const {
  Value wanted;
  wanted.value_.emplace<T>();
  fail(wanted.kind());
}
template void Value::fail_as<int64_t>() const;
template void Value::fail_as<double>() const;
template void Value::fail_as<std::string>() const;
template void Value::fail_as<Device>() const;
template void Value::fail_as<Generator*>() const;
template void Value::fail_as<Value::Ints>() const;
template void Value::fail_as<Value::Reals>() const;
template void Value::fail_as<Value::List>() const;

Tensor& Value::tensor() {
  if (Tensor** borrowed = get_if<Tensor*>()) return **borrowed;
  if (Tensor* held = get_if<Tensor>()) return *held;
  fail("a tensor");
}

int64_t Value::to_int() const {
  if (const int64_t* number = get_if<int64_t>()) return *number;
  if (const bool* flag = get_if<bool>()) return *flag;
  fail("an int");
}

double Value::to_double() const {
  if (const double* number = get_if<double>()) return *number;
  if (const int64_t* number = get_if<int64_t>()) return static_cast<double>(*number);
  if (const bool* flag = get_if<bool>()) return *flag;
  fail("a float");
}

bool Value::to_bool() const {
  if (const bool* flag = get_if<bool>()) return *flag;
  if (const int64_t* number = get_if<int64_t>()) return *number != 0;
  fail("a bool");
}

}  // namespace sconce::custom_ops
