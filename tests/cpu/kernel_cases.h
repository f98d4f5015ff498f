// Runs a kernel on the cases of its operator and converts a case's values to the kernel's parameter types.
//
//   TEST_CASE("kthvalue: ranks, ties, NaN") { run_kernel("statistics.cases", "kthvalue", cpu::kthvalue); }
//
// Parameters after the case's last argument are passed as none or false. Cases do not contain Generators.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "src/operators/arguments.h"
#include "tests/cpu/case_file.h"

namespace sconce::testing {

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

// Hands out the arguments of a case in turn, as parameters of a kernel. Owns the lists that it hands out.
class Arguments {
 public:
  Arguments(Case& c, size_t first, Generator* generator) : values_(c.args), next_(first), generator_(generator) {}

  template <class P>
  P take() {
    using T = std::remove_cvref_t<P>;
    if constexpr (std::is_same_v<T, Generator*>) {
      return generator_;
    } else if constexpr (kIsOptional<T>) {
      if (next_ < values_.size() && !values_[next_].none()) return take<typename T::value_type>();
      ++next_;
      return T();
    } else if constexpr (std::is_same_v<T, const Tensor*>) {
      return next_ < values_.size() ? values_[next_++].optional_tensor() : nullptr;
    } else if constexpr (std::is_same_v<T, bool>) {
      return next_ < values_.size() && values_[next_++].boolean();
    } else {
      Value& value = values_.at(next_++);
      if constexpr (std::is_same_v<T, Tensor>)
        return value.tensor();
      else if constexpr (std::is_floating_point_v<T>)
        return value.real();
      else if constexpr (std::is_integral_v<T>)
        return static_cast<T>(value.integer());
      else if constexpr (std::is_same_v<T, DType>)
        return dtype_from_number(static_cast<int32_t>(value.integer())).value();
      else if constexpr (std::is_same_v<T, Device>)
        return parse_device(value.text());
      else if constexpr (std::is_same_v<T, std::string_view>)
        return value.text();
      else if constexpr (std::is_same_v<T, TensorList>)
        return tensors_.emplace_back(value.list()).tensors();
      else if constexpr (std::is_same_v<T, OptTensorList>)
        return tensors_.emplace_back(value.list()).optional_tensors();
      else if constexpr (std::is_same_v<T, std::span<const Tensor* const>>)
        return kept<const Tensor*>(value, [](const Value& v) { return v.optional_tensor(); });
      else if constexpr (std::is_same_v<T, IntSpan>)
        return kept<int64_t>(value, [](const Value& v) { return v.integer(); });
      else if constexpr (std::is_same_v<T, std::span<const int32_t>>)  // flags
        return kept<int32_t>(value, [](const Value& v) { return v.boolean(); });
      else if constexpr (std::is_same_v<T, std::span<const double>>)
        return kept<double>(value, [](const Value& v) { return v.real(); });
      else  // numbers that may be absent
        return kept<const double*>(value, [&](const Value& v) { return kept<double>(v.real()).data(); });
    }
  }

 private:
  template <class T>
  std::span<const T> kept(T value) {
    return std::get<std::deque<std::vector<T>>>(lists_).emplace_back(1, value);
  }
  template <class T, class F>
  std::span<const T> kept(const Value& value, F element) {
    std::vector<T> list;
    for (const Value& v : value.list()) list.push_back(element(v));
    return std::get<std::deque<std::vector<T>>>(lists_).emplace_back(std::move(list));
  }

  Values& values_;
  size_t next_;
  Generator* generator_;
  std::deque<ListArgument> tensors_;
  std::tuple<std::deque<std::vector<const Tensor*>>, std::deque<std::vector<int64_t>>, std::deque<std::vector<int32_t>>,
             std::deque<std::vector<double>>, std::deque<std::vector<const double*>>>
      lists_;
};

inline std::vector<Tensor> listed(Tensor result) { return {std::move(result)}; }
inline std::vector<Tensor> listed(std::vector<Tensor> results) { return results; }
template <size_t N>
std::vector<Tensor> listed(const std::array<Tensor, N>& results) {
  return {results.begin(), results.end()};
}

// Calls the kernel with the arguments of the case from `first` on; returns its results.
template <class R, class... P>
std::vector<Tensor> call_kernel(Case& c, R (*kernel)(P...), size_t first = 0, Generator* generator = nullptr) {
  Arguments arguments(c, first, generator);
  std::tuple<P...> taken{arguments.take<P>()...};
  if constexpr (std::is_void_v<R>) {
    std::apply(kernel, std::move(taken));
    return {};
  } else {
    return listed(std::apply(kernel, std::move(taken)));
  }
}
template <class R, class... P>
void run_kernel(std::string_view file, std::string_view op, R (*kernel)(P...)) {
  run_cases(file, op, [&](Case& c) { return call_kernel(c, kernel); });
}

}  // namespace sconce::testing
