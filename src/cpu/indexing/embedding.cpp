// Sums, means and maxima over bags of embedding rows.
#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "sconce/check.h"
#include "src/device/dummy_run.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/fill.h"
#include "src/tensor/type_promotion.h"

namespace sconce::cpu {
namespace {

enum class Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

constexpr int64_t kElementsPerThread = 32768;
constexpr int64_t kRowsAhead = 8;  // prefetched
constexpr int64_t kCacheLine = 64;

// Vectors of consecutive elements, widened to the type in which they are added.
__m256 load(const float* from) { return _mm256_loadu_ps(from); }
__m256d load(const double* from) { return _mm256_loadu_pd(from); }
__m256 load(const Half* from) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))); }
__m256 load(const BFloat16* from) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
__m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
__m256d add(__m256d a, __m256d b) { return _mm256_add_pd(a, b); }
__m256 add_scaled(__m256 sum, __m256 x, float scale) { return _mm256_fmadd_ps(x, _mm256_set1_ps(scale), sum); }
__m256d add_scaled(__m256d sum, __m256d x, double scale) { return _mm256_fmadd_pd(x, _mm256_set1_pd(scale), sum); }
void store(float* to, __m256 v) { _mm256_storeu_ps(to, v); }
void store(double* to, __m256d v) { _mm256_storeu_pd(to, v); }

struct Bags {
  Tensor weight;           // neighbouring columns lie together
  Tensor indices, bounds;  // int64; bag b holds indices [bounds[b], bounds[b + 1])
  int64_t count, columns, row_stride, padding_idx;
  Tensor scales;  // of the weight's dtype, contiguous; undefined where there are none

  const int64_t* index() const { return indices.data_as<int64_t>(); }
  int64_t begin(int64_t bag) const { return bounds.data_as<int64_t>()[bag]; }
  int64_t end(int64_t bag) const { return bounds.data_as<int64_t>()[bag + 1]; }
  int64_t grain() const {
    return std::max<int64_t>(kElementsPerThread * std::max<int64_t>(count, 1) / (indices.numel() * columns + 1), 1);
  }
};

// The sum of one bag over `Vectors` vectors of columns.
template <class T, int Vectors>
void sum_columns(const Bags& bags, int64_t bag, int64_t column, ComputeType<T>* sums) {
  using Vector = decltype(load(static_cast<const T*>(nullptr)));
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(ComputeType<T>);
  const T* const rows = bags.weight.data_as<T>() + column;
  const T* const scales = bags.scales.data_as<T>();
  const int64_t* const index = bags.index();
  Vector sum[Vectors]{};
  for (int64_t i = bags.begin(bag), end = bags.end(bag); i < end; ++i) {
    if (i + kRowsAhead < end) {
      const char* ahead = reinterpret_cast<const char*>(rows + index[i + kRowsAhead] * bags.row_stride);
      for (int64_t b = 0; b < Vectors * kLanes * static_cast<int64_t>(sizeof(T)); b += kCacheLine)
        __builtin_prefetch(ahead + b);
    }
    if (index[i] == bags.padding_idx) continue;
    const T* row = rows + index[i] * bags.row_stride;
    if (scales) {
      const ComputeType<T> scale = scales[i];
      for (int v = 0; v < Vectors; ++v) sum[v] = add_scaled(sum[v], load(row + v * kLanes), scale);
    } else {
      for (int v = 0; v < Vectors; ++v) sum[v] = add(sum[v], load(row + v * kLanes));
    }
  }
  for (int v = 0; v < Vectors; ++v) store(sums + v * kLanes, sum[v]);
}

