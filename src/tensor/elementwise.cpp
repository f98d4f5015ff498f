#include "src/tensor/elementwise.h"

#include <algorithm>
#include <cstddef>

#include "src/device/threads.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/convert.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

constexpr int64_t kMapBlock = 512;
constexpr size_t kMaxBytes = 16;  // of an element

// A row of any dtype and spacing, as packed elements of another dtype.
class InputRow {
 public:
  InputRow() noexcept = default;
  void set(DType dtype, const char* data, int64_t stride, DType computed) noexcept {
    dtype_ = dtype;
    computed_ = computed;
    data_ = data;
    stride_ = stride;
    item_ = static_cast<int64_t>(dtype_bytes(dtype));
    filled_ = 0;
  }
  const char* at(int64_t begin, int64_t count) noexcept {
    if (stride_ == 0) {
      if (filled_ < count) {
        convert(dtype_, data_, computed_, buffer_, 1);
        dispatch_bytes(dtype_bytes(computed_), [&]<class Bytes>() {
          auto* const to = reinterpret_cast<Bytes*>(buffer_);
          std::fill(to + 1, to + count, Bytes(to[0]));
        });
        filled_ = count;
      }
      return buffer_;
    }
    const char* from = data_ + begin * stride_;
    if (stride_ == item_) {
      if (dtype_ == computed_) return from;
      convert(dtype_, from, computed_, buffer_, count);
      return buffer_;
    }
    alignas(64) char packed[kMapBlock * kMaxBytes];
    char* const to = dtype_ == computed_ ? buffer_ : packed;
    dispatch_bytes(static_cast<size_t>(item_), [&]<class Bytes>() {
      auto* place = reinterpret_cast<Bytes*>(to);
      for (int64_t i = 0; i < count; ++i, from += stride_) place[i] = *reinterpret_cast<const Bytes*>(from);
    });
    if (dtype_ != computed_) convert(dtype_, packed, computed_, buffer_, count);
    return buffer_;
  }

 private:
  DType dtype_, computed_;
  const char* data_;
  int64_t stride_, item_, filled_;
  alignas(64) char buffer_[kMapBlock * kMaxBytes];
};

// Packed elements of one dtype, stored as a row of any dtype and spacing.
class OutputRow {
 public:
  OutputRow(DType computed, DType dtype, char* data, int64_t stride) noexcept
      : computed_(computed),
        dtype_(dtype),
        data_(data),
        stride_(stride),
        item_(static_cast<int64_t>(dtype_bytes(dtype))) {}
  char* at(int64_t begin) noexcept { return direct() ? data_ + begin * item_ : buffer_; }
  void store(int64_t begin, int64_t count) noexcept {
    if (direct()) return;
    char* to = data_ + begin * stride_;
    if (stride_ == item_) return convert(computed_, buffer_, dtype_, to, count);
    alignas(64) char packed[kMapBlock * kMaxBytes];
    if (dtype_ != computed_) convert(computed_, buffer_, dtype_, packed, count);
    dispatch_bytes(static_cast<size_t>(item_), [&]<class Bytes>() {
      const auto* from = reinterpret_cast<const Bytes*>(dtype_ == computed_ ? buffer_ : packed);
      for (int64_t i = 0; i < count; ++i, to += stride_) *reinterpret_cast<Bytes*>(to) = from[i];
    });
  }

 private:
  bool direct() const noexcept { return dtype_ == computed_ && stride_ == item_; }

  DType computed_, dtype_;
  char* data_;
  int64_t stride_, item_;
  alignas(64) char buffer_[kMapBlock * kMaxBytes];
};

}  // namespace

Tensor make_result(std::string_view name, std::initializer_list<const Tensor*> operands, DType computed, DType result) {
  Shape sizes((*operands.begin())->sizes());
  for (const Tensor* t : operands) sizes = broadcast_shapes(name, sizes, t->sizes());
  std::array<const Tensor*, 4> as_met{};
  std::array<Tensor, 4> converted;
  size_t n = 0;
  for (const Tensor* t : operands) {
    as_met[n] = t;
    // ATen first converts such an operand into a dense tensor, whose strides then count.
    if (t->dtype() != computed && t->dim() > 0 && !t->is_dense()) {
      converted[n] = empty_like(*t, computed);
      as_met[n] = &converted[n];
    }
    ++n;
  }
  return Tensor::empty_strided(sizes, elementwise_strides(sizes, {as_met.data(), n}), result);
}

namespace detail {

template <size_t N>
void run_rows(std::string_view name, Tensor& out, const std::array<const Tensor*, N>& inputs, const ElementRows& rows,
              int64_t grain) {
  constexpr int kOperands = 1 + static_cast<int>(N);
  std::array<Shape, N> input_strides;
  std::array<IntSpan, kOperands> strides;
  std::array<size_t, kOperands> items;
  std::array<char*, kOperands> bases;
  strides[0] = out.strides();
  items[0] = out.itemsize();
  bases[0] = static_cast<char*>(out.data());
  bool as_computed = out.dtype() == rows.out;
  bool as_bfloat16 = rows.bfloat16 && out.dtype() == DType::kBFloat16;
  for (size_t i = 0; i < N; ++i) {
    input_strides[i] = broadcast_strides(name, *inputs[i], out.sizes());
    strides[i + 1] = input_strides[i];
    items[i + 1] = inputs[i]->itemsize();
    bases[i + 1] = static_cast<char*>(inputs[i]->data());
    as_computed &= inputs[i]->dtype() == rows.in[i];
    as_bfloat16 &= inputs[i]->dtype() == DType::kBFloat16;
  }
  if (out.numel() == 0) return;
  const StridedLoop<kOperands> loop(out.sizes(), strides, items);
  // The functor's loop for rows that need no conversion; null if an operand has another dtype.
  const ElementRows::Row whole = as_computed ? rows.packed : as_bfloat16 ? rows.bfloat16 : nullptr;

  const auto row = [&](char* const* pointers, const int64_t* steps, int64_t count) noexcept {
    bool packed = whole != nullptr;
    for (int i = 0; i < kOperands; ++i) packed &= count == 1 || steps[i] == static_cast<int64_t>(items[i]);
    if (packed) return whole(rows.functor, count, pointers[0], pointers + 1);
    OutputRow to(rows.out, out.dtype(), pointers[0], steps[0]);
    std::array<InputRow, N> from;
    for (size_t i = 0; i < N; ++i) from[i].set(inputs[i]->dtype(), pointers[i + 1], steps[i + 1], rows.in[i]);
    for (int64_t begin = 0; begin < count; begin += kMapBlock) {
      const int64_t n = std::min(kMapBlock, count - begin);
      std::array<const char*, N> in;
      for (size_t i = 0; i < N; ++i) in[i] = from[i].at(begin, n);
      rows.packed(rows.functor, n, to.at(begin), in.data());
      to.store(begin, n);
    }
  };
  parallel_for(0, loop.numel, grain, [&](int64_t begin, int64_t end) noexcept { loop.run(bases, begin, end, row); });
}
template void run_rows<1>(std::string_view, Tensor&, const std::array<const Tensor*, 1>&, const ElementRows&, int64_t);
template void run_rows<2>(std::string_view, Tensor&, const std::array<const Tensor*, 2>&, const ElementRows&, int64_t);
template void run_rows<3>(std::string_view, Tensor&, const std::array<const Tensor*, 3>&, const ElementRows&, int64_t);

}  // namespace detail
}  // namespace sconce
