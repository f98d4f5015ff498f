#include "src/custom_ops/operator/boxed.h"

#include "sconce/check.h"

namespace sconce::custom_ops {
namespace {

void check_host(Value& value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    SCONCE_CHECK(!tensor.defined() || tensor.is_cpu(), kUnsupported,
                 "the operator runs on the CPU and its tensor is on ", to_string(tensor.device()));
  } else if (Value::List* items = value.get_if<Value::List>()) {
    for (Value& item : *items) check_host(item);
  }
}

}  // namespace

void check_host(std::span<Value> arguments) {
  for (Value& argument : arguments) check_host(argument);
}

DType dtype_of_number(int64_t number) {
  const auto dtype = dtype_from_number(number);
  SCONCE_CHECK(dtype, kUnsupported, "dtype number ", number, " is not known");
  return *dtype;
}

Tensor& defined_tensor(Value& value) {
  Tensor& tensor = value.tensor();
  SCONCE_CHECK(tensor.defined(), kInvalidArgument, "a tensor is undefined");
  return tensor;
}

Unboxed<const Tensor*>::Unboxed(Value& value) : tensor(value.is_none() ? nullptr : &value.tensor()) {
  if (tensor && !tensor->defined()) tensor = nullptr;
}
Scalar Unboxed<Scalar>::of(Value& value) {
  if (const auto* complex = value.get_if<std::complex<double>>()) return *complex;
  if (const auto* flag = value.get_if<bool>()) return *flag;
  if (const auto* whole = value.get_if<int64_t>()) return *whole;
  return value.to_double();
}
Unboxed<Device>::Unboxed(Value& value) : device(value.as<Device>()) {}
Unboxed<std::string_view>::Unboxed(Value& value) : text(value.as<std::string>()) {}
Unboxed<IntSpan>::Unboxed(Value& value) : values(value.as<Value::Ints>()) {}
Unboxed<std::span<const double>>::Unboxed(Value& value) : values(value.as<Value::Reals>()) {}
Unboxed<std::span<const Scalar>>::Unboxed(Value& value) {
  if (const auto* ints = value.get_if<Value::Ints>()) {
    numbers.assign(ints->begin(), ints->end());
  } else if (const auto* reals = value.get_if<Value::Reals>()) {
    numbers.assign(reals->begin(), reals->end());
  } else {
    for (Value& item : value.as<Value::List>()) numbers.push_back(Unboxed<Scalar>::of(item));
  }
}
Unboxed<std::span<const int32_t>>::Unboxed(Value& value) {
  for (const Value& item : value.as<Value::List>()) flags.push_back(item.to_bool());
}
Unboxed<Generator*>::Unboxed(Value& value) : generator(value.is_none() ? nullptr : value.as<Generator*>()) {}
Unboxed<TensorList>::Unboxed(Value& value) {
  for (Value& item : value.as<Value::List>()) tensors.push_back(&item.tensor());
}
Unboxed<OptTensorList>::Unboxed(Value& value) {
  Value::List& items = value.as<Value::List>();
  tensors.reserve(items.size());
  for (Value& item : items) tensors.push_back(item.is_none() ? nullptr : &item.tensor());
  for (const Tensor*& tensor : tensors) {
    pointers.push_back(&tensor);
  }
}

void box_result(std::span<Value> slots, std::vector<Tensor> result) {
  Value::List items;
  items.reserve(result.size());
  for (Tensor& tensor : result) items.emplace_back(std::move(tensor));
  slots[0] = std::move(items);
}
void box_results(std::span<Value> slots, std::span<Tensor> results) {
  for (size_t i = 0; i < results.size(); ++i) slots[i] = std::move(results[i]);
}

namespace detail {

void check_count(size_t arguments, size_t parameters) {
  SCONCE_CHECK(arguments == parameters, kInternal, "kernel of ", parameters, " parameters, schema of ", arguments);
}

}  // namespace detail
}  // namespace sconce::custom_ops
