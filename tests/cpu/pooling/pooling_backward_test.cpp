#include <doctest/doctest.h>

#include <algorithm>

#include "sconce/error.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {

void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("gradients.cases", op, call); }

template <class F>
void run_max(std::string_view op, F backward, std::string_view file = "gradients.cases") {
  run_cases(file, op, [&](Case& c) {
    return Results{backward(c.tensor(0), c.tensor(1), c.args[2].integers(), c.args[3].integers(), c.args[4].integers(),
                            c.args[5].integers(), c.boolean(6), c.tensor(7))};
  });
}
template <class F>
void run_average(std::string_view op, F backward) {
  run(op, [&](Case& c) {
    return Results{backward(c.tensor(0), c.tensor(1), c.args[2].integers(), c.args[3].integers(), c.args[4].integers(),
                            c.boolean(5), c.boolean(6), c.args[7].optional<int64_t>())};
  });
}

}  // namespace

TEST_CASE("max_pool2d_with_indices_backward: layouts, halves, windows that share elements") {
  run_max("max_pool2d_with_indices_backward", cpu::max_pool2d_with_indices_backward);
}
TEST_CASE("max_pool3d_with_indices_backward: layouts, halves, windows that share elements") {
  run_max("max_pool3d_with_indices_backward", cpu::max_pool3d_with_indices_backward);
}
TEST_CASE("max_pool3d_with_indices_backward: of one image, laid out like its gradient") {
  run_max("aten::max_pool3d_with_indices_backward", cpu::max_pool3d_with_indices_backward, "found_elements.cases");
}
TEST_CASE("avg_pool2d_backward: padding, ceil mode, divisors") {
  run_average("avg_pool2d_backward", cpu::avg_pool2d_backward);
}
TEST_CASE("avg_pool3d_backward: padding, ceil mode, divisors") {
  run_average("avg_pool3d_backward", cpu::avg_pool3d_backward);
}
TEST_CASE("_adaptive_avg_pool2d_backward: uneven windows") {
  run("_adaptive_avg_pool2d_backward",
      [](Case& c) { return Results{cpu::_adaptive_avg_pool2d_backward(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("_adaptive_avg_pool3d_backward: uneven windows") {
  run("_adaptive_avg_pool3d_backward",
      [](Case& c) { return Results{cpu::_adaptive_avg_pool3d_backward(c.tensor(0), c.tensor(1))}; });
}
TEST_CASE("adaptive_max_pool2d_backward: uneven windows") {
  run("adaptive_max_pool2d_backward",
      [](Case& c) { return Results{cpu::adaptive_max_pool2d_backward(c.tensor(0), c.tensor(1), c.tensor(2))}; });
}
TEST_CASE("adaptive_max_pool3d_backward: uneven windows") {
  run("adaptive_max_pool3d_backward",
      [](Case& c) { return Results{cpu::adaptive_max_pool3d_backward(c.tensor(0), c.tensor(1), c.tensor(2))}; });
}
TEST_CASE("max_unpool2d: layouts, indices outside") {
  run("max_unpool2d",
      [](Case& c) { return Results{cpu::max_unpool2d(c.tensor(0), c.tensor(1), c.args[2].integers())}; });
}
TEST_CASE("max_unpool3d: layouts, indices outside") {
  run("max_unpool3d", [](Case& c) {
    return Results{
        cpu::max_unpool3d(c.tensor(0), c.tensor(1), c.args[2].integers(), c.args[3].integers(), c.args[4].integers())};
  });
}

// PyTorch asks nothing of the first dimension, be it the batch or the channels.
TEST_CASE("adaptive_max_pool2d_backward, _adaptive_avg_pool2d_backward: which dimensions may be empty") {
  using Ints = std::vector<int64_t>;
  const auto floats = [](const Ints& sizes) { return Tensor::empty(sizes, DType::kFloat32); };
  const Tensor none = cpu::adaptive_max_pool2d_backward(floats({0, 2, 2}), floats({0, 4, 4}),
                                                        Tensor::empty(Ints{0, 2, 2}, DType::kInt64));
  CHECK(std::ranges::equal(none.sizes(), Ints{0, 4, 4}));
  CHECK(cpu::_adaptive_avg_pool2d_backward(floats({0, 2, 2}), floats({0, 4, 4})).numel() == 0);
  CHECK_THROWS_WITH_AS(cpu::_adaptive_avg_pool2d_backward(floats({2, 0, 2, 2}), floats({2, 0, 4, 4})),
                       doctest::Contains("non-zero size for non-batch dimensions"), Error);
}
