#include "package_format/wrapper/rows/operator_rows.h"

#include <algorithm>

namespace sconce::rows {
namespace {

using Kind = BatchPlace::Kind;

BatchPlace nowhere() { return {.kind = Kind::kNowhere}; }
BatchPlace unclear() { return {}; }
BatchPlace moved(BatchPlace place, size_t dimension) {
  place.dimension = dimension;
  return place;
}

class Operator {
 public:
  Operator(std::string_view name, const std::vector<OperatorArgument>& arguments, RowState& state)
      : name(name), arguments_(arguments), state_(state) {}

  const std::string_view name;

  const View* tensor(size_t i) const { return i < arguments_.size() ? arguments_[i].tensor : nullptr; }
  size_t rank(size_t i) const { return tensor(i) ? tensor(i)->sizes.size() : 0; }
  // Absent tensors count as the same for all rows.
  BatchPlace place(size_t i) const { return tensor(i) ? state_.place_of(*tensor(i)) : nowhere(); }
  bool shared(size_t i) const { return place(i).kind == Kind::kNowhere; }
  std::optional<int64_t> integer(size_t i) const {
    return i < arguments_.size() ? arguments_[i].integer : std::nullopt;
  }
  // Lists are followed by their length.
  const std::vector<int64_t>& list(size_t i) const {
    static const std::vector<int64_t> kNone;
    return i < arguments_.size() ? arguments_[i].list : kNone;
  }
  size_t count() const { return arguments_.size(); }
  size_t outputs() const {
    return static_cast<size_t>(
        std::count_if(arguments_.begin(), arguments_.end(), [](const OperatorArgument& each) { return each.output; }));
  }
  Atoms& atoms() const { return state_.atoms(); }

