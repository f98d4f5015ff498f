// Extrema over dimensions.
#include "src/cpu/reduction/extrema.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "sconce/check.h"
#include "src/cpu/vector/row_extrema.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/rows/planes.h"
#include "src/tensor/rows/reduced_rows.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

constexpr int64_t kGrain = 65536;

// Parts of [0, size) by threads, each to a copy of `result`, which are then joined into it in their order.
template <class T, class Body, class Join>
void in_parts(int64_t size, int64_t grain, T& result, const Body& body, const Join& join) {
  constexpr int64_t kMaxParts = 64;
  const int64_t parts = std::clamp<int64_t>(size / grain, 1, std::min<int64_t>(kernel_threads(), kMaxParts));
  struct alignas(64) Part {
    T value;
  };
  Part found[kMaxParts];
  std::fill_n(found, parts, Part{result});
  parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
    for (int64_t part = first; part < last; ++part)
      body(size * part / parts, size * (part + 1) / parts, found[part].value);
  });
  for (int64_t part = 0; part < parts; ++part) result = join(result, found[part].value);
}

template <bool kLargest, class T>
void reduce(const Tensor& self, Tensor& out, IntSpan out_strides) {
  const auto row = [](char* const* pointers, const int64_t* strides, int64_t count) {
    const char* from = pointers[0];
    char* to = pointers[1];
    if (strides[1] == 0) {
      T best = *reinterpret_cast<T*>(to);
      if (strides[0] == sizeof(T)) {
        best = better<kLargest>(best, best_of<kLargest>(reinterpret_cast<const T*>(from), count));
      } else {
        for (; count; --count, from += strides[0]) best = better<kLargest>(best, *reinterpret_cast<const T*>(from));
      }
      *reinterpret_cast<T*>(to) = best;
    } else if (strides[0] == sizeof(T) && strides[1] == sizeof(T)) {
      auto* x = reinterpret_cast<const T*>(from);
      auto* y = reinterpret_cast<T*>(to);
      for (int64_t i = 0; i < count; ++i) y[i] = better<kLargest>(y[i], x[i]);
    } else {
      for (; count; --count, from += strides[0], to += strides[1]) {
        T& y = *reinterpret_cast<T*>(to);
        y = better<kLargest>(y, *reinterpret_cast<const T*>(from));
      }
    }
  };
  // Threads take parts of a dimension that stays or, where none does, of the largest, each to a result of its own.
  const bool whole = out.numel() == 1;
  int split = -1;
  for (int d = 0; d < static_cast<int>(self.dim()); ++d)
    if ((whole || out_strides[static_cast<size_t>(d)] != 0) && self.size(d) > 1 &&
        (split < 0 || self.size(d) > self.size(split)))
      split = d;
  const int64_t size = split < 0 ? 1 : self.size(split),
                from = split < 0 ? 0 : self.stride(split) * static_cast<int64_t>(sizeof(T)),
                to = split < 0 ? 0 : out_strides[static_cast<size_t>(split)] * static_cast<int64_t>(sizeof(T));
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, self.numel() / size));
  const auto run = [&](int64_t begin, int64_t end, char* target) noexcept {
    Shape sizes(self.sizes());
    if (split >= 0) sizes[split] = end - begin;
    const StridedLoop<2> loop(sizes, {self.strides(), out_strides}, {sizeof(T), sizeof(T)});
    loop.run({static_cast<char*>(self.data()) + begin * from, target}, row);
  };
  if (!whole)
    return parallel_for(0, size, grain, [&](int64_t begin, int64_t end) noexcept {
      run(begin, end, static_cast<char*>(out.data()) + begin * to);
    });
  T& result = *out.data_as<T>();
  in_parts(
      size, grain, result,
      [&](int64_t begin, int64_t end, T& best) noexcept { run(begin, end, reinterpret_cast<char*>(&best)); },
      [](T a, T b) { return better<kLargest>(a, b); });
}

template <bool kLargest>
Tensor extremum(const std::string& name, const Tensor& self, IntSpan dims, bool keepdim) {
  bool reduced[Tensor::kMaxRank] = {};
  const int rank = static_cast<int>(self.dim());
  if (dims.empty()) {
    SCONCE_CHECK(self.numel() > 0, kInvalidArgument, name,
                 ": Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                 "the 'dim' argument.");
    std::fill_n(reduced, rank, true);
  }
  bool seen[Tensor::kMaxRank] = {};
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim(name, dim, rank);
    SCONCE_CHECK(!seen[d], kInvalidArgument, name, ": dim ", d, " appears multiple times in the list of dims");
    seen[d] = true;
    if (rank == 0) continue;
    SCONCE_CHECK(self.size(d) > 0, kInvalidArgument, name, ": Expected reduction dim ", d, " to have non-zero size.");
    reduced[d] = true;
  }
  // Compared as float, which holds every half exactly.
  if (self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16)
    return to_dtype(extremum<kLargest>(name, to_dtype(self, DType::kFloat32), dims, keepdim), self.dtype());
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
    using Limits = std::numeric_limits<T>;
    const T infinite = kLargest ? -Limits::infinity() : Limits::infinity();
    const T worst = std::is_integral_v<T> ? (kLargest ? Limits::lowest() : Limits::max()) : infinite;
    std::fill_n(out.data_as<T>(), out.numel(), worst);
    reduce<kLargest, T>(self, out, strides);
  };
  if (is_integral(self.dtype(), true))
    dispatch_integral_bool(self.dtype(), name, run);
  else
    dispatch_float_double(self.dtype(), name, run);
  return out;
}

