// The elementwise engine: result = f(a), f(a, b) or f(a, b, c) for operands of any dtype and strides that broadcast.
//
// A kernel is a functor over one compute type per operand. Rows of another dtype or spacing are converted and packed
// block by block in first-level cache, so that the functor's loop always runs over packed arrays and vectorises. Runs
// on the calling thread's team. Result dtype, sizes and strides as at::TensorIterator's (torch 2.15).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>

#include "src/device/threads.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/type_promotion.h"

namespace sconce {

// A new tensor of the broadcast shape. `computed` is the dtype to which operands are converted before the operation;
// it affects the strides if a converted operand has gaps.
Tensor make_result(std::string_view name, std::initializer_list<const Tensor*> operands, DType computed, DType result);

namespace detail {

// The output may be one of the inputs.
template <class Out, class F, class... In>
void map_packed(F f, int64_t count, Out* out, const In*... in) noexcept {
  if constexpr (requires { f.row(count, out, in...); }) {
    f.row(count, out, in...);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = f(in[i]...);
  }
}
template <class F, class... In>
void map_bfloat16(F f, int64_t count, BFloat16* out, const In*... in) noexcept {
  if constexpr (requires { f.bfloat16_row(count, out, in...); }) {
    f.bfloat16_row(count, out, in...);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = BFloat16(f(static_cast<float>(in[i])...));
  }
}

// A functor with its types erased. The compiler generates only the loops over packed rows for each functor; all
// functors share the code that walks over strides and converts dtypes.
struct ElementRows {
  using Row = void (*)(const void* functor, int64_t count, void* out, const char* const* in) noexcept;
  const void* functor;
  DType out;
  std::array<DType, 3> in;
  Row packed;              // reads and writes these dtypes
  Row bfloat16 = nullptr;  // everything in bfloat16, if the functor has such rows
};
template <class F, class Out, class... In>
ElementRows element_rows(const F& f) noexcept {
  ElementRows rows{&f, kDType<Out>, {kDType<In>...}, nullptr};
  rows.packed = [](const void* functor, int64_t count, void* out, const char* const* in) noexcept {
    [&]<size_t... I>(std::index_sequence<I...>) {
      map_packed(*static_cast<const F*>(functor), count, static_cast<Out*>(out), reinterpret_cast<const In*>(in[I])...);
    }
    (std::index_sequence_for<In...>());
  };
  if constexpr (requires { typename F::OnBFloat16; } && std::is_same_v<Out, float>)
    rows.bfloat16 = [](const void* functor, int64_t count, void* out, const char* const* in) noexcept {
      [&]<size_t... I>(std::index_sequence<I...>) {
        map_bfloat16(*static_cast<const F*>(functor), count, static_cast<BFloat16*>(out),
                     ((void)I, reinterpret_cast<const BFloat16*>(in[I]))...);
      }
      (std::index_sequence_for<In...>());
    };
  return rows;
}
// For N of 1, 2 and 3.
template <size_t N>
void run_rows(std::string_view name, Tensor& out, const std::array<const Tensor*, N>& inputs, const ElementRows& rows,
              int64_t grain);

}  // namespace detail

// out = f(inputs...), where f takes In... and returns Out; out has the broadcast shape. Elements of out that are also
// inputs must be the same elements. f.row(count, out, in...), if it exists, handles packed elements in a row.
// F::OnBFloat16 means that f is short, so bfloat16 is converted within its loop, or has rows of bfloat16 itself.
template <class Out, class... In, class F, size_t N = sizeof...(In)>
void map_elements(std::string_view name, Tensor& out, F f, const std::array<const Tensor*, N>& inputs,
                  int64_t grain = 32768) {
  static_assert(N == sizeof...(In) && !std::is_pointer_v<F>, "not a function by its address: the loop has f inline");
  detail::run_rows<N>(name, out, inputs, detail::element_rows<F, Out, In...>(f), grain);
}

}  // namespace sconce