// The same for a single column.
template <class T>
ComputeType<T> sum_column(const Bags& bags, int64_t bag, int64_t column) {
  const T* const rows = bags.weight.data_as<T>() + column;
  const T* const scales = bags.scales.data_as<T>();
  ComputeType<T> sum = 0;
  for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
    const int64_t index = bags.index()[i];
    if (index == bags.padding_idx) continue;
    const ComputeType<T> value = rows[index * bags.row_stride];
    sum = scales ? std::fma(value, static_cast<ComputeType<T>>(scales[i]), sum) : sum + value;
  }
  return sum;
}

// divisors: null for sums; otherwise each bag's sum is rounded to T and divided by its divisor.
template <class T>
void sum_bags(const Bags& bags, const int64_t* divisors, T* out) {
  using Compute = ComputeType<T>;
  constexpr int64_t kLanes = 32 / sizeof(Compute);
  constexpr int kBlock = 8;
  parallel_for(0, bags.count, bags.grain(), [&](int64_t first, int64_t last) noexcept {
    for (int64_t bag = first; bag < last; ++bag) {
      T* const to = out + bag * bags.columns;
      const auto finished = [&](Compute sum) {
        const T rounded = T(sum);
        return divisors ? T(static_cast<Compute>(rounded) /
                            static_cast<Compute>(T(static_cast<Compute>(std::max<int64_t>(divisors[bag], 1)))))
                        : rounded;
      };
      Compute sums[kBlock * kLanes];
      int64_t c = 0;
      for (; c + kBlock * kLanes <= bags.columns; c += kBlock * kLanes) {
        sum_columns<T, kBlock>(bags, bag, c, sums);
        for (int64_t j = 0; j < kBlock * kLanes; ++j) to[c + j] = finished(sums[j]);
      }
      for (; c + kLanes <= bags.columns; c += kLanes) {
        sum_columns<T, 1>(bags, bag, c, sums);
        for (int64_t j = 0; j < kLanes; ++j) to[c + j] = finished(sums[j]);
      }
      for (; c < bags.columns; ++c) to[c] = finished(sum_column<T>(bags, bag, c));
    }
  });
}

// A bag without rows gives zeros and index 0. The first row wins ties, and a NaN in it stays.
template <class T, class Index>
void max_bags(const Bags& bags, T* out, Index* rows_taken) {
  using Compute = ComputeType<T>;
  parallel_for(0, bags.count, bags.grain(), [&](int64_t first, int64_t last) noexcept {
    for (int64_t bag = first; bag < last; ++bag) {
      T* const to = out + bag * bags.columns;
      Index* const taken = rows_taken + bag * bags.columns;
      bool empty = true;
      for (int64_t i = bags.begin(bag); i < bags.end(bag); ++i) {
        const int64_t index = bags.index()[i];
        if (index == bags.padding_idx) continue;
        const T* row = bags.weight.data_as<T>() + index * bags.row_stride;
        for (int64_t c = 0; c < bags.columns; ++c) {
          const bool take = empty || static_cast<Compute>(row[c]) > static_cast<Compute>(to[c]);
          to[c] = take ? row[c] : to[c];
          taken[c] = take ? static_cast<Index>(index) : taken[c];
        }
        empty = false;
      }
    }
  });
}

// Decides like ATen whether a sum can do without offset2bag.
bool sums_directly(const Tensor& weight, const Tensor* scales, int64_t padding_idx) {
  return weight.dtype() != DType::kFloat64 && weight.stride(1) == 1 && padding_idx < 0 &&
         (!scales || scales->stride(0) == 1);
}

