#include "src/cpu/matmul/gemm/onednn_matmul.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "src/cpu/onednn/onednn_weight.h"
#include "src/cpu/onednn/plan_table.h"
#include "src/device/cpu_isa.h"
#include "src/device/threads.h"

namespace sconce::onednn {
namespace {

using dnnl::memory;

// All that a primitive depends on.
class Key {
 public:
  void add(int64_t word) noexcept { words_[count_++] = word; }
  void add(const MatrixView& view) noexcept {
    add(view.data ? 1 : 0);
    add(view.batch_stride);
    add(view.row_stride);
    add(view.column_stride);
  }
  uint64_t hash() const noexcept { return hash_words(words_); }
  friend bool operator==(const Key&, const Key&) noexcept = default;

 private:
  std::array<int64_t, 32> words_{};
  size_t count_ = 0;
};

struct Plan {
  Primitive primitive;
  WeightLayout weight;
};

template <int kUser>  // one table per use
struct TaggedPlan : Plan {};

// [batch, rows, columns]; a stride of 0 is a dimension of size 1.
memory::desc desc(DType dtype, int64_t batch, int64_t rows, int64_t columns, int64_t batch_stride, int64_t row_stride,
                  int64_t column_stride) {
  if (row_stride == 0) rows = 1;
  if (column_stride == 0) columns = 1;
  row_stride = std::max<int64_t>(row_stride, 1);
  column_stride = std::max<int64_t>(column_stride, 1);
  // Some of the library's kernels look at the stride of a single matrix too.
  if (batch == 1 || batch_stride == 0) {
    batch = 1;
    batch_stride = std::max(rows * row_stride, columns * column_stride);
  }
  return {{batch, rows, columns}, data_type(dtype), {batch_stride, row_stride, column_stride}};
}

dnnl::matmul::primitive_desc describe(const memory::desc& a, const memory::desc& b, const memory::desc* bias,
                                      const memory::desc& c, const dnnl::primitive_attr& attr) {
  const dnnl::matmul::desc d = bias ? dnnl::matmul::desc(a, b, *bias, c) : dnnl::matmul::desc(a, b, c);
  dnnl::matmul::primitive_desc result(d, attr, engine(), true);
  if (result && !is_fast(result.impl_info_str())) result = {};
  return result;
}

Primitive primitive(const dnnl::matmul::primitive_desc& d) { return {d, dnnl::matmul(d)}; }

bool fits(const MatrixProduct& p) {
  const bool b_rows = p.b.column_stride == 1 && p.b.row_stride >= p.n;
  const bool b_columns = p.b.row_stride == 1 && p.b.column_stride >= p.k;
  return p.k > 0 && p.n > 1 && p.a.column_stride == 1 && p.a.row_stride >= p.k && (b_rows || b_columns) &&
         p.c_column_stride == 1 && p.c_row_stride >= p.n;
}

// What oneDNN 2.6 gets wrong on AMX, as random shapes show: steps that do not fill its registers of 4 bytes (what lies
// behind the last one counts), and bfloat16 of 49 to 63 columns on several threads.
bool is_sound(DType dtype, int64_t n, int64_t k) {
  return dtype == DType::kFloat32 || (k % static_cast<int64_t>(4 / dtype_bytes(dtype)) == 0 && (n <= 48 || n >= 64));
}

double work(const MatrixProduct& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

// Whether B is put into the library's order once: a constant whose plain form needs no memory meanwhile. Products on
// AMX would wait longer for the order than they take. Without AMX, our kernels keep such constants for few rows, and
// for many the order makes no difference.
bool is_kept(const MatrixProduct& p) {
  const int64_t bytes = p.k * p.n * static_cast<int64_t>(dtype_bytes(p.dtype));
  const bool amx = p.dtype == DType::kBFloat16 && has_amx_bf16();
  return p.b_constant && p.b_constant->has_source() && p.batch == 1 && bytes >= kMinPackedBytes &&
         worth(amx ? 1 : 0.5, 1);
}

}  // namespace

bool matrix_product(const MatrixProduct& p, bool ours_is_faster) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const bool bfloat16 = p.dtype == DType::kBFloat16;
  const double least = ours_is_faster && !(bfloat16 && has_amx_bf16()) ? kNever
                       : bfloat16                                      ? kProductBFloat16
                                                                       : kProductFloat;
  if (!suits(p.dtype) || !worth(p.m < kProductRows ? 0 : work(p), least) || !fits(p) || !is_sound(p.dtype, p.n, p.k))
    return false;
  // The addend: the content of C, a matrix in the layout of C, or one row for all rows.
  const bool with_self = p.self.data && p.beta != 0;
  const bool in_place = with_self && p.self.data == p.c && p.self.row_stride == p.c_row_stride &&
                        p.self.column_stride == 1 && p.self.batch_stride == p.c_batch_stride;
  const bool row = with_self && p.self.row_stride == 0 && p.self.batch_stride == 0 && p.self.column_stride == 1;
  if (with_self && !in_place && !(row && p.beta == 1 && p.alpha == 1)) return false;
  if (!available()) return false;

