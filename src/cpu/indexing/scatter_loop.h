// The loop of every scatter: walks index and src and hands each target element to an operation.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "sconce/tensor.h"
#include "src/device/threads.h"
#include "src/tensor/strided_loop.h"

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

// The part of the targets that a thread writes: all of them, or [low, low + span).
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
  // The rows of this thread are collected first, without a branch, since it could not be predicted.
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

// Where the targets of each of `parts` threads begin, and where the last ends, so that about as many rows go to each;
// false where a few targets get most of them. From a sample of the indices.
inline bool balance_targets(const ScatterPlan& plan, const int64_t* index, int64_t parts, int64_t* begins) noexcept {
  constexpr int64_t kSamples = 128;
  if (plan.count < kSamples || parts > kSamples / 8) return false;
  int64_t samples[kSamples];
  for (int64_t i = 0; i < kSamples; ++i)
    samples[i] = *reinterpret_cast<const int64_t*>(reinterpret_cast<const char*>(index) +
                                                   i * plan.count / kSamples * plan.index_step);
  std::sort(samples, samples + kSamples);
  begins[0] = 0;
  begins[parts] = plan.size;
  for (int64_t part = 1; part < parts; ++part)
    begins[part] = std::clamp<int64_t>(samples[kSamples * part / parts], 0, plan.size);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t own = std::lower_bound(samples, samples + kSamples, begins[part + 1]) -
                        std::lower_bound(samples, samples + kSamples, begins[part]);
    if (2 * own * parts > 3 * kSamples) return false;
  }
  return true;
}

template <class To, class From, class Op>
const int64_t* scatter_range(const ScatterPlan& plan, char* out, const int64_t* index, const char* values,
                             int64_t begin, int64_t end, const Targets& targets) noexcept {
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
        // Neighbours in a row have neighbouring indices: walk along the row, for each place along dim.
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
  constexpr int64_t kMostParts = 16;
  if (plan.others.rank == 1 && plan.others.strides[0][1] == 0 && others >= 16 && threads > 1) {
    // Rows under one index each: a thread reads whole rows, for targets of its own.
    int64_t begins[kMostParts + 1];
    const int64_t parts = std::min({others * plan.count / (2 * kElementsPerThread), threads, kMostParts});
    if (parts > 1 && detail::balance_targets(plan, index, parts, begins)) {
      parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
        const detail::Targets part{plan.size, begins[first], begins[last] - begins[first]};
        if (const auto* b = detail::scatter_range<To, From, Op>(plan, to, index, from, 0, others, part)) bad = b;
      });
      return bad;
    }
  }
  const bool neighbours = plan.others.rank > 0 && plan.others.strides[0][0] == sizeof(To);
  // Threads take whole cache lines.
  if (others >= threads * (neighbours ? 16 : 1)) {
    const int64_t grain = std::max<int64_t>(kElementsPerThread / std::max<int64_t>(plan.count, 1), neighbours ? 16 : 1);
    parallel_for(0, others, grain, [&](int64_t begin, int64_t end) noexcept {
      const detail::Targets all{plan.size, 0, plan.size};
      if (const auto* b = detail::scatter_range<To, From, Op>(plan, to, index, from, begin, end, all)) bad = b;
    });
  } else {
    // For few slices, each thread takes different targets, so that duplicates keep their order. Each thread reads all
    // indices, which pays only for rows, not for single elements.
    constexpr int64_t kWorthLooking = 8;
    const int64_t parts =
        others < kWorthLooking ? 1 : std::clamp<int64_t>(others * plan.count / kElementsPerThread, 1, threads);
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
      const int64_t low = plan.size * begin / parts;
      const detail::Targets part{plan.size, low, plan.size * end / parts - low};
      if (const auto* b = detail::scatter_range<To, From, Op>(plan, to, index, from, 0, others, part)) bad = b;
    });
  }
  return bad;
}

}  // namespace sconce
