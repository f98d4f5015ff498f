#include "src/cpu/sorting/sets.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/rules/sorting.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

Tensor int64s(int64_t count) { return Tensor::empty(IntSpan(&count, 1), DType::kInt64); }
Tensor flattened(const Tensor& tensor) {
  const int64_t count = tensor.numel();
  return reshape(tensor, IntSpan(&count, 1));
}

// The type in which T is compared.
template <class T>
auto comparable(T value) {
  return static_cast<ComputeType<T>>(value);
}

// Runs of equal elements of [n]; order (may be null) says where each came from.
std::array<Tensor, 3> runs(const char* name, const Tensor& values, const int64_t* order, IntSpan inverse_sizes,
                           bool return_inverse, bool return_counts) {
  const int64_t n = values.numel();
  Tensor inverse = return_inverse ? Tensor::empty(inverse_sizes, DType::kInt64) : int64s(0);
  int64_t* const inverse_of = inverse.data_as<int64_t>();
  // One more than there can be: each place is written before it is known whether it starts a run.
  Tensor all_starts = int64s(n + 1);
  int64_t* const starts = all_starts.data_as<int64_t>();
  int64_t count = 0;
  Tensor kept;
  const auto run = [&]<class T>() {
    const T* const in = values.data_as<T>();
    const auto find = [&](const auto& take) {
      for (int64_t i = 0; i < n; ++i) {
        starts[count] = i;
        count += i == 0 || !(comparable(in[i]) == comparable(in[i - 1]));
        take(i, count - 1);
      }
    };
    if (!return_inverse)
      find([](int64_t, int64_t) {});
    else if (order)
      find([&](int64_t i, int64_t run) { inverse_of[order[i]] = run; });
    else
      find([&](int64_t i, int64_t run) { inverse_of[i] = run; });
    kept = Tensor::empty(IntSpan(&count, 1), values.dtype());
    for (int64_t i = 0; i < count; ++i) kept.data_as<T>()[i] = in[starts[i]];
  };
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kUInt16,
                        DType::kUInt32, DType::kUInt64>(values.dtype(), name,
                                                        [&]<class T>() -> void { run.template operator()<T>(); });
  Tensor counts = int64s(return_counts ? kept.numel() : 0);
  for (int64_t i = 0; i < counts.numel(); ++i)
    counts.data_as<int64_t>()[i] = (i + 1 < count ? starts[i + 1] : n) - starts[i];
  return {kept, inverse, counts};
}

std::array<Tensor, 3> unique_slices(const char* name, const Tensor& self, int64_t dim, bool consecutive) {
  SCONCE_CHECK(self.dim() > 0, kInvalidArgument, name, ": a tensor without dimensions has no slices");
  dim = wrap_dim(name, dim, self.dim());
  const auto zero_dims = std::count(self.sizes().begin(), self.sizes().end(), 0);
  if (self.size(dim) == 0) {
    SCONCE_CHECK(zero_dims == 1, kInvalidArgument, name,
                 ": Number of zero sized dimensions is more than one, so unique cannot be applied");
    return {Tensor::empty(self.sizes(), self.dtype()), int64s(0), int64s(0)};
  }
  SCONCE_CHECK(zero_dims == 0, kInvalidArgument, name,
               ": There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  // Slices as rows: dimension `dim` first, the others in their order.
  std::vector<int64_t> order{dim}, back(static_cast<size_t>(self.dim()));
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) order.push_back(d);
  for (size_t i = 0; i < order.size(); ++i) back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  const Tensor rows = contiguous(permute(self, order));
  const int64_t count = rows.size(0), width = rows.numel() / count;

  std::vector<int64_t> indices(static_cast<size_t>(count)), firsts;
  std::iota(indices.begin(), indices.end(), 0);
  Tensor inverse = int64s(count), result;
  std::vector<int64_t> lengths;
  const auto run = [&]<class T>() {
    const T* const data = rows.data_as<T>();
    if (!consecutive)
      std::sort(indices.begin(), indices.end(), [&](int64_t a, int64_t b) {
        for (int64_t i = 0; i < width; ++i) {
          const auto x = comparable(data[a * width + i]), y = comparable(data[b * width + i]);
          if (x < y) return true;
          if (x > y) return false;
        }
        return false;
      });
    const auto equal = [&](int64_t a, int64_t b) {
      for (int64_t i = 0; i < width; ++i)
        if (!(comparable(data[a * width + i]) == comparable(data[b * width + i]))) return false;
      return true;
    };
    for (const int64_t row : indices) {
      if (firsts.empty() || !equal(firsts.back(), row)) {
        firsts.push_back(row);
        lengths.push_back(0);
      }
      ++lengths.back();
      inverse.data_as<int64_t>()[row] = static_cast<int64_t>(firsts.size()) - 1;
    }
    Shape sizes(rows.sizes());
    sizes[0] = static_cast<int64_t>(firsts.size());
    result = Tensor::empty(sizes, rows.dtype());
    for (size_t i = 0; i < firsts.size(); ++i)
      std::copy_n(data + firsts[i] * width, width, result.data_as<T>() + static_cast<int64_t>(i) * width);
  };
  detail::dispatch_list<DType::kFloat32, DType::kInt64, DType::kInt32, DType::kFloat64, DType::kFloat16,
                        DType::kBFloat16, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kBool, DType::kUInt16,
                        DType::kUInt32, DType::kUInt64>(rows.dtype(), name,
                                                        [&]<class T>() -> void { run.template operator()<T>(); });
  Tensor counts = int64s(static_cast<int64_t>(lengths.size()));
  std::copy(lengths.begin(), lengths.end(), counts.data_as<int64_t>());
  return {permute(result, back), inverse, counts};
}

}  // namespace