  const bool kept = is_kept(p);
  Key key;
  for (const int64_t word : {static_cast<int64_t>(p.dtype), p.batch, p.m, p.n, p.k, int64_t{kept}}) key.add(word);
  key.add(p.a);
  key.add(p.b);
  for (const int64_t word : {p.c_batch_stride, p.c_row_stride, int64_t{kernel_threads()}, int64_t{in_place ? 2 : row}})
    key.add(word);
  key.add(std::bit_cast<int64_t>(p.alpha));
  key.add(in_place ? std::bit_cast<int64_t>(p.beta) : 0);
  const Plan& plan = PlanTable<TaggedPlan<0>, Key>::get(key, [&] {
    set_threads();
    const memory::desc a = desc(p.dtype, p.batch, p.m, p.k, p.a.batch_stride, p.a.row_stride, 1);
    const memory::desc b = desc(p.dtype, p.batch, p.k, p.n, p.b.batch_stride, p.b.row_stride, p.b.column_stride);
    const memory::desc c = desc(p.dtype, p.batch, p.m, p.n, p.c_batch_stride, p.c_row_stride, 1);
    const memory::desc bias = desc(p.dtype, 1, 1, p.n, 0, 0, 1);
    dnnl::post_ops ops;
    fuse({}, in_place ? p.beta : 0, nullptr, ops);
    dnnl::primitive_attr attr = attributes(ops);
    if (p.alpha != 1) attr.set_output_scales(0, {static_cast<float>(p.alpha)});
    TaggedPlan<0> made;
    const memory::desc any({1, p.k, p.n}, data_type(p.dtype), memory::format_tag::any);
    const auto d = describe(a, kept ? any : b, row ? &bias : nullptr, c, attr);
    if (!d) return made;
    if (kept) made.weight = WeightLayout(b, d.weights_desc());
    made.primitive = primitive(d);
    made.primitive.add(DNNL_ARG_SRC, a);
    made.primitive.add(DNNL_ARG_WEIGHTS, d.weights_desc());
    made.primitive.add(DNNL_ARG_DST, c);
    if (row) made.primitive.add(DNNL_ARG_BIAS, bias);
    return made;
  });
  if (!plan.primitive.usable()) return false;
  const void* const data[] = {p.a.data, p.b.data, p.c, p.self.data};
  dnnl_memory_t own[2] = {nullptr, nullptr};
  if (kept && !(own[1] = kept_weight(*p.b_constant, p.b.data, plan.weight, Hold::kOnce))) return false;
  plan.primitive.run(std::span(data).first(row ? 4 : 3), own);
  return true;
}

bool int8_matrix_product(bool a_is_signed, const MatrixProduct& p) {
  const DType a_dtype = a_is_signed ? DType::kInt8 : DType::kUInt8;
  if (!suits(a_dtype) || !worth(work(p), kProductInt8) || !fits(p) || !is_sound(a_dtype, p.n, p.k) || p.batch != 1 ||
      !available())
    return false;
  Key key;
  for (const int64_t word : {int64_t{a_is_signed}, p.m, p.n, p.k, p.a.row_stride, p.b.row_stride, p.b.column_stride,
                             p.c_row_stride, int64_t{kernel_threads()}})
    key.add(word);
  const Plan& plan = PlanTable<TaggedPlan<1>, Key>::get(key, [&] {
    set_threads();
    const memory::desc a = desc(a_dtype, 1, p.m, p.k, 0, p.a.row_stride, 1);
    const memory::desc b = desc(DType::kInt8, 1, p.k, p.n, 0, p.b.row_stride, p.b.column_stride);
    const memory::desc c = desc(DType::kInt32, 1, p.m, p.n, 0, p.c_row_stride, 1);
    TaggedPlan<1> made;
    const auto d = describe(a, b, nullptr, c, attributes({}));
    if (!d) return made;
    made.primitive = primitive(d);
    made.primitive.add(DNNL_ARG_SRC, a);
    made.primitive.add(DNNL_ARG_WEIGHTS, b);
    made.primitive.add(DNNL_ARG_DST, c);
    return made;
  });
  if (!plan.primitive.usable()) return false;
  const void* const data[] = {p.a.data, p.b.data, p.c};
  plan.primitive.run(data);
  return true;
}

bool linear_layer(const LinearLayer& l) {
  const double least = l.dtype == DType::kFloat32 ? kProductFloat : kProductBFloat16;
  const double products = static_cast<double>(l.m) * static_cast<double>(l.n) * static_cast<double>(l.k);
  if (!suits(l.dtype) || !worth(l.m < kProductRows ? 0 : products, least) || !is_sound(l.dtype, l.n, l.k)) return false;
  const DType weight_dtype = l.blocked ? l.blocked->dtype : l.dtype;
  if (!l.constant || weight_dtype != l.dtype || l.n < 2) return false;
  const bool columns = l.weight_in == 1 && l.weight_out >= l.k, rows = l.weight_out == 1 && l.weight_in >= l.n;
  if (!l.blocked && !rows && !columns) return false;
  if (l.bias && ((l.bias->dtype() != l.dtype && l.bias->dtype() != DType::kFloat32) || l.bias->stride(0) != 1))
    return false;
  if (!available()) return false;

  Key key;
  const Fusion& f = l.fusion;
  for (const int64_t word :
       {static_cast<int64_t>(l.dtype), l.m, l.n, l.k, l.weight_out, l.weight_in,
        static_cast<int64_t>(l.blocked ? l.blocked->layout_hash : 0), int64_t{kernel_threads()},
        l.bias ? static_cast<int64_t>(l.bias->dtype()) : -1, static_cast<int64_t>(f.activation),
        static_cast<int64_t>(f.combination), static_cast<int64_t>(std::bit_cast<int32_t>(f.a)),
        static_cast<int64_t>(std::bit_cast<int32_t>(f.b)), int64_t{l.other != nullptr}, l.other_row, l.other_column})
    key.add(word);
  const Plan& plan = PlanTable<TaggedPlan<2>, Key>::get(key, [&] {
    set_threads();
    TaggedPlan<2> made;
    const memory::dims a_dims{l.m, l.k}, b_dims{l.k, l.n}, c_dims{l.m, l.n};
    const memory::desc a(a_dims, data_type(l.dtype), memory::dims{l.k, 1});
    const memory::desc c(c_dims, data_type(l.dtype), memory::dims{l.n, 1});
    memory::desc has(b_dims, data_type(l.dtype), memory::dims{std::max<int64_t>(l.weight_in, 1), l.weight_out});
    if (l.blocked) {
      const auto blocks = blocked_desc(*l.blocked, true);
      if (!blocks) return made;
      has = *blocks;
    }
    const memory::desc bias({1, l.n}, data_type(l.bias ? l.bias->dtype() : l.dtype), memory::dims{l.n, 1});
    const memory::desc other({l.other_row ? l.m : 1, l.other_column ? l.n : 1}, data_type(l.dtype),
                             memory::dims{std::max<int64_t>(l.other_row, 1), 1});
    dnnl::post_ops ops;
    if (!fuse(f, 0, l.other ? &other : nullptr, ops)) return made;
    const dnnl::primitive_attr attr = attributes(ops);
    auto d = describe(a, has, l.bias ? &bias : nullptr, c, attr);
    if (!d)
      d = describe(a, memory::desc(b_dims, data_type(l.dtype), memory::format_tag::any), l.bias ? &bias : nullptr, c,
                   attr);
    if (!d) return made;
    made.weight = WeightLayout(has, d.weights_desc());
    made.primitive = primitive(d);
    made.primitive.add(DNNL_ARG_SRC, a);
    made.primitive.add(DNNL_ARG_WEIGHTS, d.weights_desc());
    made.primitive.add(DNNL_ARG_DST, c);
    if (l.bias) made.primitive.add(DNNL_ARG_BIAS, bias);
    if (l.other) made.primitive.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, other);
    return made;
  });
  if (!plan.primitive.usable()) return false;
  std::array<const void*, 5> data{l.input, nullptr, l.output};
  size_t count = 3;
  if (l.bias) data[count++] = l.bias->data();
  if (l.other) data[count++] = l.other;
  const dnnl_memory_t own[2] = {nullptr, kept_weight(*l.constant, l.weight, plan.weight)};
  plan.primitive.run(std::span(data).first(count), own);
  return true;
}

}  // namespace sconce::onednn
