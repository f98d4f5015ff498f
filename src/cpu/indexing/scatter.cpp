// Scatter along a dimension. Matches aten::scatter.src_out, scatter.value_out and scatter_reduce.two_out (torch 2.15,
// CPU): out = self; then for every position of `index`, the element of out whose coordinate along `dim` is the index is
// written, or combined, with src's element at that position. Of duplicates the last along `dim` wins.
//
// index: int64 or int32, of self's rank, no larger than src, nor than self but along dim. out may be self and must not
// overlap index or src. kInvalidArgument for an index out of [0, size); negative ones are not wrapped.
#include <algorithm>
#include <array>
#include <atomic>

#include "sconce/check.h"
#include "src/cpu/indexing/scatter_check.h"
#include "src/cpu/indexing/scatter_loop.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"

namespace sconce {

ScatterPlan::ScatterPlan(const Tensor& out, const Tensor& index, IntSpan value_strides, size_t value_itemsize,
                         int64_t dim)
    : others({}, {IntSpan{}, IntSpan{}, IntSpan{}}, {1, 1, 1}) {
  Shape sizes, out_strides, index_strides, values;
  for (int64_t d = 0; d < index.dim(); ++d) {
    if (d == dim) continue;
    sizes.push_back(index.size(d));
    out_strides.push_back(d < out.dim() ? out.stride(d) : 0);
    index_strides.push_back(index.stride(d));
    values.push_back(value_strides[static_cast<size_t>(d)]);
  }
  others =
      StridedLoop<3>(sizes, {out_strides, index_strides, values}, {out.itemsize(), sizeof(int64_t), value_itemsize});
  // A 0-d tensor is one of size 1.
  const bool own = dim < index.dim();
  count = own ? index.size(dim) : 1;
  size = out.dim() > 0 ? out.size(dim) : 1;
  out_step = out.dim() > 0 ? out.stride(dim) * static_cast<int64_t>(out.itemsize()) : 0;
  index_step = own ? index.stride(dim) * static_cast<int64_t>(sizeof(int64_t)) : 0;
  value_step = own ? value_strides[static_cast<size_t>(dim)] * static_cast<int64_t>(value_itemsize) : 0;
}

int64_t check_scatter(std::string_view name, const Tensor& out, const Tensor& self, int64_t dim, const Tensor& index,
                      const Tensor* src) {
  SCONCE_CHECK(out.is_cpu() && self.is_cpu() && index.is_cpu() && (!src || src->is_cpu()), kUnsupported, name,
               ": tensors on a device need the CUDA side of the runtime");
  dim = wrap_dim(name, dim, self.dim());
  SCONCE_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32 || index.numel() == 0, kInvalidArgument,
               name, "(): Expected dtype int32/int64 for index, got ", dtype_name(index.dtype()));
  SCONCE_CHECK(!src || src->dtype() == self.dtype(), kInvalidArgument, name,
               "(): Expected self.dtype to be equal to src.dtype, got ", dtype_name(self.dtype()), " and ",
               dtype_name(src->dtype()));
  SCONCE_CHECK(out.dtype() == self.dtype() &&
                   std::equal(out.sizes().begin(), out.sizes().end(), self.sizes().begin(), self.sizes().end()),
               kInvalidArgument, name, "(): out is ", describe(out), ", self ", describe(self));
  check_no_internal_overlap(name, out);
  check_no_overlap(name, out, index);
  if (src) check_no_overlap(name, out, *src);
  if (index.numel() == 0) return dim;
  const auto rank = [](const Tensor& t) { return std::max<int64_t>(t.dim(), 1); };
  const auto size = [](const Tensor& t, int64_t d) { return t.dim() == 0 ? 1 : t.size(d); };
  SCONCE_CHECK(rank(index) == rank(self), kInvalidArgument,
               "Index tensor must have the same number of dimensions as self tensor: ", to_string(index.sizes()),
               " and ", to_string(self.sizes()));
  SCONCE_CHECK(!src || rank(*src) == rank(index), kInvalidArgument,
               "Index tensor must have the same number of dimensions as src tensor: ", to_string(index.sizes()),
               " and ", to_string(src->sizes()));
  bool fits = true;
  for (int64_t d = 0; d < rank(index); ++d)
    fits &= (d == dim || size(index, d) <= size(self, d)) && (!src || size(index, d) <= size(*src, d));
  if (!fits && src)
    SCONCE_FAIL(kInvalidArgument, "Expected index ", to_string(index.sizes()), " to be no larger than self ",
                to_string(self.sizes()), " apart from dimension ", dim, " and to be no larger size than src ",
                to_string(src->sizes()));
  SCONCE_CHECK(fits, kInvalidArgument, "Expected index ", to_string(index.sizes()), " to be no larger than self ",
               to_string(self.sizes()), " apart from dimension ", dim);
  return dim;
}

