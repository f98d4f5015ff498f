#include "src/cpu/reduction/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cpu {
namespace {

struct Range {
  double low = 0, high = 1;  // numpy's for no elements
};

// Every step in the element type, as ATen computes: half types are rounded each time.
template <class T>
T rounded(ComputeType<T> value) noexcept {
  return T(value);
}

// at::linspace: from both ends to the middle.
template <class T>
void write_edges(Range range, int64_t bins, T* edges) noexcept {
  const T low(static_cast<ComputeType<T>>(range.low)), high(static_cast<ComputeType<T>>(range.high));
  const int64_t steps = bins + 1;
  const T step = rounded<T>(rounded<T>(high - low) / T(static_cast<ComputeType<T>>(bins)));
  const auto times = [step](int64_t n) { return rounded<T>(step * T(static_cast<ComputeType<T>>(n))); };
  for (int64_t i = 0; i < steps; ++i)
    edges[i] = i < steps / 2 ? rounded<T>(low + times(i)) : rounded<T>(high - times(steps - 1 - i));
}

struct Minmax {
  double low, high;
};
// Least and greatest of column `at` of [rows, columns]; a NaN wins.
template <class T>
Minmax extrema(const T* in, int64_t rows, int64_t columns, int64_t at) noexcept {
  T low = in[at], high = in[at];
  for (int64_t r = 1; r < rows; ++r) {
    const T value = in[r * columns + at];
    if (value != value) return {static_cast<double>(value), static_cast<double>(value)};
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return {static_cast<double>(low), static_cast<double>(high)};
}

// How an element's bin is found: by division, by division and a look at the neighbours, or among edges of any distance.
enum class Search : uint8_t { kNone, kLocal, kBinary };

// The bin of an element; -1 if it is outside the range.
template <class T>
int64_t bin_of(T value, const T* edges, int64_t bins, Search search) noexcept {
  const T low = edges[0], high = edges[bins];
  if (!(value >= low && value <= high)) return -1;
  if (search == Search::kBinary)
    return std::min<int64_t>(std::upper_bound(edges, edges + bins + 1, value) - edges - 1, bins - 1);
  const T scaled = rounded<T>(rounded<T>(value - low) * T(static_cast<ComputeType<T>>(bins)));
  auto position = static_cast<int64_t>(rounded<T>(scaled / rounded<T>(high - low)));
  // Division may end on the wrong side of an edge.
  if (search == Search::kLocal) {
    const int64_t from = std::clamp<int64_t>(position - 1, 0, bins),
                  to = std::clamp<int64_t>(position + 2, 0, bins + 1);
    position = std::upper_bound(edges + from, edges + to, value) - edges - 1;
  }
  return std::clamp<int64_t>(position, 0, bins - 1);
}

// [rows, D] into the product of the bins.
template <class T>
void count(const T* in, int64_t rows, IntSpan bins, const std::vector<const T*>& edges, const T* weight, Search search,
           T* hist) noexcept {
  const auto dims = static_cast<int64_t>(bins.size());
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = 0;
    bool inside = true;
    for (int64_t d = 0; d < dims && inside; ++d) {
      const auto k = static_cast<size_t>(d);
      const int64_t bin = bin_of(in[r * dims + d], edges[k], bins[k], search);
      inside = bin >= 0;
      at = at * bins[k] + bin;
    }
    if (inside) hist[at] = rounded<T>(hist[at] + (weight ? weight[r] : T(1.0f)));
  }
}

// Divides by the total and by the width of each bin.
template <class T>
void normalise(IntSpan bins, const std::vector<const T*>& edges, T* hist, int64_t cells) noexcept {
  ComputeType<T> total = 0;
  for (int64_t i = 0; i < cells; ++i) total += hist[i];
  for (int64_t i = 0; i < cells; ++i) hist[i] = rounded<T>(hist[i] / T(total));
  int64_t inner = cells;
  for (size_t d = 0; d < bins.size(); ++d) {
    inner /= bins[d];
    for (int64_t i = 0; i < cells; ++i) {
      const int64_t bin = i / inner % bins[d];
      hist[i] = rounded<T>(hist[i] / rounded<T>(edges[d][bin + 1] - edges[d][bin]));
    }
  }
}

Range histogram_range(const Tensor& rows, OptReals given, size_t d) {
  const int64_t dims = rows.size(1);
  Range range;
  if (given) {
    range = {(*given)[2 * d], (*given)[2 * d + 1]};
  } else if (rows.numel() > 0) {
    dispatch_float_double(rows.dtype(), "histogramdd", [&]<class T>() {
      const Minmax found = extrema(rows.data_as<T>(), rows.size(0), dims, static_cast<int64_t>(d));
      range = {found.low, found.high};
    });
  }
  SCONCE_CHECK(std::isfinite(range.low) && std::isfinite(range.high), kInvalidArgument, "histogramdd: dimension ", d,
               "'s range [", range.low, ", ", range.high, "] is not finite");
  SCONCE_CHECK(range.low <= range.high, kInvalidArgument, "histogramdd: min should not exceed max, but got min ",
               range.low, " max ", range.high, " for dimension ", d);
  return range.low == range.high ? Range{range.low - 0.5, range.high + 0.5} : range;
}

void check_bins(IntSpan bins) {
  int64_t cells = 1;
  for (size_t d = 0; d < bins.size(); ++d) {
    SCONCE_CHECK(bins[d] > 0, kInvalidArgument, "histogram(): bins must be > 0, but got ", bins[d], " for dimension ",
                 d);
    SCONCE_CHECK(bins[d] < std::numeric_limits<int32_t>::max() && !__builtin_mul_overflow(cells, bins[d], &cells),
                 kInvalidArgument, "histogram(): ", to_string(bins), " bins are too many");
  }
}

struct Histogram {
  Tensor hist;
  std::vector<Tensor> edges;  // per dimension
};

// self as [rows, D].
Histogram histogram(const Tensor& rows, IntSpan bins, OptReals range, const Tensor* weight, bool density) {
  check_bins(bins);
  SCONCE_CHECK(!range || range->size() == 2 * bins.size(), kInvalidArgument, "histogramdd: for a ", bins.size(),
               "-dimensional histogram range should have ", 2 * bins.size(), " elements, but got ", range->size());
  Histogram result;
  if (!range && rows.numel() > 0 && !bins.empty()) dispatch_float_double(rows.dtype(), "histogramdd", []<class T>() {});
  dispatch_floating(rows.dtype(), "histogram_cpu", [&]<class T>() {
    std::vector<const T*> edges;
    for (size_t d = 0; d < bins.size(); ++d) {
      const int64_t size = bins[d] + 1;
      result.edges.push_back(Tensor::empty(IntSpan(&size, 1), rows.dtype()));
      write_edges(histogram_range(rows, range, d), bins[d], result.edges.back().template data_as<T>());
      edges.push_back(result.edges.back().template data_as<T>());
    }
    result.hist = Tensor::empty(bins, rows.dtype());
    zero(result.hist);
    if (bins.empty()) return;
    const Tensor weights = weight ? contiguous(*weight) : Tensor();
    count<T>(rows.data_as<T>(), rows.size(0), bins, edges, weight ? weights.data_as<T>() : nullptr, Search::kLocal,
             result.hist.template data_as<T>());
    if (density) normalise<T>(bins, edges, result.hist.template data_as<T>(), result.hist.numel());
  });
  return result;
}

void check_weight(const Tensor& self, const Tensor* weight, IntSpan sizes) {
  if (!weight) return;
  SCONCE_CHECK(weight->dtype() == self.dtype(), kInvalidArgument,
               "histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
               "but got input(",
               dtype_name(self.dtype()), "), and weight(", dtype_name(weight->dtype()), ")");
  SCONCE_CHECK(std::equal(sizes.begin(), sizes.end(), weight->sizes().begin(), weight->sizes().end()), kInvalidArgument,
               "histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
               "its innermost dimension, but got input with shape ",
               to_string(self.sizes()), " and weight with shape ", to_string(weight->sizes()));
}

}  // namespace

