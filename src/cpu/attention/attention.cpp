// Flash attention on the CPU: it multiplies blocks of queries with blocks of keys, so that scores never leave the
// caches.
//
// query [B, H, L, D], key and value [B, G, N, D], any strides, H a multiple of G (query heads h * G / H share a key
// head); float, double, half, bfloat16, computed in float or double. The mask is added to the scores: the query's
// dtype, float, or bool (false: -infinity), [L, N] or [B, H, L, N], each dimension of these or 1. Causal: query i sees
// keys 0 to i. A query that sees nothing but -infinity gives zeros and logsumexp 0.
// Results: output in the layout of the query (empty_like), logsumexp [B, H, L] over memory [B, L, H].
// Matches aten::_scaled_dot_product_flash_attention_for_cpu, torch 2.15; no keys at all, for which ATen divides by
// zero, are a query that sees nothing. kInvalidArgument, kUnsupported as ATen raises.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/cpu/attention/attention_softmax.h"
#include "src/cpu/matmul/gemm/gemm_isa.h"
#include "src/device/cpu_arena.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/convert.h"

namespace sconce {

template <>
const SoftmaxKernels<float>& softmax_kernels() noexcept {
  return has_avx512() ? kSoftmaxF32Avx512 : kSoftmaxF32Avx2;
}
template <>
const SoftmaxKernels<double>& softmax_kernels() noexcept {
  return has_avx512() ? kSoftmaxF64Avx512 : kSoftmaxF64Avx2;
}
template <>
const FewRowsKernels<Half>& few_rows_kernels() noexcept {
  return has_avx512() ? kFewRowsF16Avx512 : kFewRowsF16Avx2;
}
template <>
const FewRowsKernels<BFloat16>& few_rows_kernels() noexcept {
  return has_avx512() ? kFewRowsBf16Avx512 : kFewRowsBf16Avx2;
}

namespace {

constexpr const char* kName = "_scaled_dot_product_flash_attention_for_cpu";
constexpr int64_t kFlopsPerThread = 1'000'000;
constexpr int64_t kQueries = 56;      // of a block: whole register tiles
constexpr int64_t kKeys = 512;        // of a block
constexpr int64_t kKeysAtOnce = 768;  // so many are one block still
// Of keys and values of one head, prepared once for all queries.
constexpr int64_t kMaxPreparedBytes = int64_t{1} << 20;
constexpr size_t kStackBytes = size_t{32} << 10;

struct HeadView {
  const void* data;
  int64_t batch, head, row, column;  // strides in elements
};

HeadView view(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)}; }

template <class S>
void to_compute(const S* from, int64_t stride, ComputeType<S>* to, int64_t n) {
  if (stride == 1) {
    if constexpr (std::is_same_v<S, ComputeType<S>>)
      return void(std::memcpy(to, from, static_cast<size_t>(n) * sizeof(S)));
    else if constexpr (std::is_same_v<S, Half>)
      return half_to_float(from, to, n);
    else
      return bfloat16_to_float(from, to, n);
  }
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<ComputeType<S>>(from[i * stride]);
}

template <class S>
class Attention {
  using C = ComputeType<S>;
  static constexpr bool kSmall = !std::is_same_v<S, C>;

 public:
  int64_t batch, heads, groups, queries, keys, depth;
  HeadView q, k, v, mask{};
  DType mask_dtype = DType::kFloat32;
  bool causal = false;
  C scale;
  S* out;
  int64_t out_batch, out_head, out_row, out_column;
  C* logsumexp;

