#include "src/runner/dummy_inputs.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/errors.h"

using namespace sconce;

namespace {

TensorSpec input(std::vector<Dim> dims, DType dtype = DType::kFloat32) {
  TensorSpec spec;
  spec.name = "x";
  spec.dtype = dtype;
  spec.has_shape = true;
  spec.dims = std::move(dims);
  spec.strides.resize(spec.dims.size());
  return spec;
}

}  // namespace

TEST_CASE("made-up inputs: they have the signature's sizes, strides and dtypes") {
  std::mt19937 random(5);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  for (int draw = 0; draw < 200; ++draw) {
    CAPTURE(draw);
    std::vector<Dim> dims(static_cast<size_t>(below(4)));
    for (Dim& dim : dims) {
      dim.min = below(24);
      dim.max = below(3) == 0 ? dim.min : below(2) == 0 ? dim.min + below(24) : INT64_MAX;
    }
    const DType dtypes[] = {DType::kFloat32, DType::kBFloat16, DType::kInt64, DType::kBool, DType::kUInt8};
    TensorSpec spec = input(dims, dtypes[below(5)]);
    const int64_t apart = 1 + below(3);
    if (!dims.empty() && below(2)) spec.strides.back() = apart;
    const std::vector<Tensor> made = dummy_inputs({{spec}});
    REQUIRE(made.size() == 1);
    const Tensor& t = made[0];
    CHECK(t.dtype() == *spec.dtype);
    REQUIRE(t.dim() == static_cast<int64_t>(dims.size()));
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t size = t.size(static_cast<int64_t>(d));
      if (!dims[d].is_static()) CHECK(size >= 1);
      CHECK(size >= dims[d].min);
      CHECK(size <= dims[d].max);
      if (spec.strides[d]) CHECK(t.stride(static_cast<int64_t>(d)) == *spec.strides[d]);
      if (dims[d].max == INT64_MAX) CHECK(size == std::max<int64_t>(dims[d].min, 16));
    }
    if (t.numel() == 0) continue;
    for (size_t i = 0; i < t.storage()->bytes(); ++i)
      REQUIRE(static_cast<const std::byte*>(t.storage()->data())[i] == std::byte{0});
  }
}

TEST_CASE("made-up inputs: equal symbols get equal sizes, others differ where that is asked for") {
  const std::vector<TensorSpec> specs = {input({{2, 64, "s0"}, {3, 3, ""}, {2, INT64_MAX, "s1"}}),
                                         input({{2, 64, "s0"}, {1, 5, ""}, {2, INT64_MAX, "s1"}})};
  const auto sizes = [&](const DummySizes& wanted) {
    const std::vector<Tensor> made = dummy_inputs(specs, wanted);
    return to_string(made[0].sizes()) + to_string(made[1].sizes());
  };
  CHECK(sizes({}) == "[16, 3, 16][16, 5, 16]");
  CHECK(sizes({.others = 1, .step = 2}) == "[2, 3, 4][2, 5, 4]");
  CHECK(sizes({.others = 1, .shift = 1, .step = 2}) == "[3, 3, 5][3, 5, 5]");
  CHECK(sizes({.chosen = {{"s0", 7}, {"none", 9}}, .others = 2}) == "[7, 3, 2][7, 2, 2]");
  CHECK(sizes({.chosen = {{"s0", 100}}, .others = 1, .step = 2}) == "[100, 3, 4][100, 5, 4]");
}

TEST_CASE("made-up inputs: sizes that are computed from others follow them") {
  const auto sizes = [](std::vector<TensorSpec> specs, const DummySizes& wanted) {
    std::string text;
    for (const Tensor& made : dummy_inputs(specs, wanted)) text += to_string(made.sizes());
    return text;
  };
  const std::vector<TensorSpec> half = {input({{4, 128, "2*s17"}}), input({{2, 64, "s17"}})};
  CHECK(sizes(half, {}) == "[32][16]");
  CHECK(sizes(half, {.others = 1, .shift = 1, .step = 2}) == "[6][3]");
  CHECK(sizes(half, {.chosen = {{"s17", 5}}}) == "[10][5]");
  CHECK(sizes(half, {.chosen = {{"2*s17", 12}}}) == "[12][6]");
  CHECK(error_from(ErrorCode::kUnsupported, [&] {
          sizes(half, {.chosen = {{"2*s17", 7}}});
        }) == "no sizes were found that the package's relations allow");
  CHECK(sizes({input({{2, INT64_MAX, "s97"}}), input({{2, INT64_MAX, "s52"}}), input({{4, INT64_MAX, "s52 + s97"}})},
              {.others = 1, .step = 2}) == "[2][4][6]");
  // Code that reads the second input to the end of the first one.
  const std::vector<AccessBound> bounds{{"k", {}, "s0 - 1", "s1"}};
  const std::vector<TensorSpec> two = {input({{2, 64, "s0"}}), input({{2, 64, "s1"}})};
  CHECK(sizes(two, {.chosen = {{"s0", 20}}, .others = 2}) == "[20][2]");
  CHECK(sizes(two, {.chosen = {{"s0", 20}}, .others = 2, .bounds = bounds}) == "[20][32]");
}

TEST_CASE("made-up inputs: errors name the input") {
  const auto reason = [](std::vector<TensorSpec> specs, const DummySizes& sizes = {},
                         std::vector<std::string> names = {}) {
    return error_from(ErrorCode::kUnsupported, [&] { dummy_inputs(specs, sizes, names); });
  };
  const auto of = [](int64_t n) { return input({{n, n, ""}}, DType::kBool); };
  CHECK(dummy_inputs({{of(1 << 24)}})[0].numel() == 1 << 24);
  CHECK(code_of([&] { dummy_inputs({{of((1 << 24) + 1)}}); }) == ErrorCode::kUnsupported);
  CHECK(reason({of(6), of(5)}, {.most_elements = 10}) == "input 'x' is too large to be made up");
  const int64_t large = int64_t{1} << 40;
  CHECK(reason({input({{large, large, ""}, {large, large, ""}})}, {.most_elements = INT64_MAX}, {"ARGS[0]"}) ==
        "input 'ARGS[0]' is too large to be made up");
  CHECK(reason({input({{INT64_MAX - 1, INT64_MAX, "s0"}})}, {.step = 2}) == "input 'x' is too large to be made up");
  TensorSpec unknown = of(1);
  unknown.strides.clear();
  CHECK(reason({of(1), unknown}, {}, {"a", "b"}) == "input 'b' is not described in full");
}