// The least and the greatest of all elements, which are packed, in one walk.
std::array<Tensor, 2> both_of_all(const Tensor& given, bool keepdim) {
  const bool small = given.dtype() == DType::kFloat16 || given.dtype() == DType::kBFloat16;
  const Tensor self = small ? to_dtype(given, DType::kFloat32) : given;
  Shape sizes;
  if (keepdim)
    for (int64_t d = 0; d < self.dim(); ++d) sizes.push_back(1);
  std::array<Tensor, 2> out{Tensor::empty(sizes, self.dtype()), Tensor::empty(sizes, self.dtype())};
  const auto run = [&]<class T>() -> void {
    const T* const in = self.data_as<T>();
    struct Both {
      T least, greatest;
    };
    Both both{in[0], in[0]};
    in_parts(
        self.numel(), kGrain, both,
        [in](int64_t begin, int64_t end, Both& found) noexcept {
          // The second search finds a block in the cache, where the first one has brought it.
          constexpr int64_t kBlock = 16384 / sizeof(T);
          for (; begin < end; begin += kBlock) {
            const int64_t count = std::min(kBlock, end - begin);
            found.least = better<false>(found.least, best_of<false>(in + begin, count));
            found.greatest = better<true>(found.greatest, best_of<true>(in + begin, count));
          }
        },
        [](const Both& a, const Both& b) {
          return Both{better<false>(a.least, b.least), better<true>(a.greatest, b.greatest)};
        });
    *out[0].data_as<T>() = both.least;
    *out[1].data_as<T>() = both.greatest;
  };
  if (is_integral(self.dtype(), true))
    dispatch_integral_bool(self.dtype(), "aminmax", run);
  else
    dispatch_float_double(self.dtype(), "aminmax", run);
  return {to_dtype(out[0], given.dtype()), to_dtype(out[1], given.dtype())};
}

// Positions of the best elements of rows, and the elements: of equal ones the first, NaN before all.
template <bool kLargest>
std::array<Tensor, 2> best_at(const char* name, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  const bool small = self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16;
  IntSpan dims;
  if (dim) dims = {&*dim, 1};
  const int64_t width =
      dim ? (self.dim() ? self.size(wrap_dim(name, *dim, self.dim())) : (wrap_dim(name, *dim, 0), 1)) : self.numel();
  SCONCE_CHECK(width > 0, kInvalidArgument, name, ": Expected reduction dim ", dim.value_or(0),
               dim ? " to have non-zero size." : " to be specified for input.numel() == 0.");
  const ReducedRows reduced = reduced_rows(name, self, dims, keepdim, small ? DType::kFloat32 : self.dtype());
  Tensor values = Tensor::empty(reduced.sizes, reduced.rows.dtype()),
         positions = Tensor::empty(reduced.sizes, DType::kInt64);
  const auto run = [&]<class T>() -> void {
    const T* const in = reduced.rows.data_as<T>();
    T* const to = values.data_as<T>();
    auto* const at = positions.data_as<int64_t>();
    for_planes(values.numel(), width, [=](int64_t i) noexcept {
      const T* const row = in + i * width;
      int64_t best = 0;
      for (int64_t j = 1; j < width; ++j) {
        if constexpr (!std::is_integral_v<T>) {
          if (std::isnan(row[best])) break;
          if (std::isnan(row[j])) {
            best = j;
            break;
          }
        }
        if (beats<kLargest>(row[j], row[best])) best = j;
      }
      to[i] = row[best];
      at[i] = best;
    });
  };
  if (is_integral(values.dtype(), true))
    dispatch_integral_bool(values.dtype(), name, run);
  else
    dispatch_float_double(values.dtype(), name, run);
  return {to_dtype(values, self.dtype()), positions};
}

Tensor one_position(const char* name, const Tensor& self, const std::array<Tensor, 2>& found) {
  if (self.dtype() == DType::kBool) fail_dispatch(self.dtype(), name);
  return found[1];
}

}  // namespace

// Maximum over `dims`, all where there are none; NaN wins. Row-major result.
Tensor amax(const Tensor& self, IntSpan dims, bool keepdim) { return extremum<true>("amax", self, dims, keepdim); }
Tensor amin(const Tensor& self, IntSpan dims, bool keepdim) { return extremum<false>("amin", self, dims, keepdim); }
std::array<Tensor, 2> aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  IntSpan dims;
  if (dim) dims = {&*dim, 1};
  SCONCE_CHECK(dim || self.numel() > 0, kInvalidArgument,
               "aminmax: cannot compute aminmax over an empty dimension as the operation has no identity.");
  if (!dim && self.is_contiguous()) return both_of_all(self, keepdim);
  return {extremum<false>("aminmax", self, dims, keepdim), extremum<true>("aminmax", self, dims, keepdim)};
}
std::array<Tensor, 2> max_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return best_at<true>("max", self, dim, keepdim);
}
std::array<Tensor, 2> min_dim(const Tensor& self, int64_t dim, bool keepdim) {
  return best_at<false>("min", self, dim, keepdim);
}
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return one_position("argmax", self, best_at<true>("argmax", self, dim, keepdim));
}
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return one_position("argmin", self, best_at<false>("argmin", self, dim, keepdim));
}

}  // namespace sconce::cpu
