// StridedLoop: one walk over up to four operands of one shape, of any strides.
//
// Dimensions are put in the order of the first operand's memory (ties by the following operands), neighbours that are
// evenly spaced in every operand are joined, and the callback gets rows:
//   inner(char* const* pointers, const int64_t* byte_strides, int64_t count)
// Broadcasting is stride 0. The order of elements is unspecified. A plan is a value on the stack; it holds no data
// pointers, so several threads can run one plan over disjoint ranges.
//
// Output strides follow at::TensorIterator (torch 2.15): see elementwise_strides().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sconce/tensor.h"

namespace sconce {

// Sizes on the stack, in place of a vector: up to Tensor::kMaxRank of them.
class Shape {
 public:
  Shape() noexcept = default;
  Shape(IntSpan sizes) noexcept : rank_(static_cast<int>(sizes.size())) {
    std::copy(sizes.begin(), sizes.end(), dims_);
  }
  int rank() const noexcept { return rank_; }
  void resize(int rank) noexcept { rank_ = rank; }
  void push_back(int64_t size) noexcept { dims_[rank_++] = size; }
  int64_t& operator[](int d) noexcept { return dims_[d]; }
  int64_t operator[](int d) const noexcept { return dims_[d]; }
  int64_t* data() noexcept { return dims_; }
  operator IntSpan() const noexcept { return {dims_, static_cast<size_t>(rank_)}; }

 private:
  int rank_ = 0;
  int64_t dims_[Tensor::kMaxRank];
};

// kInvalidArgument "NAME: ..." if sizes do not broadcast.
Shape broadcast_shapes(std::string_view name, IntSpan a, IntSpan b);
// Strides, in elements, with which `tensor` is read as a tensor of that shape: 0 in broadcast dimensions.
// kInvalidArgument if it does not broadcast to the shape.
Shape broadcast_strides(std::string_view name, const Tensor& tensor, IntSpan shape);
Tensor expand(std::string_view name, const Tensor& tensor, IntSpan shape);
// dim + rank for negative dims; a 0-d tensor takes -1 and 0. kInvalidArgument "NAME: Dimension out of range ...".
int64_t wrap_dim(std::string_view name, int64_t dim, int64_t rank);

// Strides, in elements, of a result that at::TensorIterator would allocate for these operands (all of shape `shape`
// or broadcast to it).
Shape elementwise_strides(IntSpan shape, std::span<const Tensor* const> operands);
// Dense strides in the memory order of given ones (at::infer_dense_strides), for clones and sorted results.
Shape dense_strides(IntSpan sizes, IntSpan strides);

// As at::has_internal_overlap and at::get_overlap_status. kInvalidArgument "NAME: unsupported operation: ..." where
// ATen refuses.
void check_no_internal_overlap(std::string_view name, const Tensor& written);
void check_no_partial_overlap(std::string_view name, const Tensor& written, const Tensor& read);
void check_no_overlap(std::string_view name, const Tensor& written, const Tensor& read);

template <int N>
struct StridedLoop {
  int rank = 0;  // after joining; 0 only if there is at most one element
  int64_t numel = 1;
  std::array<int64_t, Tensor::kMaxRank> sizes;                   // [0] is innermost
  std::array<std::array<int64_t, N>, Tensor::kMaxRank> strides;  // in bytes

  // strides[i] in elements of itemsizes[i]; all of sizes.size() entries.
  StridedLoop(IntSpan shape, const std::array<IntSpan, N>& element_strides, const std::array<size_t, N>& itemsizes) {
    const int n = static_cast<int>(shape.size());
    for (int d = n - 1; d >= 0; --d) {
      numel *= shape[d];
      if (shape[d] == 1) continue;
      sizes[rank] = shape[d];
      for (int i = 0; i < N; ++i) strides[rank][i] = element_strides[i][d] * static_cast<int64_t>(itemsizes[i]);
      ++rank;
    }
    if (numel == 0) rank = 0;
    order();
    join();
  }

  // Calls inner for rows of the elements [begin, end) in the loop's own order.
  template <class Inner>
  void run(const std::array<char*, N>& base, int64_t begin, int64_t end, Inner&& inner) const {
    if (begin >= end) return;
    std::array<char*, N> pointers = base;
    static constexpr std::array<int64_t, N> kNoSteps{};
    const int64_t size = rank == 0 ? 1 : sizes[0];
    const int64_t* const steps = rank == 0 ? kNoSteps.data() : strides[0].data();
    std::array<int64_t, Tensor::kMaxRank> at;
    at[0] = 0;
    if (rank == 1) {
      at[0] = begin;
      for (int i = 0; i < N; ++i) pointers[i] += begin * strides[0][i];
    } else {
      int64_t rest = begin;
      for (int d = 0; d < rank; ++d) {
        at[d] = rest % sizes[d];
        rest /= sizes[d];
        for (int i = 0; i < N; ++i) pointers[i] += at[d] * strides[d][i];
      }
    }
    for (int64_t done = begin;;) {
      const int64_t count = std::min(size - at[0], end - done);
      inner(pointers.data(), steps, count);  // the only call, so that it is compiled once
      done += count;
      if (done >= end) return;
      for (int i = 0; i < N; ++i) pointers[i] -= at[0] * strides[0][i];
      at[0] = 0;
      for (int d = 1; d < rank; ++d) {
        for (int i = 0; i < N; ++i) pointers[i] += strides[d][i];
        if (++at[d] < sizes[d]) break;
        for (int i = 0; i < N; ++i) pointers[i] -= sizes[d] * strides[d][i];
        at[d] = 0;
      }
    }
  }

  template <class Inner>
  void run(const std::array<char*, N>& base, Inner&& inner) const {
    run(base, 0, numel, inner);
  }

 private:
  // Negative if dimension a belongs inside of b, positive if b belongs inside, 0 if no operand decides.
  int compare(int a, int b) const {
    for (int i = 0; i < N; ++i) {
      const int64_t x = strides[a][i], y = strides[b][i];
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  }
  void order() {
    for (int d = 1; d < rank; ++d)
      for (int at = d, k = d - 1; k >= 0; --k) {
        const int c = compare(k, at);
        if (c < 0) break;
        if (c == 0) continue;
        std::swap(sizes[k], sizes[at]);
        std::swap(strides[k], strides[at]);
        at = k;
      }
  }
  void join() {
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool even = true;
      for (int i = 0; i < N; ++i) even &= strides[d][i] == strides[last][i] * sizes[last];
      if (even) {
        sizes[last] *= sizes[d];
      } else if (++last != d) {
        sizes[last] = sizes[d];
        strides[last] = strides[d];
      }
    }
    if (rank > 0) rank = last + 1;
  }
};

}  // namespace sconce