void check_operands(const Tensor& weight, const Tensor& indices, const Tensor& offsets, int64_t mode,
                    const Tensor* scales, bool include_last_offset) {
  SCONCE_CHECK(weight.dim() == 2, kInvalidArgument,
               "embedding_bag: weight has to be a 2D Tensor, but got Tensor of dimension ", weight.dim());
  SCONCE_CHECK(is_floating(weight.dtype()), kInvalidArgument,
               "embedding_bag: weight has to be Half, BFloat16, Float or Double, but got ", dtype_name(weight.dtype()));
  const DType index_dtype = promote_types(indices.dtype(), offsets.dtype());
  SCONCE_CHECK(index_dtype == DType::kInt64 || index_dtype == DType::kInt32, kInvalidArgument,
               "embedding_bag: indices and offsets have to be Long or Int together, but got ",
               dtype_name(indices.dtype()), " and ", dtype_name(offsets.dtype()));
  SCONCE_CHECK(indices.dim() == 1 && offsets.dim() == 1, kInvalidArgument,
               "embedding_bag: indices and offsets have to be 1D Tensors, but got ", to_string(indices.sizes()),
               " and ", to_string(offsets.sizes()));
  SCONCE_CHECK(mode >= 0 && mode <= 2, kInvalidArgument, "embedding_bag: `mode` must be sum, mean, or max, got ", mode);
  SCONCE_CHECK(!include_last_offset || offsets.numel() > 0, kInvalidArgument,
               "embedding_bag: include_last_offset: number of offset should be at least 1");
  if (!scales) return;
  SCONCE_CHECK(mode == 0, kInvalidArgument, "embedding_bag: per_sample_weights only supported with mode='sum'");
  SCONCE_CHECK(scales->dtype() == weight.dtype(), kInvalidArgument,
               "embedding_bag: expected per_sample_weights to have the same type as weight, ",
               dtype_name(weight.dtype()), ", but got ", dtype_name(scales->dtype()));
  SCONCE_CHECK(scales->dim() == 1 && scales->numel() == indices.numel(), kInvalidArgument,
               "embedding_bag: ", to_string(scales->sizes()), " per_sample_weights for ", indices.numel(), " indices");
}

void check_values(const Bags& bags, const Tensor& offsets, int64_t rows) {
  const int64_t n = bags.indices.numel();
  const int64_t* const o = offsets.data_as<int64_t>();
  for (int64_t i = 0; i < offsets.numel(); ++i)
    SCONCE_CHECK(i == 0 || o[i] >= o[i - 1], kInvalidArgument, "embedding_bag: offsets have to rise, but ", o[i],
                 " follows ", o[i - 1]);
  SCONCE_CHECK(offsets.numel() == 0 || o[0] == 0, kInvalidArgument,
               "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
               "position 0. However, got ",
               o[0]);
  SCONCE_CHECK(offsets.numel() == 0 || o[offsets.numel() - 1] <= n, kInvalidArgument,
               "embedding_bag: offsets[-1] can not be greater than input's length ", n, " but got offsets[-1] of ",
               o[offsets.numel() - 1]);
  for (int64_t i = 0; i < n; ++i)
    SCONCE_CHECK(bags.index()[i] >= 0 && bags.index()[i] < rows, kInvalidArgument,
                 "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be ", bags.index()[i]);
}

