#include "src/cpu/indexing/masked.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/indexing/nonzero.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/block_copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/factory.h"
#include "src/tensor/fill.h"
#include "src/tensor/rules/masked.h"
#include "src/tensor/strided_loop.h"

namespace sconce {
namespace {

template <class E>
void blend_run(E* __restrict to, const uint8_t* __restrict set, E value, int64_t n) noexcept {
  if constexpr (sizeof(E) == 16) {
    for (int64_t i = 0; i < n; ++i)
      if (set[i]) to[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = set[i] ? value : to[i];
  }
}

// For each set bit, copies an element between `sparse`, at the bit's position, and `packed`, at the number of set bits
// before it. Blocks of bits are done in parallel, and 64 neighbours that are all set are one copy.
template <class E, bool kToPacked>
void move_set(const NonzeroBits& bits, char* sparse, char* packed) {
  const auto move = [=](int64_t position, int64_t k, auto count) noexcept {
    char* const at = sparse + position * sizeof(E);
    char* const other = packed + k * sizeof(E);
    kToPacked ? std::memcpy(other, at, count * sizeof(E)) : std::memcpy(at, other, count * sizeof(E));
  };
  parallel_for(0, bits.blocks(), 1, [&](int64_t begin, int64_t end) noexcept {
    int64_t k = bits.before_block(begin);
    const int64_t last = std::min(end * NonzeroBits::kBlock, bits.words());
    for (int64_t w = begin * NonzeroBits::kBlock; w < last; ++w) {
      uint64_t word = bits.word(w);
      if (~word == 0) {
        move(w * 64, k, std::integral_constant<size_t, 64>());
        k += 64;
        continue;
      }
      for (; word; word &= word - 1) move(w * 64 + std::countr_zero(word), k++, std::integral_constant<size_t, 1>());
    }
  });
}

}  // namespace

void fill_where(Tensor& self, const Tensor& mask, const void* element) {
  if (self.numel() == 0) return;
  const StridedLoop<2> loop(self.sizes(), {self.strides(), mask.strides()}, {self.itemsize(), 1});
  dispatch_bytes(self.itemsize(), [&]<class E>() {
    const E value = load_unaligned<E>(element);
    const auto fill_row = [value](char* const* p, const int64_t* stride, int64_t n) {
      const auto* set = reinterpret_cast<const uint8_t*>(p[1]);
      if (stride[0] == sizeof(E) && stride[1] == 0) {
        if (*set) fill_run(p[0], value, n);
      } else if (stride[0] == sizeof(E) && stride[1] == 1) {
        blend_run(reinterpret_cast<E*>(p[0]), set, value, n);
      } else {
        for (int64_t i = 0; i < n; ++i)
          if (set[i * stride[1]]) store_unaligned(p[0] + i * stride[0], value);
      }
    };
    parallel_for(0, loop.numel, 32 << 10, [&](int64_t begin, int64_t end) noexcept {
      loop.run({static_cast<char*>(self.data()), static_cast<char*>(mask.data())}, begin, end, fill_row);
    });
  });
}

namespace cpu {

// The elements of self (broadcast with mask) where the mask is true, in row-major order: [n]. Mask: bool.
Tensor masked_select(const Tensor& self, const Tensor& mask) {
  SCONCE_CHECK(mask.dtype() == DType::kBool, kInvalidArgument, "masked_select: expected BoolTensor for mask, got ",
               dtype_name(mask.dtype()));
  const Shape shape = broadcast_shapes("masked_select", self.sizes(), mask.sizes());
  const NonzeroBits bits(expand("masked_select", mask, shape));
  const Tensor whole = contiguous(expand("masked_select", self, shape));
  const int64_t count = bits.count();
  Tensor out = Tensor::empty({&count, 1}, self.dtype());
  dispatch_bytes(self.itemsize(), [&]<class E>() {
    move_set<E, true>(bits, static_cast<char*>(whole.data()), static_cast<char*>(out.data()));
  });
  return out;
}

// Gradient of masked_scatter by its source, of `sizes`: masked_select(grad_output, mask), then zeros.
Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntSpan sizes) {
  const Tensor selected = masked_select(grad_output, mask);
  Tensor out = empty_checked("masked_scatter_backward", sizes, grad_output.dtype());
  SCONCE_CHECK(selected.numel() <= out.numel(), kInvalidArgument, "masked_scatter_backward: sizes ", to_string(sizes),
               " are too few for ", selected.numel(), " elements");
  zero(out);
  std::memcpy(out.data(), selected.data(), selected.bytes());
  return out;
}

// self (broadcast with mask), row-major, where true elements are replaced by the next ones of source in row-major
// order. kInvalidArgument where source has too few.
Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  check_masked_scatter(self, mask, source);
  const Shape shape = broadcast_shapes("masked_scatter", self.sizes(), mask.sizes());
  Tensor out = clone_contiguous(expand("masked_scatter", self, shape));
  const NonzeroBits bits(expand("masked_scatter", mask, shape));
  SCONCE_CHECK(bits.count() <= source.numel(), kInvalidArgument,
               "masked_scatter: Number of elements of source < number of ones in mask: ", source.numel(), " < ",
               bits.count());
  const Tensor packed = contiguous(source);
  dispatch_bytes(self.itemsize(), [&]<class E>() {
    move_set<E, false>(bits, static_cast<char*>(out.data()), static_cast<char*>(packed.data()));
  });
  return out;
}

}  // namespace cpu

}  // namespace sconce