  void run() {
    plan();
    const int64_t tasks = batch * heads * query_blocks_;
    if (tasks == 0) return;
    const double flops = 4.0 * static_cast<double>(batch * heads * queries) * static_cast<double>(keys * depth);
    const int64_t threads = std::min<int64_t>(kernel_threads(), tasks);
    const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(flops / kFlopsPerThread), 1, threads);
    const int64_t bytes = scratch_elements() * static_cast<int64_t>(sizeof(C));
    if (parts == 1 && bytes <= static_cast<int64_t>(kStackBytes)) {
      alignas(64) std::byte scratch[kStackBytes];
      return some(0, tasks, reinterpret_cast<C*>(scratch));
    }
    const StoragePtr scratch = allocate_cpu(static_cast<size_t>(bytes * parts));
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) noexcept {
      for (int64_t i = begin; i < end; ++i)
        some(tasks * i / parts, tasks * (i + 1) / parts,
             reinterpret_cast<C*>(static_cast<std::byte*>(scratch->data()) + i * bytes));
    });
  }

 private:
  void plan() {
    block_queries_ = queries <= kQueries + 8 ? queries : kQueries;
    query_blocks_ = block_queries_ ? (queries + block_queries_ - 1) / block_queries_ : 0;
    block_keys_ = keys <= kKeysAtOnce ? keys : kKeys;
    padded_keys_ = padded(block_keys_);
    // An odd number of cache lines, so that rows do not compete for the same places of the cache.
    score_stride_ = ((padded_keys_ / kLine + 1) | 1) * kLine;
    padded_depth_ = padded(depth);
    key_rows_ = queries <= kernels_.dot_rows && k.column == 1;
    in_place_ = kSmall && key_rows_ && v.column == 1;
    copy_keys_ = key_rows_ && kSmall && !in_place_;
    copy_values_ = !in_place_ && (kSmall || v.column != 1 || padded_depth_ != depth);
    key_elements_ = key_rows_ ? (copy_keys_ ? block_keys_ * depth : 0) : padded_keys_ * depth;
    value_elements_ = copy_values_ ? block_keys_ * padded_depth_ : 0;
    blocks_ = block_keys_ ? (keys + block_keys_ - 1) / block_keys_ : 0;
    keep_ = query_blocks_ > 1 &&
            (key_elements_ + value_elements_) * blocks_ * static_cast<int64_t>(sizeof(C)) <= kMaxPreparedBytes;
    mask_elements_ = mask.data && (mask_dtype != kDType<C> || mask.column != 1) ? block_queries_ * block_keys_ : 0;
  }
  int64_t padded(int64_t n) const {
    const int64_t rest = n % kernels_.wide;
    return n - rest + (rest ? kernels_.panel_width(rest) : 0);
  }
  static int64_t whole_lines(int64_t elements) { return (elements + kLine - 1) / kLine * kLine; }
  int64_t scratch_elements() const {
    const int64_t kept = keep_ ? std::max<int64_t>(1, blocks_) : 1;
    return whole_lines(block_queries_ * depth) + whole_lines(block_queries_ * score_stride_) +
           whole_lines(block_queries_ * padded_depth_) + 3 * whole_lines(block_queries_) + whole_lines(mask_elements_) +
           kept * whole_lines(key_elements_) + kept * whole_lines(value_elements_) + whole_lines(kernels_.wide * depth);
  }

  // The tasks [begin, end): blocks of queries, one head after the other.
  void some(int64_t begin, int64_t end, C* scratch) const noexcept {
    C* at = scratch;
    const auto take = [&](int64_t elements) { return std::exchange(at, at + whole_lines(elements)); };
    Buffers b;
    b.query = take(block_queries_ * depth);
    b.scores = take(block_queries_ * score_stride_);
    b.sums = take(block_queries_ * padded_depth_);
    b.maximum = take(block_queries_);
    b.sum = take(block_queries_);
    b.correction = take(block_queries_);
    b.mask = take(mask_elements_);
    b.rows = take(kernels_.wide * depth);
    const int64_t kept = keep_ ? std::max<int64_t>(1, blocks_) : 1;
    b.keys = take(kept * whole_lines(key_elements_));
    b.values = take(kept * whole_lines(value_elements_));
    int64_t prepared = -1;  // the key head whose keys and values are kept
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / query_blocks_, i0 = task % query_blocks_ * block_queries_;
      const int64_t ib = head / heads, ih = head % heads, group = ih / (heads / groups);
      if (keep_ && prepared != ib * groups + group) {
        prepared = ib * groups + group;
        for (int64_t block = 0; block < blocks_; ++block) {
          const int64_t n0 = block * block_keys_, n1 = std::min(keys, n0 + block_keys_);
          prepare_keys(ib, group, n0, n1, b.keys + block * whole_lines(key_elements_), b.rows);
          prepare_values(ib, group, n0, n1, b.values + block * whole_lines(value_elements_));
        }
      }
      block_of_queries(ib, ih, group, i0, std::min(queries, i0 + block_queries_), b);
    }
  }

  struct Buffers {
    C *query, *scores, *sums, *maximum, *sum, *correction, *mask, *rows, *keys, *values;
  };

  const S* key_at(int64_t ib, int64_t group, int64_t n) const {
    return static_cast<const S*>(k.data) + ib * k.batch + group * k.head + n * k.row;
  }
  const S* value_at(int64_t ib, int64_t group, int64_t n) const {
    return static_cast<const S*>(v.data) + ib * v.batch + group * v.head + n * v.row;
  }

  // Keys [n0, n1) as panels [depth, keys] or, for few queries, as rows.
  void prepare_keys(int64_t ib, int64_t group, int64_t n0, int64_t n1, C* to, C* rows) const {
    if (key_rows_) {
      if (copy_keys_)
        for (int64_t n = n0; n < n1; ++n) to_compute<S>(key_at(ib, group, n), k.column, to + (n - n0) * depth, depth);
      return;
    }
    for (int64_t n = n0; n < n1; n += kernels_.wide) {
      const int64_t columns = std::min<int64_t>(n1 - n, kernels_.wide);
      C* const panel = to + (n - n0) * depth;
      if constexpr (kSmall) {
        for (int64_t j = 0; j < columns; ++j)
          to_compute<S>(key_at(ib, group, n + j), k.column, rows + j * depth, depth);
        kernels_.pack(depth, columns, rows, 1, depth, panel);
      } else {
        kernels_.pack(depth, columns, key_at(ib, group, n), k.column, k.row, panel);
      }
    }
  }
  // Values [n0, n1) as rows of padded_depth_ elements.
  void prepare_values(int64_t ib, int64_t group, int64_t n0, int64_t n1, C* to) const {
    if (!copy_values_) return;
    for (int64_t n = n0; n < n1; ++n, to += padded_depth_) {
      to_compute<S>(value_at(ib, group, n), v.column, to, depth);
      for (int64_t d = depth; d < padded_depth_; ++d) to[d] = 0;
    }
  }

  // The mask of queries [i0, i1) and keys [n0, n1) with unit column stride; stride becomes that of its rows.
  const C* mask_block(int64_t ib, int64_t ih, int64_t i0, int64_t i1, int64_t n0, int64_t n1, C* to,
                      int64_t& stride) const {
    const int64_t start = ib * mask.batch + ih * mask.head + i0 * mask.row + n0 * mask.column;
    const int64_t columns = n1 - n0;
    stride = mask.row;
    if (mask_elements_ == 0) return static_cast<const C*>(mask.data) + start;
    stride = mask.row == 0 ? 0 : columns;
    for (int64_t i = 0; i < (mask.row == 0 ? 1 : i1 - i0); ++i) {
      C* const row = to + i * columns;
      const int64_t from = start + i * mask.row;
      if (mask_dtype == DType::kBool) {
        const auto* at = static_cast<const uint8_t*>(mask.data) + from;
        for (int64_t j = 0; j < columns; ++j) row[j] = at[j * mask.column] ? C{0} : -std::numeric_limits<C>::infinity();
      } else if (mask_dtype == kDType<S>) {
        to_compute<S>(static_cast<const S*>(mask.data) + from, mask.column, row, columns);
      } else {
        const auto* at = static_cast<const float*>(mask.data) + from;
        for (int64_t j = 0; j < columns; ++j) row[j] = static_cast<C>(at[j * mask.column]);
      }
    }
    return to;
  }

  void block_of_queries(int64_t ib, int64_t ih, int64_t group, int64_t i0, int64_t i1, const Buffers& b) const {
    const int64_t rows = i1 - i0;
    const S* from = static_cast<const S*>(q.data) + ib * q.batch + ih * q.head + i0 * q.row;
    for (int64_t i = 0; i < rows; ++i, from += q.row) {
      C* const row = b.query + i * depth;
      to_compute<S>(from, q.column, row, depth);
      softmax_.scale(row, scale, row, depth);
      b.maximum[i] = -std::numeric_limits<C>::infinity();
      b.sum[i] = 0;
    }
    // Keys that no query of the block sees are left out.
    const int64_t end = causal ? std::min(keys, i1) : keys;
    for (int64_t n0 = 0; n0 < end; n0 += block_keys_) {
      const int64_t n1 = std::min(end, n0 + block_keys_), columns = n1 - n0;
      const int64_t kept = keep_ ? n0 / block_keys_ : 0;
      C* const packed_keys = b.keys + kept * whole_lines(key_elements_);
      C* const copied_values = b.values + kept * whole_lines(value_elements_);
      if (!keep_) prepare_keys(ib, group, n0, n1, packed_keys, b.rows);
      score(ib, group, n0, columns, rows, packed_keys, b);

      SoftmaxBlock<C> block{};
      block.scores = b.scores;
      block.stride = score_stride_;
      block.rows = rows;
      block.columns = columns;
      block.padded = columns;
      block.visible = causal ? i0 + 1 - n0 : columns;
      if (mask.data) block.mask = mask_block(ib, ih, i0, i1, n0, n1, b.mask, block.mask_stride);
      block.maximum = b.maximum;
      block.sum = b.sum;
      block.correction = b.correction;
      softmax_.block(block);

      if (!keep_) prepare_values(ib, group, n0, n1, copied_values);
      const C* values = copied_values;
      int64_t value_stride = padded_depth_;
      if constexpr (kSmall)
        if (in_place_) {
          for (int64_t i = 0; i < rows; ++i) {
            C* const sums = b.sums + i * padded_depth_;
            if (n0 == 0)
              std::fill_n(sums, depth, C{0});
            else if (b.correction[i] != 1)
              softmax_.scale(sums, b.correction[i], sums, depth);
          }
          few_rows_kernels<S>().weigh(rows, columns, depth, b.scores, score_stride_, value_at(ib, group, n0), v.row,
                                      b.sums, padded_depth_);
          continue;
        }
      if constexpr (!kSmall)
        if (!copy_values_) {
          values = value_at(ib, group, n0);
          value_stride = v.row;
        }
      GemmEpilogue<C> add;
      if (n0 > 0) {
        for (int64_t i = 0; i < rows; ++i)
          if (b.correction[i] != 1)
            softmax_.scale(b.sums + i * padded_depth_, b.correction[i], b.sums + i * padded_depth_, padded_depth_);
        add = {1, 1, b.sums, padded_depth_, 1};
      }
      for (int64_t d = 0; d < padded_depth_; d += kernels_.wide) {
        kernels_.panel(rows, columns, b.scores, score_stride_, 1, values + d, value_stride,
                       std::min<int64_t>(kernels_.wide, padded_depth_ - d), add, b.sums + d, padded_depth_);
        if (add.self) add.self += kernels_.wide;
      }
    }
    finish(ib, ih, i0, rows, b, end > 0);
  }

  // scores[rows, columns] = query @ keys.
  void score(int64_t ib, int64_t group, int64_t n0, int64_t columns, int64_t rows, const C* packed,
             const Buffers& b) const {
    if constexpr (kSmall)
      if (in_place_)
        return few_rows_kernels<S>().score(rows, columns, depth, b.query, key_at(ib, group, n0), k.row, b.scores,
                                           score_stride_);
    if (key_rows_) {
      const C* keys_at = packed;
      int64_t stride = depth;
      if constexpr (!kSmall) {
        keys_at = key_at(ib, group, n0);
        stride = k.row;
      }
      return kernels_.dot(rows, columns, depth, b.query, depth, keys_at, stride, {}, b.scores, score_stride_);
    }
    // Whole panels are multiplied. Nobody reads what the zeros beyond the last key give.
    const int64_t made = keep_ ? std::min(keys - n0, block_keys_) : columns;
    for (int64_t n = 0; n < columns; n += kernels_.wide) {
      const int64_t width = kernels_.panel_width(std::min<int64_t>(kernels_.wide, made - n));
      kernels_.panel(rows, depth, b.query, depth, 1, packed + n * depth, width, width, {}, b.scores + n, score_stride_);
    }
  }

  void finish(int64_t ib, int64_t ih, int64_t i0, int64_t rows, const Buffers& b, bool any) const {
    for (int64_t i = 0; i < rows; ++i) {
      C* const row = b.sums + i * padded_depth_;
      S* const to = out + ib * out_batch + ih * out_head + (i0 + i) * out_row;
      const bool seen = any && b.sum[i] != 0;  // without keys nothing was summed up
      if (any)
        softmax_.scale(row, seen ? 1 / b.sum[i] : C{1}, row, depth);
      else
        std::fill_n(row, depth, C{0});
      if (out_column == 1) {
        if constexpr (std::is_same_v<S, C>)
          std::memcpy(to, row, static_cast<size_t>(depth) * sizeof(S));
        else if constexpr (std::is_same_v<S, Half>)
          half_from_float(row, to, depth);
        else
          bfloat16_from_float(row, to, depth);
      } else {
        for (int64_t d = 0; d < depth; ++d) to[d * out_column] = static_cast<S>(row[d]);
      }
      logsumexp[(ib * queries + i0 + i) * heads + ih] = seen ? (b.maximum[i] + std::log(b.sum[i])) : C{0};
    }
  }

  static constexpr int64_t kLine = 64 / sizeof(C);
  const GemmKernels<C>& kernels_ = gemm_kernels<C>();
  const SoftmaxKernels<C>& softmax_ = softmax_kernels<C>();
  int64_t block_queries_, query_blocks_, block_keys_, blocks_, padded_keys_, score_stride_, padded_depth_;
  int64_t key_elements_, value_elements_, mask_elements_;
  bool key_rows_;   // keys are read as rows, for few queries
  bool in_place_;   // and values too, of a half type as they are
  bool copy_keys_;  // those rows are converted
  bool copy_values_;
  bool keep_;  // keys and values of a head are prepared once
};

}  // namespace

