// The loop of every scatter: walks index and src and hands each target element to an operation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sconce/tensor.h"
#include "src/tensor/strided_loop.h"

namespace sconce {

struct ScatterPlan {
  // index must be int64. value_strides: src's, or zeros for a single value.
  ScatterPlan(const Tensor& out, const Tensor& index, IntSpan value_strides, size_t value_itemsize, int64_t dim);

  StridedLoop<3> others;                     // out, index, value: index's dimensions except `dim`
  int64_t count;                             // of index along dim
  int64_t size;                              // of out along dim
  int64_t out_step, index_step, value_step;  // bytes along dim
};

namespace detail {

// The targets that a thread writes: all of them, or [low, low + span).
struct Targets {
  int64_t size, low, span;
  bool all() const noexcept { return span == size; }
  bool in_bounds(int64_t t) const noexcept { return static_cast<uint64_t>(t) < static_cast<uint64_t>(size); }
  bool mine(int64_t t) const noexcept { return static_cast<uint64_t>(t - low) < static_cast<uint64_t>(span); }
};

struct ScatterSlice {
  char* out;
  const char* index;
  const char* values;
  int64_t out_step, index_step, value_step, count;
};

// One element per index. Returns an index that is out of bounds, or null.
template <bool All, bool Packed, class To, class From, class Op>
const int64_t* scatter_elements(const ScatterSlice& s, const Targets& targets) noexcept {
  const auto* index = reinterpret_cast<const int64_t*>(s.index);
  const auto* values = reinterpret_cast<const From*>(s.values);
  auto* out = reinterpret_cast<To*>(s.out);
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t* at = Packed ? index + i : reinterpret_cast<const int64_t*>(s.index + i * s.index_step);
    if (!targets.in_bounds(*at)) [[unlikely]]
      return at;
    if (!All && !targets.mine(*at)) continue;
    if constexpr (Packed)
      Op::apply(out[*at], values[i]);
    else
      Op::apply(*reinterpret_cast<To*>(s.out + *at * s.out_step),
                *reinterpret_cast<const From*>(s.values + i * s.value_step));
  }
  return nullptr;
}

template <class To, class From, class Op>
const int64_t* scatter_slice(const ScatterSlice& s, const Targets& targets) noexcept {
  if (!targets.all()) return scatter_elements<false, false, To, From, Op>(s, targets);
  const bool packed = s.index_step == sizeof(int64_t) && s.out_step == sizeof(To) && s.value_step == sizeof(From);
  return packed ? scatter_elements<true, true, To, From, Op>(s, targets)
                : scatter_elements<true, false, To, From, Op>(s, targets);
}

// A row of n elements per index, `steps` (out, index, value) apart. index does not change within a row.
template <class To, class From, class Op>
const int64_t* scatter_rows(const ScatterSlice& s, const Targets& targets, const int64_t* steps, int64_t n) noexcept {
  const bool packed = steps[0] == sizeof(To) && steps[2] == sizeof(From);
  const auto row = [&](int64_t i, int64_t target) {
    char* to = s.out + target * s.out_step;
    const char* from = s.values + i * s.value_step;
    if (packed) {
      auto* __restrict d = reinterpret_cast<To*>(to);
      const auto* __restrict v = reinterpret_cast<const From*>(from);
      for (int64_t j = 0; j < n; ++j) Op::apply(d[j], v[j]);
    } else {
      for (int64_t j = 0; j < n; ++j)
        Op::apply(*reinterpret_cast<To*>(to + j * steps[0]), *reinterpret_cast<const From*>(from + j * steps[2]));
    }
  };
  const auto index = [&](int64_t i) { return reinterpret_cast<const int64_t*>(s.index + i * s.index_step); };
  if (targets.all()) {
    for (int64_t i = 0; i < s.count; ++i) {
      const int64_t* at = index(i);
      if (!targets.in_bounds(*at)) [[unlikely]]
        return at;
      row(i, *at);
    }
    return nullptr;
  }
  // First collects the rows of this thread without a branch, since it could not be predicted.
  constexpr int64_t kBlock = 256;
  int64_t mine[kBlock];
  for (int64_t begin = 0; begin < s.count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, s.count);
    int64_t found = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* at = index(i);
      if (!targets.in_bounds(*at)) [[unlikely]]
        return at;
      mine[found] = i;
      found += targets.mine(*at);
    }
    for (int64_t k = 0; k < found; ++k) row(mine[k], *index(mine[k]));
  }
  return nullptr;
}

// Processes the positions [begin, end) of the other dimensions. kAll: for every target, not only `some`. Not inlined,
// because scatter_loop() calls it in three places.
template <bool kAll, class To, class From, class Op>
const int64_t* scatter_range(const ScatterPlan& plan, char* out, const int64_t* index, const char* values,
                             int64_t begin, int64_t end, const Targets& some) noexcept {
  const Targets targets = kAll ? Targets{plan.size, 0, plan.size} : some;
  const int64_t* bad = nullptr;
  const auto note = [&](const int64_t* b) {
    if (b) bad = b;
  };
  char* const index_bytes = const_cast<char*>(reinterpret_cast<const char*>(index));
  plan.others.run(
      {out, index_bytes, const_cast<char*>(values)}, begin, end, [&](char* const* p, const int64_t* steps, int64_t n) {
        const ScatterSlice slice{p[0], p[1], p[2], plan.out_step, plan.index_step, plan.value_step, plan.count};
        if (n > 1 && steps[1] == 0) return note(scatter_rows<To, From, Op>(slice, targets, steps, n));
        if (n == 1 || plan.index_step < steps[1]) {
          for (int64_t j = 0; j < n; ++j) {
            ScatterSlice one = slice;
            one.out += j * steps[0];
            one.index += j * steps[1];
            one.values += j * steps[2];
            note(scatter_slice<To, From, Op>(one, targets));
          }
          return;
        }
        // Neighbours in a row have neighbouring indices: walk along the row, for each position along dim.
        for (int64_t i = 0; i < plan.count && !bad; ++i) {
          const char* at = p[1] + i * plan.index_step;
          const char* from = p[2] + i * plan.value_step;
          for (int64_t j = 0; j < n; ++j) {
            const auto* t = reinterpret_cast<const int64_t*>(at + j * steps[1]);
            if (!targets.in_bounds(*t)) [[unlikely]] {
              bad = t;
              break;
            }
            if (targets.mine(*t))
              Op::apply(*reinterpret_cast<To*>(p[0] + *t * plan.out_step + j * steps[0]),
                        *reinterpret_cast<const From*>(from + j * steps[2]));
          }
        }
      });
  return bad;
}

using ScatterRange = const int64_t* (*)(const ScatterPlan& plan, char* out, const int64_t* index, const char* values,
                                        int64_t begin, int64_t end, const Targets& some) noexcept;
// The work of scatter_loop() for elements of out of that size. `all` writes every target, `some` the given ones.
const int64_t* scatter_ranges(const ScatterPlan& plan, void* out, const int64_t* index, const void* values,
                              size_t itemsize, ScatterRange all, ScatterRange some);

}  // namespace detail

// Op::apply(To& target, From value) for every position, in sequence along `dim`, for any number of threads. Returns an
// index that is out of bounds, or null; on failure the written values are unspecified.
template <class To, class From, class Op>
const int64_t* scatter_loop(const ScatterPlan& plan, void* out, const int64_t* index, const void* values) {
  return detail::scatter_ranges(plan, out, index, values, sizeof(To), detail::scatter_range<true, To, From, Op>,
                                detail::scatter_range<false, To, From, Op>);
}

}  // namespace sconce
