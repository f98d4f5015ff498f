#include "src/cuda/attention/attention_graph.h"

#include <array>
#include <limits>

namespace sconce::cuda {

std::unique_ptr<DnnGraph> attention_graph(const AttentionForm& form) {
  using Four = std::array<int64_t, 4>;
  auto made = std::make_unique<DnnGraph>();
  DnnGraph& graph = *made;
  const auto strides = [](const int64_t(&by)[3]) { return Four{by[0], by[1], by[2], 1}; };
  const auto q = graph.tensor(form.type, Four{form.batch, form.heads, form.queries, form.d}, strides(form.q_strides));
  // Transposed, because the product needs [d, keys].
  const auto k = graph.tensor(form.type, Four{form.batch, form.kv_heads, form.d, form.keys},
                              Four{form.k_strides[0], form.k_strides[1], 1, form.k_strides[2]});
  const auto v = graph.tensor(form.type, Four{form.batch, form.kv_heads, form.keys, form.dv}, strides(form.v_strides));
  const auto out =
      graph.tensor(form.type, Four{form.batch, form.heads, form.queries, form.dv}, strides(form.out_strides));
  const Four all{form.batch, form.heads, form.queries, form.keys}, rows{form.batch, form.heads, form.queries, 1};
  const auto of_all = [&](cudnnDataType_t type = CUDNN_DATA_FLOAT) { return graph.between(type, all); };
  const auto of_rows = [&] { return graph.between(CUDNN_DATA_FLOAT, rows); };

  auto scores = of_all();
  graph.matmul(q, k, scores);
  const auto scaled = of_all();
  graph.binary(CUDNN_POINTWISE_MUL, scores, graph.number(form.scale, 4), scaled);
  scores = scaled;
  if (form.biased) {
    const auto& by = form.bias_strides;
    const Four sizes{by[0] ? form.batch : 1, by[1] ? form.heads : 1, by[2] ? form.queries : 1, form.keys};
    // A broadcast dimension gets the stride that packed rows at multiples of 16 bytes would have.
    const int64_t row = by[2] ? by[2] : (form.keys + 7) / 8 * 8, head = by[1] ? by[1] : row * sizes[2];
    const auto bias = graph.tensor(form.type, sizes, Four{by[0] ? by[0] : head * sizes[1], head, row, 1});
    const auto added = of_all();
    graph.binary(CUDNN_POINTWISE_ADD, scores, bias, added);
    scores = added;
  }
  if (form.causal) {
    const auto row = of_all(CUDNN_DATA_INT32), column = of_all(CUDNN_DATA_INT32), seen = of_all(CUDNN_DATA_BOOLEAN),
               masked = of_all();
    graph.positions(scores, 2, row);
    graph.positions(scores, 3, column);
    graph.binary(CUDNN_POINTWISE_CMP_GE, row, column, seen, CUDNN_DATA_BOOLEAN);
    graph.select(scores, graph.number(-std::numeric_limits<float>::infinity(), 4), seen, masked);
    scores = masked;
  }
  const auto most = of_rows(), moved = of_all(), powers = of_all(), sum = of_rows();
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  graph.binary(CUDNN_POINTWISE_SUB, scores, most, moved);
  graph.unary(CUDNN_POINTWISE_EXP, moved, powers);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  // Required: cuDNN matches a pattern that contains it.
  const auto logarithm = of_rows();
  const auto logsumexp =
      form.logsumexp_rows > 0
          ? graph.tensor(CUDNN_DATA_FLOAT, rows, Four{form.heads * form.logsumexp_rows, form.logsumexp_rows, 1, 1})
          : of_rows();
  graph.unary(CUDNN_POINTWISE_LOG, sum, logarithm);
  graph.binary(CUDNN_POINTWISE_ADD, most, logarithm, logsumexp);
  const auto probabilities = graph.between(form.type, all);
  graph.binary(CUDNN_POINTWISE_DIV, powers, sum, probabilities);
  graph.matmul(probabilities, v, out);
  return made;
}

}  // namespace sconce::cuda
