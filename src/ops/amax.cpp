// Maximum over dimensions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sconce/check.h"
#include "src/ops/dispatch.h"
#include "src/ops/elementwise_ops.h"
#include "src/ops/fill.h"
#include "src/ops/strided_loop.h"

namespace sconce::cpu {
namespace {

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::max(a, b);
  else
    return b > a || std::isnan(static_cast<float>(b)) ? b : a;  // once a is NaN, b > a is false
}

// Of a packed row. Independent maxima, so that the compiler can use vectors.
template <class T>
T largest_of(const T* values, int64_t count) {
  constexpr int kWays = 32;
  T best[kWays];
  std::fill_n(best, kWays, values[0]);
  int64_t i = 0;
  for (; i + kWays <= count; i += kWays)
    for (int w = 0; w < kWays; ++w) best[w] = larger(best[w], values[i + w]);
  for (; i < count; ++i) best[0] = larger(best[0], values[i]);
  for (int w = 1; w < kWays; ++w) best[0] = larger(best[0], best[w]);
  return best[0];
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
  dispatch_real_bool(self.dtype(), "amax", [&]<class T>() -> void {
    if (out.numel() == 0) return;
    const ComputeType<T> least = std::is_integral_v<T> ? std::numeric_limits<ComputeType<T>>::lowest()
                                                       : -std::numeric_limits<ComputeType<T>>::infinity();
    std::fill_n(out.data_as<T>(), out.numel(), T(least));
    reduce<T>(self, out, strides);
  });
  return out;
}

}  // namespace sconce::cpu