void check_scatter_bounds(const int64_t* bad, int64_t dim, int64_t size) {
  SCONCE_CHECK(!bad, kInvalidArgument, "index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
}

namespace detail {
namespace {

// Where the targets of each of `parts` threads begin, and where the last ends, so that about as many rows go to each;
// false where a few targets get most of them. From a sample of the indices.
bool balance_targets(const ScatterPlan& plan, const int64_t* index, int64_t parts, int64_t* begins) noexcept {
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

}  // namespace

const int64_t* scatter_ranges(const ScatterPlan& plan, void* out, const int64_t* index, const void* values,
                              size_t itemsize, ScatterRange all, ScatterRange some) {
  constexpr int64_t kElementsPerThread = 8 << 10;
  std::atomic<const int64_t*> bad{nullptr};
  auto* to = static_cast<char*>(out);
  const auto* from = static_cast<const char*>(values);
  const int64_t others = plan.others.numel, threads = kernel_threads();
  constexpr int64_t kMaxParts = 16;
  if (plan.others.rank == 1 && plan.others.strides[0][1] == 0 && others >= 16 && threads > 1) {
    // Rows under one index each: a thread reads whole rows, for targets of its own.
    int64_t begins[kMaxParts + 1];
    const int64_t parts = std::min({others * plan.count / (2 * kElementsPerThread), threads, kMaxParts});
    if (parts > 1 && balance_targets(plan, index, parts, begins)) {
      parallel_for(0, parts, 1, [&](int64_t first, int64_t last) noexcept {
        const Targets part{plan.size, begins[first], begins[last] - begins[first]};
        if (const auto* b = some(plan, to, index, from, 0, others, part)) bad = b;
      });
      return bad;
    }
  }
  const bool neighbours = plan.others.rank > 0 && plan.others.strides[0][0] == static_cast<int64_t>(itemsize);
  // Threads take whole cache lines.
  if (others >= threads * (neighbours ? 16 : 1)) {
    const int64_t grain = std::max<int64_t>(kElementsPerThread / std::max<int64_t>(plan.count, 1), neighbours ? 16 : 1);
    parallel_for(0, others, grain, [&](int64_t begin, int64_t end) noexcept {
      if (const auto* b = all(plan, to, index, from, begin, end, {plan.size, 0, plan.size})) bad = b;
    });
  } else {
    // For few slices, each thread takes different targets, so that duplicates keep their order. Each thread reads all
    // indices, which pays only for rows, not for single elements.
    constexpr int64_t kWorthLooking = 8;
    const int64_t parts =
        others < kWorthLooking ? 1 : std::clamp<int64_t>(others * plan.count / kElementsPerThread, 1, threads);
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
      const int64_t low = plan.size * begin / parts;
      const Targets part{plan.size, low, plan.size * end / parts - low};
      if (const auto* b = some(plan, to, index, from, 0, others, part)) bad = b;
    });
  }
  return bad;
}

}  // namespace detail

namespace cpu {
namespace {

struct Assign {
  template <class E>
  static void apply(E& to, const E& from) noexcept {
    to = from;
  }
};

void copy_self(const Tensor& self, Tensor& out) {
  if (&self != &out) copy(self, out);
}

void assign(Tensor& out, int64_t dim, const Tensor& index, IntSpan value_strides, const void* values) {
  const Tensor index64 = to_dtype(index, DType::kInt64);
  const ScatterPlan plan(out, index64, value_strides, out.itemsize(), dim);
  const int64_t* bad = dispatch_bytes(out.itemsize(), [&]<class E>() {
    return scatter_loop<E, E, Assign>(plan, out.data(), index64.data_as<int64_t>(), values);
  });
  check_scatter_bounds(bad, dim, plan.size);
}

}  // namespace

void scatter_src_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  dim = check_scatter("scatter", out, self, dim, index, &src);
  copy_self(self, out);
  if (index.numel() == 0) return;
  static constexpr int64_t kOne = 1;
  assign(out, dim, index, src.dim() == 0 ? IntSpan{&kOne, 1} : src.strides(), src.data());
}

void scatter_value_out(Tensor& out, const Tensor& self, int64_t dim, const Tensor& index, double value) {
  dim = check_scatter("scatter", out, self, dim, index, nullptr);
  unsigned char element[16];
  scalar_bytes(value, self.dtype(), element);
  copy_self(self, out);
  if (index.numel() == 0) return;
  const std::array<int64_t, Tensor::kMaxRank> zeros{};
  assign(out, dim, index, {zeros.data(), static_cast<size_t>(std::max<int64_t>(index.dim(), 1))}, element);
}

}  // namespace cpu

}  // namespace sconce
