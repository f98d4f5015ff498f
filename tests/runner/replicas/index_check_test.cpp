#include "src/runner/replicas/index_check.h"

#include <doctest/doctest.h>

#include <limits>
#include <optional>

#include "sconce/error.h"

namespace sconce::runner {
namespace {

ModelSpec spec_with(const std::string& text) {
  ModelSpec spec;
  spec.inputs.resize(2);
  spec.inputs[0].name = "ids";
  spec.inputs[1].name = "places";
  spec.metadata["sconce_index_bounds"] = text;
  return spec;
}
constexpr const char* kBounds =
    R"({"version": 1, "bounds": [{"input": 0, "low": -100, "high": 99}, {"input": 1, "low": 0, "high": 7}]})";

template <class T>
Tensor numbers(std::vector<int64_t> sizes, DType dtype, std::initializer_list<T> values) {
  Tensor tensor = Tensor::empty(sizes, dtype);
  std::copy(values.begin(), values.end(), tensor.data_as<T>());
  return tensor;
}
Tensor whole(std::vector<int64_t> sizes, std::initializer_list<int64_t> values) {
  return numbers<int64_t>(std::move(sizes), DType::kInt64, values);
}
// The text of kInvalidArgument, or "".
std::string refusal(const IndexCheck& check, const Tensor& ids, const Tensor& places) {
  const Tensor inputs[] = {ids, places};
  try {
    check.of_host(inputs);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
}
std::optional<ErrorCode> refused(const std::string& text) {
  try {
    IndexCheck(spec_with(text), true);
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

}  // namespace

TEST_CASE("index check: names the input, the index, its place and the bounds") {
  const IndexCheck check(spec_with(kBounds), true);
  const Tensor good = whole({2, 3}, {0, 99, -100, 5, -1, 7}), places = whole({2}, {0, 7});
  CHECK(refusal(check, good, places) == "");
  CHECK(refusal(check, whole({2, 3}, {0, 1, 2, 3, 100, 200}), places) ==
        "input 0 (ids): index 100 at [1, 1] is out of bounds: -100 to 99");
  CHECK(refusal(check, whole({2, 3}, {0, 1, -101, 3, 4, 5}), places) ==
        "input 0 (ids): index -101 at [0, 2] is out of bounds: -100 to 99");
  CHECK(refusal(check, good, whole({2}, {-1, 0})) == "input 1 (places): index -1 at [0] is out of bounds: 0 to 7");
  for (const int64_t far : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    CHECK(refusal(check, whole({1}, {far}), places) != "");
    CHECK(refusal(check, good, whole({1}, {far})) != "");
  }
}

TEST_CASE("index check: any integer dtype, strides, sizes and place in a long row") {
  const IndexCheck check(spec_with(kBounds), true);
  const Tensor good = whole({1}, {0});
  CHECK(refusal(check, numbers<int32_t>({2}, DType::kInt32, {0, 101}), good) != "");
  CHECK(refusal(check, numbers<int16_t>({2}, DType::kInt16, {0, -101}), good) != "");
  CHECK(refusal(check, numbers<int8_t>({2}, DType::kInt8, {-100, -101}), good) != "");
  CHECK(refusal(check, numbers<uint8_t>({2}, DType::kUInt8, {99, 200}), good) != "");
  CHECK(refusal(check, numbers<float>({1}, DType::kFloat32, {1e9f}), good) == "");  // no index: InputCheck's
  const Tensor none = whole({0, 3}, {});
  CHECK(refusal(check, none, none) == "");
  CHECK(refusal(check, whole({}, {100}), good) == "input 0 (ids): index 100 at [] is out of bounds: -100 to 99");
  // Elements between those of the view do not count.
  const Tensor wide = whole({2, 4}, {1, 555, 2, 555, 3, 555, 4, 555});
  const int64_t sizes[] = {2, 2}, strides[] = {4, 2}, turned[] = {2, 4};
  CHECK(refusal(check, wide.as_strided(sizes, strides, 0), good) == "");
  CHECK(refusal(check, wide.as_strided(sizes, turned, 0), good) == "");
  CHECK(refusal(check, wide.as_strided(sizes, turned, 1), good) ==
        "input 0 (ids): index 555 at [0, 0] is out of bounds: -100 to 99");
  for (int64_t length = 1; length < 40; ++length)
    for (int64_t at = 0; at < length; ++at) {
      Tensor row = Tensor::empty(IntSpan(&length, 1), DType::kInt64);
      std::fill_n(row.data_as<int64_t>(), length, 99);
      row.data_as<int64_t>()[at] = 100;
      CHECK(refusal(check, row, good) ==
            "input 0 (ids): index 100 at [" + std::to_string(at) + "] is out of bounds: -100 to 99");
    }
}

TEST_CASE("index check: without metadata, of another version, or turned off it says nothing") {
  const Tensor bad = whole({1}, {1000}), good = whole({1}, {0});
  ModelSpec bare = spec_with(kBounds);
  bare.metadata.clear();
  for (const IndexCheck& check : {IndexCheck(), IndexCheck(bare, true), IndexCheck(spec_with(kBounds), false),
                                  IndexCheck(spec_with(R"({"version": 2, "bounds": "otherwise"})"), true)}) {
    CHECK(check.empty());
    CHECK(refusal(check, bad, good) == "");
  }
}

TEST_CASE("index check: metadata that says something else is a corrupt package") {
  for (const char* const text : {
           "",
           "[]",
           "{}",
           "nonsense",
           R"({"version": 1})",
           R"({"version": 1, "bounds": {}})",
           R"({"version": 1, "bounds": [3]})",
           R"({"version": 1, "bounds": [{"input": 0, "low": 0}]})",
           R"({"version": 1, "bounds": [{"input": 2, "low": 0, "high": 1}]})",
           R"({"version": 1, "bounds": [{"input": -1, "low": 0, "high": 1}]})",
           R"({"version": 1, "bounds": [{"input": 0, "low": 2, "high": 1}]})",
           R"({"version": 1, "bounds": [{"input": 0.5, "low": 0, "high": 1}]})",
           R"({"version": 1, "bounds": [{"input": "0", "low": 0, "high": 1}]})",
       })
    CHECK_MESSAGE(refused(text) == ErrorCode::kCorruptPackage, text);
}

}  // namespace sconce::runner
