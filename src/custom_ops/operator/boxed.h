// boxed<kernel>: a typed kernel as a BoxedKernel. Parameter and result types are those of src/operators/kernel_args.h,
// and Scalar. Kernels that return nothing write some of their arguments:
//   boxed_in_place<kernel>     the first argument, which is the result
//   boxed_out<kernel, N>       the last N of the schema, which are the kernel's first and the results
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "sconce/check.h"
#include "src/custom_ops/operator/operator.h"
#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::custom_ops {

inline DType dtype_of_number(int64_t number) {
  const auto dtype = dtype_from_number(number);
  SCONCE_CHECK(dtype, kUnsupported, "dtype number ", number, " is not known");
  return *dtype;
}

// The CPU's kernels read host memory, but a package for another device may pass tensors of that device.
inline void check_host(Value& value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    SCONCE_CHECK(!tensor.defined() || tensor.is_cpu(), kUnsupported,
                 "the operator runs on the CPU and its tensor is on ", to_string(tensor.device()));
  } else if (Value::List* items = value.get_if<Value::List>()) {
    for (Value& item : *items) check_host(item);
  }
}

// Holds what a parameter of type T refers to; get() is valid while the object lives.
template <class T>
struct Unboxed;

template <>
struct Unboxed<const Tensor&> {
  explicit Unboxed(Value& value) : tensor(value.tensor()) {
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "a tensor is undefined");
  }
  const Tensor& get() noexcept { return tensor; }
  const Tensor& tensor;
};
template <>
struct Unboxed<Tensor&> {
  explicit Unboxed(Value& value) : tensor(value.tensor()) {
    SCONCE_CHECK(tensor.defined(), kInvalidArgument, "a tensor is undefined");
  }
  Tensor& get() noexcept { return tensor; }
  Tensor& tensor;
};
template <>
struct Unboxed<const Tensor*> {
  explicit Unboxed(Value& value) : tensor(value.is_none() ? nullptr : &value.tensor()) {
    if (tensor && !tensor->defined()) tensor = nullptr;
  }
  const Tensor* get() noexcept { return tensor; }
  const Tensor* tensor;
};
template <>
struct Unboxed<int64_t> {
  explicit Unboxed(Value& value) : number(value.to_int()) {}
  int64_t get() noexcept { return number; }
  int64_t number;
};
template <>
struct Unboxed<double> {
  explicit Unboxed(Value& value) : number(value.to_double()) {}
  double get() noexcept { return number; }
  double number;
};
template <>
struct Unboxed<bool> {
  explicit Unboxed(Value& value) : flag(value.to_bool()) {}
  bool get() noexcept { return flag; }
  bool flag;
};
template <>
struct Unboxed<Scalar> {
  explicit Unboxed(Value& value) : number(of(value)) {}
  static Scalar of(Value& value) {
    if (const auto* complex = value.get_if<std::complex<double>>()) return *complex;
    if (const auto* flag = value.get_if<bool>()) return *flag;
    if (const auto* whole = value.get_if<int64_t>()) return *whole;
    return value.to_double();
  }
  Scalar get() noexcept { return number; }
  Scalar number;
};
template <>
struct Unboxed<const Scalar&> : Unboxed<Scalar> {
  using Unboxed<Scalar>::Unboxed;
};
template <>
struct Unboxed<DType> {
  explicit Unboxed(Value& value) : dtype(dtype_of_number(value.to_int())) {}
  DType get() noexcept { return dtype; }
  DType dtype;
};
template <>
struct Unboxed<int32_t> {  // layouts, memory formats
  explicit Unboxed(Value& value) : number(static_cast<int32_t>(value.to_int())) {}
  int32_t get() noexcept { return number; }
  int32_t number;
};
template <>
struct Unboxed<Device> {
  explicit Unboxed(Value& value) : device(value.as<Device>()) {}
  Device get() noexcept { return device; }
  Device device;
};
template <>
struct Unboxed<std::string_view> {
  explicit Unboxed(Value& value) : text(value.as<std::string>()) {}
  std::string_view get() noexcept { return text; }
  std::string_view text;
};
template <>
struct Unboxed<IntSpan> {
  explicit Unboxed(Value& value) : values(value.as<Value::Ints>()) {}
  IntSpan get() noexcept { return values; }
  IntSpan values;
};
template <>
struct Unboxed<std::span<const double>> {
  explicit Unboxed(Value& value) : values(value.as<Value::Reals>()) {}
  std::span<const double> get() noexcept { return values; }
  std::span<const double> values;
};
template <>
struct Unboxed<std::span<const Scalar>> {
  explicit Unboxed(Value& value) {
    if (const auto* ints = value.get_if<Value::Ints>()) {
      numbers.assign(ints->begin(), ints->end());
    } else if (const auto* reals = value.get_if<Value::Reals>()) {
      numbers.assign(reals->begin(), reals->end());
    } else {
      for (Value& item : value.as<Value::List>()) numbers.push_back(Unboxed<Scalar>::of(item));
    }
  }
  std::span<const Scalar> get() noexcept { return numbers; }
  std::vector<Scalar> numbers;
};
template <>
struct Unboxed<std::span<const int32_t>> {  // bool[]
  explicit Unboxed(Value& value) {
    for (const Value& item : value.as<Value::List>()) flags.push_back(item.to_bool());
  }
  std::span<const int32_t> get() noexcept { return flags; }
  std::vector<int32_t> flags;
};
template <>
struct Unboxed<Generator*> {
  explicit Unboxed(Value& value) : generator(value.is_none() ? nullptr : value.as<Generator*>()) {}
  Generator* get() noexcept { return generator; }
  Generator* generator;
};
template <>
struct Unboxed<TensorList> {
  explicit Unboxed(Value& value) {
    for (Value& item : value.as<Value::List>()) tensors.push_back(&item.tensor());
  }
  TensorList get() noexcept { return {tensors.data(), tensors.size()}; }
  std::vector<const Tensor*> tensors;
};
template <>
struct Unboxed<OptTensorList> {
  explicit Unboxed(Value& value) {
    Value::List& items = value.as<Value::List>();
    tensors.reserve(items.size());
    for (Value& item : items) tensors.push_back(item.is_none() ? nullptr : &item.tensor());
    for (const Tensor*& tensor : tensors) {
      pointers.push_back(&tensor);
    }
  }
  OptTensorList get() noexcept { return {pointers.data(), pointers.size()}; }
  std::vector<const Tensor*> tensors;
  std::vector<const Tensor* const*> pointers;
};
template <class T>
struct Unboxed<std::optional<T>> {
  explicit Unboxed(Value& value) {
    if (!value.is_none()) inner.emplace(value);
  }
  std::optional<T> get() noexcept { return inner ? std::optional<T>(inner->get()) : std::nullopt; }
  std::optional<Unboxed<T>> inner;
};