std::array<Tensor, 3> _unique2(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  const auto [values, order] = sort(flattened(self), 0, false);
  return runs("unique", contiguous(values), order.data_as<int64_t>(), self.sizes(), return_inverse, return_counts);
}

std::array<Tensor, 3> unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                                         std::optional<int64_t> dim) {
  if (dim && !(*dim == 0 && self.dim() == 1)) return unique_slices("unique_consecutive", self, *dim, true);
  return runs("unique_consecutive", contiguous(flattened(self)), nullptr, self.sizes(), return_inverse, return_counts);
}

std::array<Tensor, 3> unique_dim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return unique_slices("unique_dim", self, dim, false);
}
std::array<Tensor, 3> unique_dim_consecutive(const Tensor& self, int64_t dim, bool, bool) {
  return unique_slices("unique_dim_consecutive", self, dim, true);
}

Tensor bincount(const Tensor& self, const Tensor* weights, int64_t minlength) {
  check_bincount(self, weights, minlength);
  if (self.numel() == 0) {
    Tensor none = int64s(minlength);
    zero(none);
    return none;
  }
  Tensor result;
  const auto count = [&]<class T>() {
    const Tensor in = contiguous(self);
    const T* const values = in.data_as<T>();
    const int64_t n = in.numel();
    T least = values[0], most = values[0];
    for (int64_t i = 1; i < n; ++i) {
      least = values[i] < least ? values[i] : least;
      most = values[i] > most ? values[i] : most;
    }
    SCONCE_CHECK(least >= 0, kInvalidArgument, "bincount: only supports 1-d non-negative integral inputs, got ",
                 static_cast<int64_t>(least));
    SCONCE_CHECK(static_cast<int64_t>(most) < std::numeric_limits<int64_t>::max(), kInvalidArgument,
                 "bincount: no tensor has a place for ", static_cast<int64_t>(most));
    const int64_t bins = std::max(minlength, static_cast<int64_t>(most) + 1);
    if (!weights) {
      result = int64s(bins);
      zero(result);
      int64_t* const out = result.data_as<int64_t>();
      for (int64_t i = 0; i < n; ++i) ++out[values[i]];
      return;
    }
    const bool single = weights->dtype() == DType::kFloat32;
    const Tensor each = contiguous(to_dtype(*weights, single ? DType::kFloat32 : DType::kFloat64));
    result = Tensor::empty(IntSpan(&bins, 1), each.dtype());
    zero(result);
    const auto add = [&]<class W>() {
      const W* const weight = each.data_as<W>();
      W* const out = result.data_as<W>();
      for (int64_t i = 0; i < n; ++i) out[values[i]] += weight[i];
    };
    if (single)
      add.template operator()<float>();
    else
      add.template operator()<double>();
  };
  dispatch_integral(self.dtype(), "bincount", [&]<class T>() -> void { count.template operator()<T>(); });
  return result;
}

}  // namespace sconce::cpu
