// The elementwise engine: result = f(a), f(a, b) or f(a, b, c) for operands of any dtype and strides that broadcast.
//
// A kernel is a functor over one compute type per operand; rows whose dtype or spacing differs are converted and
// packed block by block in first-level cache, so that the functor's loop is always over packed arrays and vectorises.
// Runs on the calling thread's team. Result dtype, sizes and strides as at::TensorIterator's (torch 2.15).
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

// A new tensor of the broadcast shape; `computed` is the dtype the operands are converted to before they meet, which
// decides about strides where a converted operand has gaps.
Tensor make_result(std::string_view name, std::initializer_list<const Tensor*> operands, DType computed, DType result);

namespace detail {

inline constexpr int64_t kMapBlock = 512;

// Packed T from a row of any dtype and spacing.
template <class T>
class InputRow {
 public:
  InputRow(DType dtype, const char* data, int64_t stride) noexcept
      : dtype_(dtype), data_(data), stride_(stride), item_(static_cast<int64_t>(dtype_bytes(dtype))) {}
  bool direct() const noexcept { return dtype_ == kDType<T> && stride_ == item_; }
  const T* at(int64_t begin, int64_t count) noexcept {
    if (direct()) return reinterpret_cast<const T*>(data_) + begin;
    const auto buffer = reinterpret_cast<T*>(buffer_);
    if (stride_ == 0) {
      if (filled_ < count) {
        convert(dtype_, data_, kDType<T>, buffer, 1);
        std::fill(buffer + 1, buffer + count, T(buffer[0]));
        filled_ = count;
      }
    } else if (stride_ == item_) {
      convert(dtype_, data_ + begin * item_, kDType<T>, buffer, count);
    } else {
      alignas(64) std::byte packed[kMapBlock * 16];
      dispatch_bytes(static_cast<size_t>(item_), [&]<class Bytes>() {
        const char* from = data_ + begin * stride_;
        auto* to = reinterpret_cast<Bytes*>(packed);
        for (int64_t i = 0; i < count; ++i, from += stride_) to[i] = *reinterpret_cast<const Bytes*>(from);
      });
      convert(dtype_, packed, kDType<T>, buffer, count);
    }
    return buffer;
  }

 private:
  DType dtype_;
  const char* data_;
  int64_t stride_, item_, filled_ = 0;
  alignas(64) std::byte buffer_[kMapBlock * sizeof(T)];
};

template <class T>
class OutputRow {
 public:
  OutputRow(DType dtype, char* data, int64_t stride) noexcept
      : dtype_(dtype), data_(data), stride_(stride), item_(static_cast<int64_t>(dtype_bytes(dtype))) {}
  bool direct() const noexcept { return dtype_ == kDType<T> && stride_ == item_; }
  T* at(int64_t begin) noexcept {
    return direct() ? reinterpret_cast<T*>(data_) + begin : reinterpret_cast<T*>(buffer_);
  }
  void store(int64_t begin, int64_t count) noexcept {
    if (direct()) return;
    if (stride_ == item_) return convert(kDType<T>, buffer_, dtype_, data_ + begin * item_, count);
    alignas(64) std::byte packed[kMapBlock * 16];
    convert(kDType<T>, buffer_, dtype_, packed, count);
    dispatch_bytes(static_cast<size_t>(item_), [&]<class Bytes>() {
      char* to = data_ + begin * stride_;
      const auto* from = reinterpret_cast<const Bytes*>(packed);
      for (int64_t i = 0; i < count; ++i, to += stride_) *reinterpret_cast<Bytes*>(to) = from[i];
    });
  }

 private:
  DType dtype_;
  char* data_;
  int64_t stride_, item_;
  alignas(64) std::byte buffer_[kMapBlock * sizeof(T)];
};

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

}  // namespace detail

// out = f(inputs...), where f takes In... and returns Out; out has the broadcast shape. Elements of out that are
// inputs too must be the same elements. f.row(count, out, in...), where there is one, does packed elements in a row.
// F::OnBFloat16 says that f is short, so that bfloat16 is converted within its loop, or has rows of bfloat16 itself.
template <class Out, class... In, class F, size_t N = sizeof...(In)>
void map_elements(std::string_view name, Tensor& out, F f, const std::array<const Tensor*, N>& inputs,
                  int64_t grain = 32768) {
  constexpr int kOperands = 1 + static_cast<int>(N);
  std::array<Shape, N> input_strides;
  std::array<IntSpan, kOperands> strides;
  std::array<size_t, kOperands> items;
  std::array<char*, kOperands> bases;
  std::array<DType, N> dtypes;
  strides[0] = out.strides();
  items[0] = out.itemsize();
  bases[0] = static_cast<char*>(out.data());
  for (size_t i = 0; i < N; ++i) {
    input_strides[i] = broadcast_strides(name, *inputs[i], out.sizes());
    strides[i + 1] = input_strides[i];
    items[i + 1] = inputs[i]->itemsize();
    bases[i + 1] = static_cast<char*>(inputs[i]->data());
    dtypes[i] = inputs[i]->dtype();
  }
  if (out.numel() == 0) return;
  const StridedLoop<kOperands> loop(out.sizes(), strides, items);
  const DType out_dtype = out.dtype();
  const auto row = [&](char* const* pointers, const int64_t* steps, int64_t count) noexcept {
    [&]<size_t... I>(std::index_sequence<I...>) {
      if (out_dtype == kDType<Out> && steps[0] == sizeof(Out) &&
          ((dtypes[I] == kDType<In> && steps[I + 1] == sizeof(In)) && ...))
        return detail::map_packed(f, count, reinterpret_cast<Out*>(pointers[0]),
                                  reinterpret_cast<const In*>(pointers[I + 1])...);
      if constexpr (requires { typename F::OnBFloat16; } && std::is_same_v<Out, float>)
        if (out_dtype == DType::kBFloat16 && steps[0] == 2 &&
            ((dtypes[I] == DType::kBFloat16 && steps[I + 1] == 2) && ...))
          return detail::map_bfloat16(f, count, reinterpret_cast<BFloat16*>(pointers[0]),
                                      reinterpret_cast<const BFloat16*>(pointers[I + 1])...);
      detail::OutputRow<Out> to(out_dtype, pointers[0], steps[0]);
      std::tuple<detail::InputRow<In>...> from(detail::InputRow<In>(dtypes[I], pointers[I + 1], steps[I + 1])...);
      for (int64_t begin = 0; begin < count; begin += detail::kMapBlock) {
        const int64_t n = std::min(detail::kMapBlock, count - begin);
        detail::map_packed(f, n, to.at(begin), std::get<I>(from).at(begin, n)...);
        to.store(begin, n);
      }
    }
    (std::make_index_sequence<N>());
  };
  parallel_for(0, loop.numel, grain, [&](int64_t begin, int64_t end) noexcept { loop.run(bases, begin, end, row); });
}

}  // namespace sconce