// Counts [bins] over [min, max], over the elements' own range where min == max.
Tensor histc(const Tensor& self, int64_t bins, double min, double max) {
  check_bins(IntSpan(&bins, 1));
  Tensor hist = Tensor::empty(IntSpan(&bins, 1), self.dtype());
  dispatch_floating(self.dtype(), "histogram_cpu", [&]<class T>() {
    const Tensor packed = contiguous(self);
    Range range{min, max};
    if (min == max && self.numel() > 0) {
      const Minmax found = extrema(packed.data_as<T>(), packed.numel(), 1, 0);
      range = {found.low, found.high};
    }
    if (range.low == range.high) range = {range.low - 1, range.high + 1};
    SCONCE_CHECK(std::isfinite(range.low) && std::isfinite(range.high), kInvalidArgument, "histc: range of [",
                 range.low, ", ", range.high, "] is not finite");
    SCONCE_CHECK(range.low < range.high, kInvalidArgument, "histc: max must be larger than min");
    const int64_t edge_count = bins + 1;
    const Tensor edges = Tensor::empty(IntSpan(&edge_count, 1), self.dtype());
    write_edges(range, bins, edges.data_as<T>());
    zero(hist);
    count<T>(packed.data_as<T>(), packed.numel(), IntSpan(&bins, 1), {edges.data_as<T>()}, nullptr, Search::kNone,
             hist.data_as<T>());
  });
  return hist;
}