 private:
  const std::vector<OperatorArgument>& arguments_;
  RowState& state_;
};

// The batch dimension of the result of an elementwise operator. `rank` is the result's; shapes align at their last
// dimensions.
BatchPlace merged(const BatchPlace& a, size_t rank_a, const BatchPlace& b, size_t rank_b, size_t rank) {
  if (a.kind == Kind::kUnclear || b.kind == Kind::kUnclear || rank_a > rank || rank_b > rank) return unclear();
  BatchPlace x = a, y = b;
  x.dimension += rank - rank_a;
  y.dimension += rank - rank_b;
  if (a.kind == Kind::kNowhere) return b.kind == Kind::kNowhere ? b : y;
  if (b.kind == Kind::kNowhere) return x;
  return x == y ? x : unclear();
}

// [n, k] x [k, m]
BatchPlace product(const BatchPlace& a, const BatchPlace& b) {
  if (a.kind == Kind::kNowhere && b.kind == Kind::kNowhere) return a;
  if (a.kind == Kind::kDimension && a.dimension == 0 && b.kind == Kind::kNowhere) return a;
  if (b.kind == Kind::kDimension && b.dimension == 1 && a.kind == Kind::kNowhere) return b;
  return unclear();
}

// [s, n, k] x [s, k, m]
BatchPlace products(const BatchPlace& a, const BatchPlace& b) {
  if (a.kind == Kind::kUnclear || b.kind == Kind::kUnclear) return unclear();
  if (a.kind == Kind::kNowhere && b.kind == Kind::kNowhere) return a;
  if (a.kind == Kind::kDimension && b.kind == Kind::kDimension) return a.dimension == 0 && a == b ? a : unclear();
  const BatchPlace& one = a.kind == Kind::kDimension ? a : b;
  const size_t summed = a.kind == Kind::kDimension ? 2 : 1;
  return one.dimension == summed ? unclear() : one;
}

BatchPlace mm(const Operator& op) { return product(op.place(1), op.place(2)); }
BatchPlace bmm(const Operator& op) { return products(op.place(1), op.place(2)); }
BatchPlace addmm(const Operator& op) {
  return merged(product(op.place(2), op.place(3)), 2, op.place(1), op.rank(1), 2);
}
BatchPlace baddbmm(const Operator& op) {
  return merged(products(op.place(2), op.place(3)), 3, op.place(1), op.rank(1), 3);
}

struct Rule {
  std::string_view name;
  OperatorResults (*apply)(const Operator&);
};

OperatorResults same(const Operator& op, const BatchPlace& place) {
  OperatorResults results{.known = true, .list = {}};
  results.list.resize(op.outputs(), {.place = place, .sizes = {}});
  return results;
}

// The batch in the first dimension of samples; weights and biases are the same for all.
BatchPlace samples(const Operator& op, size_t input, std::initializer_list<size_t> weights) {
  const BatchPlace place = op.place(input);
  if (place.kind == Kind::kUnclear || (place.kind == Kind::kDimension && place.dimension != 0)) return unclear();
  for (const size_t weight : weights)
    if (!op.shared(weight)) return unclear();
  return place;
}

// (input, weight, bias, stride, n, padding, n, dilation, n, transposed, output_padding, n, groups)
OperatorResults convolution(const Operator& op) {
  OperatorResults results = same(op, samples(op, 0, {1, 2}));
  const View *input = op.tensor(0), *weight = op.tensor(1);
  const size_t rank = op.rank(0);
  if (!weight || rank < 3 || op.rank(1) != rank || op.integer(9) != 0 || results.list.empty()) return results;
  std::vector<Polynomial> sizes{input->sizes[0], weight->sizes[0]};
  for (size_t d = 0; d + 2 < rank; ++d) {
    if (op.list(3).size() != rank - 2 || op.list(5).size() != rank - 2 || op.list(7).size() != rank - 2) return results;
    const Polynomial reach = (weight->sizes[d + 2] - Polynomial(1)) * Polynomial(op.list(7)[d]) + Polynomial(1);
    const Polynomial room = input->sizes[d + 2] + Polynomial(2 * op.list(5)[d]) - reach;
    sizes.push_back(op.atoms().quotient(room, Polynomial(op.list(3)[d])) + Polynomial(1));
  }
  results.list[0].sizes = std::move(sizes);
  return results;
}

// mkldnn: (input, weight, bias, ...)
OperatorResults packed_convolution(const Operator& op) { return same(op, samples(op, 0, {1, 2})); }
// (input, other, weight, bias, ...)
OperatorResults packed_convolution_binary(const Operator& op) {
  const BatchPlace place = samples(op, 0, {2, 3});
  return same(op, merged(place, op.rank(0), op.place(1), op.rank(1), op.rank(0)));
}
// (other, input, weight, bias, ...): the result is added to `other`.
OperatorResults packed_convolution_added(const Operator& op) {
  const BatchPlace place = samples(op, 1, {2, 3});
  OperatorResults results{.known = true, .written = 0, .list = {}};
  results.list.push_back({merged(place, op.rank(1), op.place(0), op.rank(0), op.rank(1)), {}});
  return results;
}

BatchPlace linear_place(const Operator& op, size_t weight, size_t bias) {
  const BatchPlace place = op.place(0);
  if (!op.shared(weight) || !op.shared(bias)) return unclear();
  return place.kind == Kind::kDimension && place.dimension + 1 >= op.rank(0) ? unclear() : place;
}
OperatorResults linear(const Operator& op) { return same(op, linear_place(op, 1, 2)); }
OperatorResults linear_binary(const Operator& op) {
  const BatchPlace place = linear_place(op, 2, 3);
  return same(op, merged(place, op.rank(0), op.place(1), op.rank(1), op.rank(0)));
}
// mkl: (input, packed weight, weight, bias, prepack batch size)
OperatorResults mkl_linear(const Operator& op) {
  return op.shared(1) ? same(op, linear_place(op, 2, 3)) : same(op, unclear());
}

// (query, key, value, dropout, causal, mask, scale, output, logsumexp): [batch, heads, places, size]
OperatorResults attention(const Operator& op) {
  BatchPlace place = nowhere();
  for (const size_t i : {0, 1, 2, 5}) place = merged(place, 4, op.place(i), op.tensor(i) ? op.rank(i) : 4, 4);
  if (place.kind == Kind::kDimension && place.dimension > 1) place = unclear();
  OperatorResults results = same(op, place);
  if (op.tensor(0) && op.rank(0) == 4 && !results.list.empty()) results.list[0].sizes = op.tensor(0)->sizes;
  return results;
}

// Results that depend on all elements along one dimension; `dropped`: and do not have it.
OperatorResults along(const Operator& op, size_t argument, bool dropped) {
  BatchPlace place = op.place(0);
  const std::optional<int64_t> dim = op.integer(argument);
  const auto rank = static_cast<int64_t>(op.rank(0));
  if (!dim || *dim < -rank || *dim >= rank) return same(op, unclear());
  const auto along = static_cast<size_t>(*dim < 0 ? *dim + rank : *dim);
  if (place.kind == Kind::kDimension) {
    if (place.dimension == along) return same(op, unclear());
    if (dropped && along < place.dimension) --place.dimension;
  }
  return same(op, place);
}
OperatorResults along_first_argument(const Operator& op) { return along(op, 1, false); }
OperatorResults along_second_argument(const Operator& op) { return along(op, 2, false); }
OperatorResults reduced_along(const Operator& op) { return along(op, 1, op.integer(2) == 0); }
OperatorResults kth_along(const Operator& op) { return along(op, 2, op.integer(3) == 0); }

// (input, four weights, h, c, reverse, batch_sizes, n, mode, hidden, layers, biases, bidirectional, batch_first, train)
// with input [places, batch, size]
OperatorResults recurrent_layer(const Operator& op) {
  const BatchPlace place = op.place(0);
  if (op.integer(15) != 0 || place.kind != Kind::kDimension || place.dimension != 1) return same(op, unclear());
  for (const size_t i : {1, 2, 3, 4})
    if (!op.shared(i)) return same(op, unclear());
  for (const size_t i : {5, 6})
    if (!op.shared(i) && op.place(i) != place) return same(op, unclear());
  return same(op, place);
}

OperatorResults transformed(const Operator& op) {
  const BatchPlace place = op.place(0);
  const auto rank = static_cast<int64_t>(op.rank(0));
  if (op.list(1).empty()) return same(op, unclear());
  for (const int64_t dim : op.list(1))
    if (place.kind == Kind::kDimension && static_cast<size_t>(dim < 0 ? dim + rank : dim) == place.dimension)
      return same(op, unclear());
  return same(op, place);
}

OperatorResults permuted(const Operator& op) {
  BatchPlace place = op.place(0);
  const std::vector<int64_t>& dims = op.list(1);
  if (dims.size() != op.rank(0)) return same(op, unclear());
  if (place.kind != Kind::kDimension) return same(op, place);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = dims[i] < 0 ? dims[i] + static_cast<int64_t>(dims.size()) : dims[i];
    if (static_cast<size_t>(dim) == place.dimension) return same(op, moved(place, i));
  }
  return same(op, unclear());
}

OperatorResults elementwise(const Operator& op) {
  size_t rank = 0;
  for (size_t i = 0; i < op.count(); ++i) rank = std::max(rank, op.rank(i));
  BatchPlace place = nowhere();
  for (size_t i = 0; i < op.count(); ++i)
    if (op.tensor(i)) place = merged(place, rank, op.place(i), op.rank(i), rank);
  return same(op, place);
}

// Checks of values: a failed check ends the run, and its requests run again in halves.
OperatorResults checked(const Operator&) { return {.known = true, .list = {}}; }

OperatorResults viewed(const Operator& op) { return same(op, op.place(0)); }

// Boundaries are the same for all rows.
OperatorResults bucketed(const Operator& op) { return op.shared(1) ? same(op, op.place(0)) : same(op, unclear()); }

// Pictures and volumes with all dimensions, [batch, channels, ...].
OperatorResults spatial(const Operator& op) {
  const size_t dimensions = op.name.find("1d") != std::string_view::npos   ? 1
                            : op.name.find("2d") != std::string_view::npos ? 2
                                                                           : 3;
  return same(op, op.rank(0) == dimensions + 2 ? samples(op, 0, {}) : unclear());
}

// [batch.., n, m] and [batch.., k, m]
OperatorResults distances(const Operator& op) {
  const BatchPlace a = op.place(0), b = op.place(1);
  const size_t rank = op.rank(0);
  if (a.kind == Kind::kUnclear || b.kind == Kind::kUnclear || rank < 2 || op.rank(1) != rank)
    return same(op, unclear());
  if (a.kind == Kind::kDimension && a.dimension + 1 == rank) return same(op, unclear());
  if (b.kind == Kind::kNowhere) return same(op, a);
  if (b.dimension + 1 == rank) return same(op, unclear());
  if (a.kind == Kind::kNowhere) return same(op, b.dimension + 2 == rank ? moved(b, rank - 1) : b);
  return same(op, a == b && a.dimension + 2 < rank ? a : unclear());
}

constexpr Rule kRules[] = {
    {"convolution", convolution},
    {"mkldnn__convolution_pointwise", packed_convolution},
    {"mkldnn__convolution_transpose_pointwise", packed_convolution},
    {"mkldnn__convolution_pointwise_binary", packed_convolution_binary},
    {"mkldnn__convolution_pointwise_binary_", packed_convolution_added},
    {"_linear_pointwise", linear},
    {"mkldnn__linear_pointwise", linear},
    {"_linear_pointwise_binary", linear_binary},
    {"mkldnn__linear_pointwise_binary", linear_binary},
    {"_mkl_linear", mkl_linear},
    {"mkl__mkl_linear", mkl_linear},
    {"_weight_int8pack_mm", linear},
    {"_scaled_dot_product_flash_attention_for_cpu", attention},
    {"_softmax", along_first_argument},
    {"_log_softmax", along_first_argument},
    {"cumsum", along_first_argument},
    {"cumprod", along_first_argument},
    {"logcumsumexp", along_first_argument},
    {"cummax", along_first_argument},
    {"cummin", along_first_argument},
    {"sort", along_first_argument},
    {"sort_stable", along_second_argument},
    {"topk", along_second_argument},
    {"mode", reduced_along},
    {"median_dim", reduced_along},
    {"nanmedian_dim", reduced_along},
    {"kthvalue", kth_along},
    {"mkldnn_rnn_layer", recurrent_layer},
    {"_fft_r2c", transformed},
    {"_fft_c2r", transformed},
    {"_fft_c2c", transformed},
    {"permute", permuted},
    {"abs", elementwise},
    {"angle", elementwise},
    {"add_Tensor", elementwise},
    {"add_Scalar", elementwise},
    {"mul_Tensor", elementwise},
    {"mul_Scalar", elementwise},
    {"gcd", elementwise},
    {"polar", elementwise},
    {"_assert_async", checked},
    {"_assert_async_msg", checked},
    {"check_inf_and_nan", checked},
    {"view_as_real", viewed},
    {"view_as_complex", viewed},
    {"bucketize_Tensor", bucketed},
    {"_cdist_forward", distances},
    {"_adaptive_avg_pool2d", spatial},
    {"_adaptive_avg_pool3d", spatial},
    {"adaptive_max_pool2d", spatial},
    {"adaptive_max_pool3d", spatial},
    {"avg_pool3d", spatial},
    {"max_pool3d_with_indices", spatial},
    {"upsample_linear1d", spatial},
    {"upsample_trilinear3d", spatial},
    {"upsample_bicubic2d", spatial},
    {"upsample_nearest2d", spatial},
    {"upsample_bilinear2d", spatial},
};

struct WritingRule {
  std::string_view name;
  BatchPlace (*apply)(const Operator&);
};

constexpr WritingRule kWriting[] = {{"mm_out", mm}, {"bmm_out", bmm}, {"addmm_out", addmm}, {"baddbmm_out", baddbmm}};

}  // namespace

OperatorResults operator_rows(std::string_view name, const std::vector<OperatorArgument>& arguments, RowState& state) {
  const Operator op(name, arguments, state);
  for (const WritingRule& rule : kWriting)
    if (rule.name == name) return {.known = true, .written = 0, .list = {{rule.apply(op), {}}}};
  for (const Rule& rule : kRules)
    if (rule.name == name) return rule.apply(op);
  return {};
}

}  // namespace sconce::rows