std::array<Tensor, 4> run(const Tensor& weight, const Tensor& given_indices, const Tensor& given_offsets, int64_t mode,
                          const Tensor* scales, bool include_last_offset, int64_t padding_idx,
                          bool sum_sized_as_offsets) {
  check_operands(weight, given_indices, given_offsets, mode, scales, include_last_offset);
  map_cached_pages(*weight.storage());
  const DType index_dtype = promote_types(given_indices.dtype(), given_offsets.dtype());
  const Tensor offsets = contiguous(to_dtype(given_offsets, DType::kInt64));
  const bool direct = sums_directly(weight, scales, padding_idx);
  const int64_t n = given_indices.numel(), count = offsets.numel() - (include_last_offset ? 1 : 0);
  const int64_t* const o = offsets.data_as<int64_t>();

  Bags bags;
  bags.weight = weight.stride(1) == 1 ? weight : contiguous(weight);
  bags.indices = contiguous(to_dtype(given_indices, DType::kInt64));
  bags.count = count;
  bags.columns = weight.size(1);
  bags.row_stride = bags.weight.stride(0);
  bags.padding_idx = padding_idx;
  if (scales) bags.scales = contiguous(*scales);
  check_values(bags, offsets, weight.size(0));

  // The last bag reaches to the end, unless a direct sum is told otherwise.
  const int64_t bounds = count + 1;
  bags.bounds = Tensor::empty(IntSpan(&bounds, 1), DType::kInt64);
  std::copy_n(o, count, bags.bounds.data_as<int64_t>());
  const bool told = include_last_offset && direct && mode != static_cast<int64_t>(Mode::kMax);
  bags.bounds.data_as<int64_t>()[count] = told ? o[count] : n;

  const int64_t sizes[] = {count, weight.size(1)};
  Tensor out = Tensor::empty(sizes, weight.dtype());
  const bool is_sum = mode == static_cast<int64_t>(Mode::kSum), is_max = mode == static_cast<int64_t>(Mode::kMax);

  const int64_t mapped = is_sum && direct ? 0 : n;
  Tensor offset2bag = Tensor::empty(IntSpan(&mapped, 1), DType::kInt64);
  for (int64_t i = 0, bag = -1; i < mapped; ++i) {
    while (bag + 1 < count && o[bag + 1] <= i) ++bag;
    offset2bag.data_as<int64_t>()[i] = bag;
  }

  const int64_t bag_size_length = is_sum && sum_sized_as_offsets ? offsets.numel() : count;
  Tensor bag_size = Tensor::empty(IntSpan(&bag_size_length, 1), DType::kInt64);
  zero(bag_size);
  if (!is_sum) {
    int64_t* const size = bag_size.data_as<int64_t>();
    for (int64_t b = 0; b < count; ++b) {
      const int64_t end = b + 1 < count ? o[b + 1] : n;
      size[b] = end - o[b] - std::count(bags.index() + o[b], bags.index() + end, padding_idx);
    }
  }

  Tensor max_indices = is_max ? Tensor::empty(sizes, DType::kInt64) : clone(bag_size);
  dispatch_floating(weight.dtype(), "embedding_bag", [&]<class T>() -> void {
    if (is_max) {
      zero(out);
      zero(max_indices);
      max_bags<T>(bags, out.data_as<T>(), max_indices.data_as<int64_t>());
    } else {
      sum_bags<T>(bags, is_sum ? nullptr : bag_size.data_as<int64_t>(), out.data_as<T>());
    }
  });
  return {std::move(out), to_dtype(offset2bag, index_dtype), to_dtype(bag_size, index_dtype),
          to_dtype(max_indices, index_dtype)};
}

}  // namespace

// weight [rows, columns], floating, any strides; indices [n] and offsets [bags], or [bags + 1] with
// include_last_offset, of integers that promote to int32 or int64. mode 0 sums, 1 averages, 2 takes maxima.
// per_sample_weights [n] of the weight's dtype, for sums. Rows at padding_idx (if not negative) are left out.
//
// Results: output [bags, columns]; offset2bag [n], or [0] where a sum needs none (no padding, a dtype narrower than
// double, rows that lie together); bag_size [bags], zeros for sums; max_indices [bags, columns] for maxima, else equal
// to bag_size. The last three have the dtype of the indices. scale_grad_by_freq and sparse concern gradients only.
// kInvalidArgument for indices outside the rows and for offsets that do not rise from 0 to at most n.
// Matches ATen's CPU kernels, torch 2.15.
std::array<Tensor, 4> _embedding_bag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                                     int64_t mode, bool, const Tensor* per_sample_weights, bool include_last_offset,
                                     int64_t padding_idx) {
  return run(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, false);
}
// The same, but bag_size of a sum has the size of offsets.
std::array<Tensor, 4> _embedding_bag_forward_only(const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                                                  bool, int64_t mode, bool, const Tensor* per_sample_weights,
                                                  bool include_last_offset, int64_t padding_idx) {
  return run(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx, true);
}

}  // namespace sconce::cpu
