#include "server/scheduling/signature/body_bound.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {
namespace {

uint64_t bound_of(std::vector<TensorSpec> inputs) {
  return most_body_bytes(
      ModelSignature("m", 1, model_spec(std::move(inputs), {tensor_spec("output0", DType::kFloat32, {fixed_dim(1)})})));
}

// Writes JSON with one number or bracket per line, and long numbers.
std::string pretty(const std::vector<int64_t>& sizes, size_t level = 0) {
  const std::string indent(4 * (level + 2), ' ');
  if (level == sizes.size()) return indent + "-2.2250738585072014e-308";
  std::string text = indent + "[\r\n";
  for (int64_t i = 0; i < sizes[level]; ++i)
    text += pretty(sizes, level + 1) + (i + 1 < sizes[level] ? ",\r\n" : "\r\n");
  return text + indent + "]";
}

}  // namespace

TEST_CASE("body bound: every request that a model of fixed shapes could take fits, and little more") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{15, 64},
                                            {},
                                            {1},
                                            {100'000},
                                            {2000, 1, 1, 1},
                                            {3, 224, 224},
                                            {0, 5},
                                            {20, 1, 1, 1, 1, 1, 1, 1}}) {
    std::vector<Dim> dims;
    uint64_t elements = 1;
    for (const int64_t size : sizes) {
      dims.push_back(fixed_dim(size));
      elements *= static_cast<uint64_t>(size);
    }
    const uint64_t bound = bound_of({tensor_spec("arg0_1", DType::kFloat64, dims)});
    CHECK(pretty(sizes).size() < bound);
    CHECK(elements * 8 * 4 / 3 + 1000 < bound);
    CHECK(bound < 100'000 + elements * (100 + 100 * (sizes.size() + 1)));
    // Complex numbers have two parts.
    std::vector<int64_t> parts = sizes;
    parts.push_back(2);
    CHECK(pretty(parts).size() < bound_of({tensor_spec("arg0_1", DType::kComplex128, dims)}));
  }
}

TEST_CASE("body bound: inputs add up; dimensions count at their largest") {
  const TensorSpec one = tensor_spec("arg0_1", DType::kFloat32, {fixed_dim(1000)});
  const TensorSpec ranged = tensor_spec("arg1_1", DType::kFloat32, {variable_dim("s0", 2, 1000)});
  const uint64_t none = bound_of({}), single = bound_of({one});
  CHECK(none >= 65536);
  CHECK(single > none + 1000 * 40);
  CHECK(bound_of({one, one}) - single == single - none);
  CHECK(bound_of({ranged}) == single);
}

TEST_CASE("body bound: there is none where a size has no limit, is not recorded or cannot be") {
  TensorSpec unknown;
  unknown.name = "arg0_1";
  CHECK(bound_of({unknown}) == UINT64_MAX);
  CHECK(bound_of({tensor_spec("arg0_1", DType::kFloat32, {variable_dim("s0"), fixed_dim(4)})}) == UINT64_MAX);
  const Dim large = variable_dim("s0", 2, int64_t{1} << 40);
  CHECK(bound_of({tensor_spec("arg0_1", DType::kFloat32, {large, large})}) == UINT64_MAX);
}

}  // namespace sconce::server::scheduling
