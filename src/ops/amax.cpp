// Maximum over dimensions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/elementwise_ops.h"
#include "src/ops/fill.h"
#include "src/ops/pooling_lanes.h"
#include "src/ops/strided_loop.h"

namespace sconce::cpu {
namespace {

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::max(a, b);
  else
    return b > a || std::isnan(b) ? b : a;  // once a is NaN, b > a is false
}

// Of a packed row.
template <class T>
T largest_of(const T* values, int64_t count) {
  T best = values[0];
  int64_t i = 0;
  if constexpr (std::is_floating_point_v<T>) {
    using L = PoolLanes<T>;
    constexpr int kVectors = 4;
    if (count >= kVectors * L::kLanes) {
      typename L::Values lanes[kVectors];
      for (int v = 0; v < kVectors; ++v) lanes[v] = L::load(values + v * L::kLanes);
      for (i = kVectors * L::kLanes; i + kVectors * L::kLanes <= count; i += kVectors * L::kLanes)
        for (int v = 0; v < kVectors; ++v) {
          const auto x = L::load(values + i + v * L::kLanes);
          lanes[v] = (x > lanes[v]) | (x != x) ? x : lanes[v];
        }
      for (const auto& vector : lanes)
        for (int lane = 0; lane < L::kLanes; ++lane) best = larger(best, vector[lane]);
    }
  }
  for (; i < count; ++i) best = larger(best, values[i]);
  return best;
}

template <class T>
void reduce(const Tensor& self, Tensor& out, IntSpan out_strides) {
  const StridedLoop<2> loop(self.sizes(), {self.strides(), out_strides}, {sizeof(T), sizeof(T)});
  loop.run({static_cast<char*>(self.data()), static_cast<char*>(out.data())},
           [](char* const* pointers, const int64_t* strides, int64_t count) {
             const char* from = pointers[0];
             char* to = pointers[1];
             if (strides[1] == 0) {
               T best = *reinterpret_cast<T*>(to);
               if (strides[0] == sizeof(T)) {
                 best = larger(best, largest_of(reinterpret_cast<const T*>(from), count));
               } else {
                 for (; count; --count, from += strides[0]) best = larger(best, *reinterpret_cast<const T*>(from));
               }
               *reinterpret_cast<T*>(to) = best;
             } else if (strides[0] == sizeof(T) && strides[1] == sizeof(T)) {
               auto* x = reinterpret_cast<const T*>(from);
               auto* y = reinterpret_cast<T*>(to);
               for (int64_t i = 0; i < count; ++i) y[i] = larger(y[i], x[i]);
             } else {
               for (; count; --count, from += strides[0], to += strides[1]) {
                 T& y = *reinterpret_cast<T*>(to);
                 y = larger(y, *reinterpret_cast<const T*>(from));
               }
             }
           });
}

}  // namespace

Tensor amax(const Tensor& self, IntSpan dims, bool keepdim) {
  bool reduced[Tensor::kMaxRank] = {};
  const int rank = static_cast<int>(self.dim());
  if (dims.empty()) {
    SCONCE_CHECK(self.numel() > 0, kInvalidArgument,
                 "amax: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                 "the 'dim' argument.");
    std::fill_n(reduced, rank, true);
  }
  bool seen[Tensor::kMaxRank] = {};
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim("amax", dim, rank);
    SCONCE_CHECK(!seen[d], kInvalidArgument, "amax: dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
    if (rank == 0) continue;
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, "amax: Expected reduction dim ", d, " to have non-zero size.");
    reduced[d] = true;
  }
  // Compared as float, which holds every half exactly.
  if (self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16)
    return to_dtype(amax(to_dtype(self, DType::kFloat32), dims, keepdim), self.dtype());
  Shape sizes, full;
  for (int d = 0; d < rank; ++d) {
    full.push_back(reduced[d] ? 1 : self.size(d));
    if (!reduced[d] || keepdim) sizes.push_back(full[full.rank() - 1]);
  }
  Tensor out = Tensor::empty(sizes, self.dtype());
  Shape strides;
  strides.resize(rank);
  contiguous_strides(full, strides.data());
  for (int d = 0; d < rank; ++d)
    if (reduced[d]) strides[d] = 0;
  const auto run = [&]<class T>() -> void {
    if (out.numel() == 0) return;
    const T least = std::is_integral_v<T> ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
    std::fill_n(out.data_as<T>(), out.numel(), least);
    reduce<T>(self, out, strides);
  };
  if (is_integral(self.dtype(), true))
    dispatch_integral_bool(self.dtype(), "amax", run);
  else
    dispatch_float_double(self.dtype(), "amax", run);
  return out;
}

}  // namespace sconce::cpu