namespace cpu {

std::array<Tensor, 2> _scaled_dot_product_flash_attention_for_cpu(const Tensor& query, const Tensor& key,
                                                                  const Tensor& value, double dropout_p, bool is_causal,
                                                                  const Tensor* attn_mask,
                                                                  std::optional<double> scale) {
  SCONCE_CHECK(is_floating(query.dtype()), kInvalidArgument, kName,
               ": Expected data type in FP32, FP64, BF16, FP16, but got ", dtype_name(query.dtype()));
  for (const Tensor* t : {&query, &key, &value}) {
    SCONCE_CHECK(t->dim() == 4, kInvalidArgument, kName, ": Accept only 4 dims inputs shape of {B, H, T, K}, not ",
                 to_string(t->sizes()));
    SCONCE_CHECK(t->is_cpu() && t->layout() == Layout::kStrided, kInvalidArgument, kName,
                 ": strided CPU tensors are needed");
    SCONCE_CHECK(t->dtype() == query.dtype(), kInvalidArgument, kName, ": expected dtype ", dtype_name(query.dtype()),
                 " but found ", dtype_name(t->dtype()));
  }
  SCONCE_CHECK(dropout_p == 0, kUnsupported, kName, ": Currently do not support dropout > 0");
  SCONCE_CHECK(query.size(3) == key.size(3) && key.size(3) == value.size(3), kInvalidArgument, kName,
               ": Q/K/V should have the same head size, not ", query.size(3), ", ", key.size(3), ", ", value.size(3));
  const int64_t groups = key.size(1);
  SCONCE_CHECK(key.size(0) == query.size(0) && value.size(0) == query.size(0) && value.size(1) == groups &&
                   value.size(2) == key.size(2) &&
                   (groups == query.size(1) || (groups > 0 && query.size(1) % groups == 0)),
               kInvalidArgument, kName, ": key ", to_string(key.sizes()), " and value ", to_string(value.sizes()),
               " do not match query ", to_string(query.sizes()));
  if (attn_mask) {
    SCONCE_CHECK(attn_mask->dim() == 2 || attn_mask->dim() == 4, kInvalidArgument, kName,
                 ": Attention mask dim in {2, 4}, not ", attn_mask->dim());
    SCONCE_CHECK(attn_mask->dtype() == query.dtype() || attn_mask->dtype() == DType::kFloat32 ||
                     attn_mask->dtype() == DType::kBool,
                 kInvalidArgument, kName, ": Attention mask is the same data type as query, float or bool, not ",
                 dtype_name(attn_mask->dtype()));
    SCONCE_CHECK(attn_mask->is_cpu() && attn_mask->layout() == Layout::kStrided, kInvalidArgument, kName,
                 ": strided CPU tensors are needed");
  }

  const DType sums = query.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2);
  Tensor out = empty_like(query);
  const int64_t sizes[] = {batch, heads, queries}, strides[] = {queries * heads, 1, heads};
  Tensor logsumexp = Tensor::empty_strided(sizes, strides, sums);

