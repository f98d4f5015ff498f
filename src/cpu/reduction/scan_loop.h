// The loop of every scan: slices along a dimension, several at a time, so that their sums are independent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sconce/tensor.h"
#include "src/device/threads.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

struct ScanPlan {
  // out row-major, of self's sizes, at least one dimension.
  ScanPlan(const Tensor& out, const Tensor& self, int64_t dim)
      : others(without(self.sizes(), dim), {without(out.strides(), dim), without(self.strides(), dim)},
               {out.itemsize(), self.itemsize()}),
        count(self.size(dim)),
        out_step(out.stride(dim) * static_cast<int64_t>(out.itemsize())),
        self_step(self.stride(dim) * static_cast<int64_t>(self.itemsize())) {}

  StridedLoop<2> others;
  int64_t count, out_step, self_step;

 private:
  static Shape without(IntSpan values, int64_t dim) {
    Shape out;
    for (size_t d = 0; d < values.size(); ++d)
      if (static_cast<int64_t>(d) != dim) out.push_back(values[d]);
    return out;
  }
};

namespace detail {

// N slices at once; slice j is at out + j * out_next, self + j * self_next.
template <int N, class T, class Op>
void scan_slices(const ScanPlan& plan, char* out, const char* self, int64_t out_next, int64_t self_next, const Op& op) {
  typename Op::State state[N];
  for (int j = 0; j < N; ++j) state[j] = op.start();
  for (int64_t i = 0; i < plan.count; ++i) {
    char* o = out + i * plan.out_step;
    const char* s = self + i * plan.self_step;
    for (int j = 0; j < N; ++j) op.step(state[j], *reinterpret_cast<const T*>(s + j * self_next), i, o + j * out_next);
  }
}

// Neighbouring slices, packed in both: the inner loop is over slices.
template <class T, class Op>
void scan_packed(const ScanPlan& plan, char* out, const char* self, int64_t n, const Op& op) {
  constexpr int64_t kBlock = 256;
  typename Op::State state[kBlock];
  for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
    const int64_t m = std::min(kBlock, n - j0);
    for (int64_t j = 0; j < m; ++j) state[j] = op.start();
    for (int64_t i = 0; i < plan.count; ++i) {
      char* o = out + i * plan.out_step + j0 * static_cast<int64_t>(sizeof(typename Op::Out));
      const T* s = reinterpret_cast<const T*>(self + i * plan.self_step) + j0;
      for (int64_t j = 0; j < m; ++j)
        op.step(state[j], s[j], i, o + j * static_cast<int64_t>(sizeof(typename Op::Out)));
    }
  }
}

}  // namespace detail

// For each slice in sequence: op.step(State&, T value, int64_t i, char* out) from op.start(). Op::Out is out's
// element.
template <class T, class Op>
void scan_loop(const ScanPlan& plan, void* out, const void* self, const Op& op) {
  if (plan.count == 0) return;
  parallel_for(
      0, plan.others.numel, std::max<int64_t>((16 << 10) / plan.count, 1), [&](int64_t begin, int64_t end) noexcept {
        plan.others.run({static_cast<char*>(out), static_cast<char*>(const_cast<void*>(self))}, begin, end,
                        [&](char* const* p, const int64_t* stride, int64_t n) {
                          if (stride[0] == sizeof(typename Op::Out) && stride[1] == sizeof(T) && n >= 8)
                            return detail::scan_packed<T>(plan, p[0], p[1], n, op);
                          int64_t j = 0;
                          for (; j + 4 <= n; j += 4)
                            detail::scan_slices<4, T>(plan, p[0] + j * stride[0], p[1] + j * stride[1], stride[0],
                                                      stride[1], op);
                          for (; j < n; ++j)
                            detail::scan_slices<1, T>(plan, p[0] + j * stride[0], p[1] + j * stride[1], 0, 0, op);
                        });
      });
}

}  // namespace sconce