inline void box_result(std::span<Value> slots, Tensor result) { slots[0] = std::move(result); }
inline void box_result(std::span<Value> slots, int64_t result) { slots[0] = result; }
inline void box_result(std::span<Value> slots, bool result) { slots[0] = result; }
inline void box_result(std::span<Value> slots, double result) { slots[0] = result; }
inline void box_result(std::span<Value> slots, std::vector<Tensor> result) {
  Value::List items;
  items.reserve(result.size());
  for (Tensor& tensor : result) items.emplace_back(std::move(tensor));
  slots[0] = std::move(items);
}
template <size_t N>
void box_result(std::span<Value> slots, std::array<Tensor, N> results) {
  for (size_t i = 0; i < N; ++i) slots[i] = std::move(results[i]);
}

namespace detail {

template <class Result, class... Parameters>
constexpr size_t parameter_count(Result (*)(Parameters...)) {
  return sizeof...(Parameters);
}

// kFirst: index in `arguments` of the kernel's first parameter; the others follow and wrap around.
template <auto kKernel, size_t kFirst, class Result, class... Parameters>
void call(Result (*)(Parameters...), std::span<Value> arguments, std::span<Value> results) {
  constexpr size_t kCount = sizeof...(Parameters);
  SCONCE_CHECK(arguments.size() == kCount, kInternal, "kernel of ", kCount, " parameters, schema of ",
               arguments.size());
  [&]<size_t... I>(std::index_sequence<I...>) {
    std::tuple<Unboxed<Parameters>...> values{Unboxed<Parameters>(arguments[(I + kFirst) % kCount])...};
    if constexpr (std::is_void_v<Result>)
      kKernel(std::get<I>(values).get()...);
    else
      box_result(results, kKernel(std::get<I>(values).get()...));
  }
  (std::make_index_sequence<kCount>());
}

}  // namespace detail

// For kernels of any device; the caller picks one that fits.
template <auto kKernel>
void boxed_anywhere(std::span<Value> arguments, std::span<Value> results) {
  detail::call<kKernel, 0>(kKernel, arguments, results);
}
template <auto kKernel>
void boxed(std::span<Value> arguments, std::span<Value> results) {
  for (Value& argument : arguments) check_host(argument);
  detail::call<kKernel, 0>(kKernel, arguments, results);
}
template <auto kKernel>
void boxed_in_place_anywhere(std::span<Value> arguments, std::span<Value> results) {
  detail::call<kKernel, 0>(kKernel, arguments, results);
  results[0] = Value::borrow(arguments[0].tensor());
}
template <auto kKernel>
void boxed_in_place(std::span<Value> arguments, std::span<Value> results) {
  for (Value& argument : arguments) check_host(argument);
  boxed_in_place_anywhere<kKernel>(arguments, results);
}
template <auto kKernel, size_t kOuts = 1>
void boxed_out(std::span<Value> arguments, std::span<Value> results) {
  for (Value& argument : arguments) check_host(argument);
  constexpr size_t kCount = detail::parameter_count(kKernel);
  detail::call<kKernel, kCount - kOuts>(kKernel, arguments, results);
  for (size_t i = 0; i < kOuts; ++i) results[i] = Value::borrow(arguments[arguments.size() - kOuts + i].tensor());
}

}  // namespace sconce::custom_ops
