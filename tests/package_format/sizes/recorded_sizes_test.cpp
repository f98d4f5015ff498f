#include "package_format/sizes/recorded_sizes.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

using namespace sconce;

namespace {

// Inputs [s77, 4] and [s17], as the source describes them.
ModelSpec spec_with(const std::string& metadata) {
  ModelSpec spec;
  spec.has_source = true;
  spec.metadata["sconce_sizes"] = metadata;
  TensorSpec x, y;
  x.has_shape = y.has_shape = true;
  x.dims = {{2, 8, "s77"}, {4, 4, ""}};
  y.dims = {{2, INT64_MAX, "s17"}};
  spec.inputs = {x, y};
  return spec;
}

ModelSpec applied(const std::string& metadata) {
  ModelSpec spec = spec_with(metadata);
  apply_recorded_sizes(spec);
  return spec;
}

std::string refusal(const std::string& metadata) {
  return error_from(ErrorCode::kCorruptPackage, [&] { applied(metadata); });
}

}  // namespace

TEST_CASE("recorded sizes: expressions and declared minima") {
  const ModelSpec spec = applied(
      R"~({"version": 1, "inputs": [[{"size": "s77", "min": 0, "max": 6}, 4], [{"size": "((s77//2))", "min": 1}]]})~");
  CHECK(spec.inputs[0].dims[0].min == 0);
  CHECK(spec.inputs[0].dims[0].max == 6);
  CHECK(spec.inputs[1].dims[0].symbol == "s77 // 2");
  CHECK(spec.inputs[1].dims[0].min == 1);
  CHECK(spec.inputs[1].dims[0].max == INT64_MAX);
}

TEST_CASE("recorded sizes: no metadata, and another version, change nothing") {
  ModelSpec none = spec_with("");
  none.metadata.clear();
  apply_recorded_sizes(none);
  CHECK(none.inputs[1].dims[0].symbol == "s17");
  CHECK(applied(R"({"version": 2})").inputs[1].dims[0].symbol == "s17");
}

TEST_CASE("recorded sizes: a range is never wider than the source's at its end") {
  const ModelSpec spec =
      applied(R"({"version": 1, "inputs": [[{"size": "s77", "min": 5, "max": 60}, 4], [{"size": "s17"}]]})");
  CHECK(spec.inputs[0].dims[0].min == 2);
  CHECK(spec.inputs[0].dims[0].max == 8);
  CHECK(spec.inputs[1].dims[0].symbol == "s17");
}

TEST_CASE("recorded sizes: an expression of the source stays") {
  ModelSpec spec = spec_with(R"({"version": 1, "inputs": [[{"size": "s77"}, 4], [{"size": "s77*2"}]]})");
  spec.inputs[1].dims[0].symbol = "2*s77";
  apply_recorded_sizes(spec);
  CHECK(spec.inputs[1].dims[0].symbol == "2*s77");
}

TEST_CASE("recorded sizes: what is wrong is named") {
  CHECK(refusal("") == "metadata sconce_sizes: no JSON object with a version");
  CHECK(refusal("[1]") == "metadata sconce_sizes: no JSON object with a version");
  CHECK(refusal(R"({"version": 1})") == "metadata sconce_sizes: not one entry for each of 2 inputs");
  const auto inputs = [](const std::string& text) { return refusal(R"({"version": 1, "inputs": )" + text + "}"); };
  CHECK(inputs("[[4]]") == "metadata sconce_sizes: not one entry for each of 2 inputs");
  CHECK(inputs("[[4], [4]]") == "metadata sconce_sizes: input 0 has 2 dimensions in the source");
  CHECK(inputs("[[5, 4], [4]]") ==
        "metadata sconce_sizes: dimension 0 of input 0 is not fixed to this size in the source");
  CHECK(inputs(R"([[{"size": "s77"}, {"size": "s77"}], [4]])") ==
        "metadata sconce_sizes: dimension 1 of input 0 is fixed in the source");
  CHECK(inputs(R"~([[{"size": "f(s77)"}, 4], [4]])~") ==
        "metadata sconce_sizes: dimension 0 of input 0 has no expression of sizes");
  CHECK(inputs(R"([[{"size": 4}, 4], [4]])") == "metadata sconce_sizes: dimension 0 of input 0 has no size");
  CHECK(inputs(R"([["s77", 4], [4]])") == "metadata sconce_sizes: dimension 0 of input 0 has no size");
  CHECK(inputs(R"([[{"size": "s78"}, 4], [4]])") ==
        "metadata sconce_sizes: dimension 0 of input 0 is s77 in the source");
  CHECK(inputs(R"([[{"size": "s77", "min": -1}, 4], [4]])") == "metadata sconce_sizes: min is no size");
  CHECK(inputs(R"([[{"size": "s77", "max": 1.5}, 4], [4]])") == "metadata sconce_sizes: max is no size");
  CHECK(inputs(R"([[{"size": "s77", "max": 2}, 4], [4]])") ==
        "metadata sconce_sizes: dimension 0 of input 0 has no range");
}