// Counts or, with weight of self's sizes, sums [bins], and edges [bins + 1]. density: divided by the total and by the
// bin's width. range: two numbers.
std::array<Tensor, 2> histogram_bin_ct(const Tensor& self, int64_t bins, OptReals range, const Tensor* weight,
                                       bool density) {
  check_weight(self, weight, self.sizes());
  const int64_t sizes[] = {self.numel(), 1};
  Histogram made = histogram(reshape(contiguous(self), sizes), IntSpan(&bins, 1), range, weight, density);
  return {std::move(made.hist), std::move(made.edges.front())};
}

namespace {

// self [..., D] as [rows, D].
Tensor rows_of(const Tensor& self, size_t bins, const Tensor* weight) {
  SCONCE_CHECK(self.dim() >= 2, kInvalidArgument, "histogramdd: input tensor should have at least 2 dimensions");
  const IntSpan rows = self.sizes().first(static_cast<size_t>(self.dim() - 1));
  const int64_t dims = self.size(self.dim() - 1);
  SCONCE_CHECK(static_cast<int64_t>(bins) == dims, kInvalidArgument,
               "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  check_weight(self, weight, rows);
  int64_t count = 1;
  for (const int64_t size : rows) count *= size;
  const int64_t sizes[] = {count, dims};
  return reshape(contiguous(self), sizes);
}

Tensor between_edges(const Tensor& rows, std::span<const Tensor> bins, const Tensor* weight, bool density) {
  std::vector<Tensor> packed;
  std::vector<int64_t> counts;
  for (const Tensor& edges : bins) {
    SCONCE_CHECK(edges.dim() == 1 && edges.numel() > 1, kInvalidArgument,
                 "histogramdd: bins tensor should have one dimension and at least two elements, but got ",
                 describe(edges));
    SCONCE_CHECK(edges.dtype() == rows.dtype(), kInvalidArgument,
                 "histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
                 dtype_name(rows.dtype()), " and bins with dtype ", dtype_name(edges.dtype()));
    packed.push_back(contiguous(edges));
    counts.push_back(edges.numel() - 1);
  }
  check_bins(counts);
  Tensor hist = Tensor::empty(counts, rows.dtype());
  zero(hist);
  dispatch_float_double(rows.dtype(), "histogram_cpu", [&]<class T>() {
    std::vector<const T*> edges;
    for (const Tensor& tensor : packed) edges.push_back(tensor.data_as<T>());
    const Tensor weights = weight ? contiguous(*weight) : Tensor();
    count<T>(rows.data_as<T>(), rows.size(0), counts, edges, weight ? weights.data_as<T>() : nullptr, Search::kBinary,
             hist.data_as<T>());
    if (density) normalise<T>(counts, edges, hist.data_as<T>(), hist.numel());
  });
  return hist;
}

}  // namespace

// self [..., D], bins D numbers, range 2 D numbers, weight [...]: counts of sizes `bins`.
Tensor _histogramdd_from_bin_cts(const Tensor& self, IntSpan bins, OptReals range, const Tensor* weight, bool density) {
  return histogram(rows_of(self, bins.size(), weight), bins, range, weight, density).hist;
}
std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, IntSpan bins, OptReals range, const Tensor* weight,
                                           bool density) {
  return histogram(rows_of(self, bins.size(), weight), bins, range, weight, density).edges;
}
Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorList bins, const Tensor* weight, bool density) {
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) edges.push_back(bins[d]);
  return between_edges(rows_of(self, bins.size(), weight), edges, weight, density);
}
std::array<Tensor, 2> histogram_bins_tensor(const Tensor& self, const Tensor& bins, const Tensor* weight,
                                            bool density) {
  check_weight(self, weight, self.sizes());
  const int64_t sizes[] = {self.numel(), 1};
  return {between_edges(reshape(contiguous(self), sizes), {&bins, 1}, weight, density), clone(bins)};
}

}  // namespace sconce::cpu
