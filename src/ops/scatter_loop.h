// The loop of every scatter: walks index and src and hands each target element to an operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sconce/tensor.h"
#include "src/device/threads.h"
#include "src/ops/strided_loop.h"

namespace sconce {

struct ScatterPlan {
  // index must be int64. value_strides: src's, or zeros for a single value.
  ScatterPlan(const Tensor& out, const Tensor& index, IntSpan value_strides, size_t value_itemsize, int64_t dim);

  StridedLoop<3> others;                     // out, index, value: index's dimensions but `dim`
  int64_t count;                             // of index along dim
  int64_t size;                              // of out along dim
  int64_t out_step, index_step, value_step;  // bytes along dim
};

namespace detail {

// Targets outside [low, low + span) are left alone. The index that is out of bounds, if any, goes to *bad.
template <class To, class From, class Op>
bool scatter_range(const ScatterPlan& plan, char* out, const int64_t* index, const char* values, int64_t begin,
                   int64_t end, int64_t low, int64_t span, std::atomic<const int64_t*>& bad) noexcept {
  const bool all = low == 0 && span == plan.size;
  const auto at = [](const char* base, int64_t offset) { return reinterpret_cast<const int64_t*>(base + offset); };
  const int64_t* first_bad = nullptr;
  const auto target = [&](const int64_t* i) {
    if (static_cast<uint64_t>(*i) >= static_cast<uint64_t>(plan.size)) [[unlikely]] {
      first_bad = i;
      return int64_t{-1};
    }
    return all || static_cast<uint64_t>(*i - low) < static_cast<uint64_t>(span) ? *i : -1;
  };
  plan.others.run({out, const_cast<char*>(reinterpret_cast<const char*>(index)), const_cast<char*>(values)}, begin, end,
                  [&](char* const* p, const int64_t* stride, int64_t n) {
                    if (stride[1] == 0 || n == 1) {
                      // One index for the whole row.
                      const bool packed = stride[0] == sizeof(To) && (stride[2] == sizeof(From) || stride[2] == 0);
                      for (int64_t i = 0; i < plan.count; ++i) {
                        const int64_t t = target(at(p[1], i * plan.index_step));
                        if (t < 0) continue;
                        char* to = p[0] + t * plan.out_step;
                        const char* from = p[2] + i * plan.value_step;
                        if (n == 1) {
                          Op::apply(*reinterpret_cast<To*>(to), *reinterpret_cast<const From*>(from));
                        } else if (packed && stride[2] != 0) {
                          auto* __restrict d = reinterpret_cast<To*>(to);
                          const auto* __restrict s = reinterpret_cast<const From*>(from);
                          for (int64_t j = 0; j < n; ++j) Op::apply(d[j], s[j]);
                        } else {
                          for (int64_t j = 0; j < n; ++j)
                            Op::apply(*reinterpret_cast<To*>(to + j * stride[0]),
                                      *reinterpret_cast<const From*>(from + j * stride[2]));
                        }
                      }
                    } else if (plan.index_step < stride[1]) {
                      for (int64_t j = 0; j < n; ++j)
                        for (int64_t i = 0; i < plan.count; ++i) {
                          const int64_t t = target(at(p[1], i * plan.index_step + j * stride[1]));
                          if (t >= 0)
                            Op::apply(*reinterpret_cast<To*>(p[0] + t * plan.out_step + j * stride[0]),
                                      *reinterpret_cast<const From*>(p[2] + i * plan.value_step + j * stride[2]));
                        }
                    } else {
                      for (int64_t i = 0; i < plan.count; ++i)
                        for (int64_t j = 0; j < n; ++j) {
                          const int64_t t = target(at(p[1], i * plan.index_step + j * stride[1]));
                          if (t >= 0)
                            Op::apply(*reinterpret_cast<To*>(p[0] + t * plan.out_step + j * stride[0]),
                                      *reinterpret_cast<const From*>(p[2] + i * plan.value_step + j * stride[2]));
                        }
                    }
                  });
  if (first_bad) bad = first_bad;
  return !first_bad;
}

}  // namespace detail

// Op::apply(To& target, From value) for every position, in sequence along `dim`, whatever the number of threads.
// Returns an index that is out of bounds, or null; then what was written is unspecified.
template <class To, class From, class Op>
const int64_t* scatter_loop(const ScatterPlan& plan, void* out, const int64_t* index, const void* values) {
  constexpr int64_t kElementsPerThread = 8 << 10;
  std::atomic<const int64_t*> bad{nullptr};
  auto* to = static_cast<char*>(out);
  const auto* from = static_cast<const char*>(values);
  const int64_t others = plan.others.numel, threads = kernel_threads();
  const bool neighbours = plan.others.rank > 0 && plan.others.strides[0][0] == sizeof(To);
  if (others >= threads * (neighbours ? 64 : 1)) {
    const int64_t grain = std::max<int64_t>(kElementsPerThread / std::max<int64_t>(plan.count, 1), neighbours ? 32 : 1);
    parallel_for(0, others, grain, [&](int64_t begin, int64_t end) noexcept {
      detail::scatter_range<To, From, Op>(plan, to, index, from, begin, end, 0, plan.size, bad);
    });
  } else {
    // Few slices: threads take different targets, so that duplicates keep their order.
    const int64_t parts = std::clamp<int64_t>(others * plan.count / kElementsPerThread, 1, threads);
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
      const int64_t low = plan.size * begin / parts, high = plan.size * end / parts;
      detail::scatter_range<To, From, Op>(plan, to, index, from, 0, others, low, high - low, bad);
    });
  }
  return bad;
}

}  // namespace sconce