  const auto run = [&]<class S>() {
    Attention<S> a;
    a.batch = batch;
    a.heads = heads;
    a.groups = groups;
    a.queries = queries;
    a.keys = key.size(2);
    a.depth = query.size(3);
    a.q = view(query);
    a.k = view(key);
    a.v = view(value);
    if (attn_mask && attn_mask->numel() > 0) {
      const Tensor& m = *attn_mask;
      const int64_t full[] = {batch, heads, queries, a.keys}, first = 4 - m.dim();
      int64_t s[4] = {};
      for (int64_t d = 0; d < m.dim(); ++d) {
        SCONCE_CHECK(m.size(d) == 1 || m.size(d) == full[first + d], kInvalidArgument, kName, ": mask of sizes ",
                     to_string(m.sizes()), " cannot be expanded to ", to_string(full));
        s[first + d] = m.size(d) == 1 ? 0 : m.stride(d);
      }
      a.mask = {m.data(), s[0], s[1], s[2], s[3]};
      a.mask_dtype = m.dtype();
    }
    a.causal = is_causal;
    using C = ComputeType<S>;
    a.scale = static_cast<C>(scale ? *scale : 1 / std::sqrt(static_cast<double>(a.depth)));
    a.out = out.data_as<S>();
    a.out_batch = out.stride(0);
    a.out_head = out.stride(1);
    a.out_row = out.stride(2);
    a.out_column = out.stride(3);
    a.logsumexp = logsumexp.data_as<C>();
    a.run();
  };
  switch (query.dtype()) {
    case DType::kFloat32:
      run.template operator()<float>();
      break;
    case DType::kFloat64:
      run.template operator()<double>();
      break;
    case DType::kFloat16:
      run.template operator()<Half>();
      break;
    default:
      run.template operator()<BFloat16>();
  }
  return {std::move(out), std::move(logsumexp)};
}

}  // namespace cpu
}  // namespace sconce
