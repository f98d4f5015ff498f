#include "src/cpu/indexing/embedding_backward.h"

#include <doctest/doctest.h>

#include <vector>

#include "src/cpu/movement/movement.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/fill.h"
#include "tests/cpu/kernel_cases.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_embedding_bag_dense_backward: modes, weights, frequencies, padding") {
  run_kernel("more_gradients.cases", "_embedding_bag_dense_backward", cpu::_embedding_bag_dense_backward);
}
TEST_CASE("_embedding_bag_per_sample_weights_backward: bags given and from offsets") {
  run_kernel("more_gradients.cases", "_embedding_bag_per_sample_weights_backward",
             cpu::_embedding_bag_per_sample_weights_backward);
}

TEST_CASE("embedding_renorm, embedding_dense_backward: indices of another dtype are refused") {
  const std::vector<int64_t> matrix{2, 3}, row{2};
  Tensor weight = Tensor::empty(matrix, DType::kFloat32), index = Tensor::empty(row, DType::kFloat32);
  zero(weight);
  zero(index);
  CHECK_THROWS_WITH(cpu::embedding_renorm(weight, index, 1, 2), doctest::Contains("int64 or int32"));
  CHECK_THROWS_WITH(cpu::embedding_dense_backward(weight, index, 2, -1, false), doctest::Contains("int64 or int32"));
}
