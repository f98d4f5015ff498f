#include "src/ops/embedding_backward.h"

#include <doctest/doctest.h>

#include "tests/ops/case_file.h"

using namespace sconce;
using namespace sconce::testing;

TEST_CASE("_embedding_bag_dense_backward: modes, weights, frequencies, padding") {
  run_cases("more_gradients.cases", "_embedding_bag_dense_backward", [](Case& c) {
    return std::vector<Tensor>{cpu::_embedding_bag_dense_backward(c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3),
                                                                  c.tensor(4), c.integer(5), c.boolean(6), c.integer(7),
                                                                  c.args[8].optional_tensor(), c.integer(9))};
  });
}
TEST_CASE("_embedding_bag_per_sample_weights_backward: bags given and from offsets") {
  run_cases("more_gradients.cases", "_embedding_bag_per_sample_weights_backward", [](Case& c) {
    return std::vector<Tensor>{cpu::_embedding_bag_per_sample_weights_backward(
        c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.integer(5), c.integer(6))};
  });
}
