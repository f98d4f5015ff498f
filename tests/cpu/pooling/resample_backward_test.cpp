#include "src/cpu/pooling/resample_backward.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "src/cpu/pooling/resample_antialias.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/fill.h"
#include "tests/cpu/case_file.h"

using namespace sconce;
using namespace sconce::testing;
using Results = std::vector<Tensor>;

namespace {
void run(std::string_view op, const std::function<Results(Case&)>& call) { run_cases("gradients.cases", op, call); }
std::optional<double> scale(Case& c, size_t i) {
  return c.args[i].none() ? std::nullopt : std::optional<double>(c.real(i));
}
}  // namespace

TEST_CASE("upsample_linear1d_backward: scales, corners, halves") {
  run("upsample_linear1d_backward", [](Case& c) {
    return Results{cpu::upsample_linear1d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                   c.boolean(3), scale(c, 4))};
  });
}
TEST_CASE("upsample_bicubic2d_backward: scales, corners, layouts") {
  run("upsample_bicubic2d_backward", [](Case& c) {
    return Results{cpu::upsample_bicubic2d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                    c.boolean(3), scale(c, 4), scale(c, 5))};
  });
}
TEST_CASE("upsample_trilinear3d_backward: scales, corners, layouts") {
  run("upsample_trilinear3d_backward", [](Case& c) {
    return Results{cpu::upsample_trilinear3d_backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(),
                                                      c.boolean(3), scale(c, 4), scale(c, 5), scale(c, 6))};
  });
}
TEST_CASE("replication_pad1d_backward: cropping too") {
  run("replication_pad1d_backward",
      [](Case& c) { return Results{cpu::replication_pad1d_backward(c.tensor(0), c.tensor(1), c.args[2].integers())}; });
}
TEST_CASE("replication_pad2d_backward: cropping, layouts") {
  run("replication_pad2d_backward",
      [](Case& c) { return Results{cpu::replication_pad2d_backward(c.tensor(0), c.tensor(1), c.args[2].integers())}; });
}
TEST_CASE("upsample_nearest3d_backward: row-major whatever the gradient is") {
  const auto run_nearest = [](std::string_view op, auto backward) {
    run_cases("sampling.cases", op, [&](Case& c) {
      return Results{
          backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(), scale(c, 3), scale(c, 4), scale(c, 5))};
    });
  };
  run_nearest("upsample_nearest3d_backward", cpu::upsample_nearest3d_backward);
  run_nearest("_upsample_nearest_exact3d_backward", cpu::_upsample_nearest_exact3d_backward);
}
TEST_CASE("_upsample_bicubic2d_aa_backward: row-major whatever the gradient is, unlike the bilinear one") {
  const auto run_low_pass = [](std::string_view op, auto backward) {
    run_cases("sampling.cases", op, [&](Case& c) {
      return Results{
          backward(c.tensor(0), c.args[1].integers(), c.args[2].integers(), c.boolean(3), scale(c, 4), scale(c, 5))};
    });
  };
  run_low_pass("_upsample_bicubic2d_aa_backward", cpu::_upsample_bicubic2d_aa_backward);
  run_low_pass("_upsample_bilinear2d_aa_backward", cpu::_upsample_bilinear2d_aa_backward);
}

// Strides and values are PyTorch's.
TEST_CASE("replication_pad3d_backward, reflection_pad3d_backward: as channels-last as self") {
  Tensor grad = Tensor::empty(std::vector<int64_t>{1, 2, 2, 2, 5}, DType::kFloat32);
  fill(grad, 1.0);
  const std::vector<int64_t> strides{24, 1, 12, 6, 2}, padding{1, 1, 0, 0, 0, 0};
  const Tensor self = Tensor::empty_strided(std::vector<int64_t>{1, 2, 2, 2, 3}, strides, DType::kFloat32);
  const auto check = [&](const Tensor& got, std::array<float, 3> row) {
    CHECK(std::ranges::equal(got.strides(), strides));
    for (int64_t i = 0; i < 24; ++i) CHECK(contiguous(got).data_as<float>()[i] == row[static_cast<size_t>(i % 3)]);
  };
  check(cpu::replication_pad3d_backward(grad, self, padding), {2, 1, 2});
  check(cpu::reflection_pad3d_backward(grad, self, padding), {1, 3, 1});
}
