// boxed<kernel>: a typed kernel as a BoxedKernel. Parameter and result types are those of src/operators/kernel_args.h,
// and Scalar. Kernels that return nothing write some of their arguments:
//   boxed_in_place<kernel>     the first argument, which is the result
//   boxed_out<kernel, N>       the last N of the schema, which are the kernel's first parameters and its results
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "src/custom_ops/operator/operator.h"
#include "src/operators/arguments.h"
#include "src/tensor/scalar.h"

namespace sconce::custom_ops {

// kUnsupported if no dtype has the number.
DType dtype_of_number(int64_t number);
// Throws if a tensor is not in host memory: the CPU's kernels read host memory, but a package for another device may
// pass that device's tensors.
void check_host(std::span<Value> arguments);

// kInvalidArgument if the tensor is undefined.
Tensor& defined_tensor(Value& value);

// Owns the data behind a parameter of type T; get() is valid during the object's lifetime.
template <class T>
struct Unboxed;

template <>
struct Unboxed<const Tensor&> {
  explicit Unboxed(Value& value) : tensor(defined_tensor(value)) {}
  const Tensor& get() noexcept { return tensor; }
  const Tensor& tensor;
};
template <>
struct Unboxed<Tensor&> {
  explicit Unboxed(Value& value) : tensor(defined_tensor(value)) {}
  Tensor& get() noexcept { return tensor; }
  Tensor& tensor;
};
template <>
struct Unboxed<const Tensor*> {
  explicit Unboxed(Value& value);
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
  static Scalar of(Value& value);
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
  explicit Unboxed(Value& value);
  Device get() noexcept { return device; }
  Device device;
};
template <>
struct Unboxed<std::string_view> {
  explicit Unboxed(Value& value);
  std::string_view get() noexcept { return text; }
  std::string_view text;
};
template <>
struct Unboxed<IntSpan> {
  explicit Unboxed(Value& value);
  IntSpan get() noexcept { return values; }
  IntSpan values;
};
template <>
struct Unboxed<std::span<const double>> {
  explicit Unboxed(Value& value);
  std::span<const double> get() noexcept { return values; }
  std::span<const double> values;
};
template <>
struct Unboxed<std::span<const Scalar>> {
  explicit Unboxed(Value& value);
  std::span<const Scalar> get() noexcept { return numbers; }
  std::vector<Scalar> numbers;
};
template <>
struct Unboxed<std::span<const int32_t>> {  // bool[]
  explicit Unboxed(Value& value);
  std::span<const int32_t> get() noexcept { return flags; }
  std::vector<int32_t> flags;
};
template <>
struct Unboxed<Generator*> {
  explicit Unboxed(Value& value);
  Generator* get() noexcept { return generator; }
  Generator* generator;
};
template <>
struct Unboxed<TensorList> {
  explicit Unboxed(Value& value);
  TensorList get() noexcept { return {tensors.data(), tensors.size()}; }
  std::vector<const Tensor*> tensors;
};
template <>
struct Unboxed<OptTensorList> {
  explicit Unboxed(Value& value);
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
void box_result(std::span<Value> slots, std::vector<Tensor> result);
void box_results(std::span<Value> slots, std::span<Tensor> results);
template <size_t N>
void box_result(std::span<Value> slots, std::array<Tensor, N> results) {
  box_results(slots, results);
}

namespace detail {

template <class Result, class... Parameters>
constexpr size_t parameter_count(Result (*)(Parameters...)) {
  return sizeof...(Parameters);
}

void check_count(size_t arguments, size_t parameters);

template <size_t I, class T>
struct Slot : Unboxed<T> {
  using Unboxed<T>::Unboxed;
};
template <class Indices, class... Parameters>
struct Slots;
// Braces initialise its bases in order.
template <size_t... I, class... Parameters>
struct Slots<std::index_sequence<I...>, Parameters...> : Slot<I, Parameters>... {};

template <class Result, class... Parameters, size_t... I>
void call_with(Result (*kernel)(Parameters...), std::span<Value> results,
               Slots<std::index_sequence<I...>, Parameters...> values) {
  if constexpr (std::is_void_v<Result>)
    kernel(static_cast<Slot<I, Parameters>&>(values).get()...);
  else
    box_result(results, kernel(static_cast<Slot<I, Parameters>&>(values).get()...));
}

// Compiled once per source file for all kernels of the same type. kFirst: index in `arguments` of the kernel's first
// parameter; the others follow and wrap around.
template <size_t kFirst, class Result, class... Parameters>
[[gnu::noinline]] void call(Result (*kernel)(Parameters...), std::span<Value> arguments, std::span<Value> results) {
  constexpr size_t kCount = sizeof...(Parameters);
  check_count(arguments.size(), kCount);
  [&]<size_t... I>(std::index_sequence<I...>) {
    call_with(
        kernel, results,
        Slots<std::index_sequence<I...>, Parameters...>{Slot<I, Parameters>(arguments[(I + kFirst) % kCount])...});
  }
  (std::make_index_sequence<kCount>());
}

}  // namespace detail

// For a kernel of any device. The caller must pass tensors of the kernel's device.
template <auto kKernel>
void boxed_anywhere(std::span<Value> arguments, std::span<Value> results) {
  detail::call<0>(kKernel, arguments, results);
}
template <auto kKernel>
void boxed(std::span<Value> arguments, std::span<Value> results) {
  check_host(arguments);
  detail::call<0>(kKernel, arguments, results);
}
template <auto kKernel>
void boxed_in_place_anywhere(std::span<Value> arguments, std::span<Value> results) {
  detail::call<0>(kKernel, arguments, results);
  results[0] = Value::borrow(arguments[0].tensor());
}
template <auto kKernel>
void boxed_in_place(std::span<Value> arguments, std::span<Value> results) {
  check_host(arguments);
  boxed_in_place_anywhere<kKernel>(arguments, results);
}
template <auto kKernel, size_t kOuts = 1>
void boxed_out(std::span<Value> arguments, std::span<Value> results) {
  check_host(arguments);
  constexpr size_t kCount = detail::parameter_count(kKernel);
  detail::call<kCount - kOuts>(kKernel, arguments, results);
  for (size_t i = 0; i < kOuts; ++i) results[i] = Value::borrow(arguments[arguments.size() - kOuts + i].tensor());
}

}  // namespace sconce::custom_ops
