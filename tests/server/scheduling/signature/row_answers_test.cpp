#include "server/scheduling/signature/row_answers.h"

#include <array>
#include <limits>
#include <vector>

#include "doctest/doctest.h"
#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr RowTolerance kTight{.of_largest = 1e-6, .of_nudge = 1};

template <class T>
RowAnswers answers(DType dtype, const std::vector<std::vector<T>>& rows) {
  const std::array<int64_t, 2> sizes{static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())};
  Tensor tensor = Tensor::empty(sizes, dtype);
  T* at = tensor.data_as<T>();
  for (const std::vector<T>& row : rows) at = std::copy(row.begin(), row.end(), at);
  RowAnswers made;
  CHECK(made.take({&tensor, 1}, sizes[0], 1, TensorNames::of_outputs(model_spec({}, {{}}))) == "");
  return made;
}
RowAnswers floats(const std::vector<std::vector<float>>& rows) { return answers<float>(DType::kFloat32, rows); }
RowAnswers integers(const std::vector<std::vector<int64_t>>& rows) { return answers<int64_t>(DType::kInt64, rows); }

// Whether `got`, a row's answer beside other rows, is acceptable if the row by itself gives `alone`.
bool agree(const std::vector<float>& alone, const std::vector<float>& got, RowTolerance tolerance = kTight,
           const std::vector<std::vector<float>>& nudged = {}) {
  RowAlone known{.answers = floats({alone}), .nudged = {}};
  for (const std::vector<float>& row : nudged) known.nudged.push_back(floats({row}));
  return row_agrees(known.answers, 0, floats({std::vector<float>(got.size(), 9e9f), got}), 1, known, tolerance);
}

}  // namespace

TEST_CASE("row answers: a bound is a share of the row's own largest number") {
  CHECK(agree({1, 2}, {1, 2}, {}));
  CHECK_FALSE(agree({1, 2}, {1, 2.000001f}, {}));
  CHECK(agree({1, 2}, {1, 2.000001f}));
  CHECK_FALSE(agree({1, 2}, {1, 2.00001f}));
  CHECK(agree({1, 2000}, {1.001f, 2000}));
  CHECK_FALSE(agree({0, 0}, {1e-20f, 0}));
}

TEST_CASE("row answers: what is finite stays finite, what is not stays not") {
  CHECK(agree({kNaN, 1}, {-kNaN, 1}));
  CHECK(agree({kInfinity, 1}, {kNaN, 1}));
  CHECK_FALSE(agree({kNaN, 1}, {0, 1}));
  CHECK_FALSE(agree({0, 1}, {kNaN, 1}));
  CHECK_FALSE(agree({0, 1}, {0, kInfinity}));
  const RowTolerance garbage{.of_largest = 1, .garbage = true};
  CHECK(agree({kNaN, 1}, {0, 1}, garbage));
  CHECK_FALSE(agree({0, 1}, {kNaN, 1}, garbage));
}

TEST_CASE("row answers: what nudged inputs change is forgiven") {
  CHECK(agree({1, 2}, {1.05f, 2}, kTight, {{1, 2}, {1, 2.1f}}));
  CHECK_FALSE(agree({1, 2}, {1.2f, 2}, kTight, {{1, 2}, {1, 2.1f}}));
  const RowAlone steady{.answers = floats({{1, 2}}), .nudged = {floats({{1, 2.1f}})}},
      chaotic{.answers = floats({{1, 2}}), .nudged = {floats({{1, -2}})}};
  CHECK(row_is_steady(steady, kTight));
  CHECK_FALSE(row_is_steady(chaotic, kTight));
}

TEST_CASE("row answers: integers are the same, but where nudged inputs change them") {
  const RowAlone known{.answers = integers({{1, 2, 3}}), .nudged = {integers({{1, 7, 3}})}};
  const auto agrees = [&](const std::vector<int64_t>& got, bool forgive) {
    return row_agrees(known.answers, 0, integers({got}), 0, known, {.of_largest = 1, .integers = forgive});
  };
  CHECK(agrees({1, 2, 3}, false));
  CHECK_FALSE(agrees({1, 5, 3}, false));
  CHECK(agrees({1, 5, 3}, true));
  CHECK_FALSE(agrees({1, 2, 4}, true));
}

TEST_CASE("row answers: outputs without a row for each of the inputs, of other shapes and dtypes") {
  RowAnswers made;
  const TensorNames names = TensorNames::of_outputs(model_spec({}, {{}}));
  const Tensor three = Tensor::empty(std::array<int64_t, 2>{3, 2}, DType::kFloat32),
               none = Tensor::empty(std::array<int64_t, 0>{}, DType::kFloat32);
  CHECK(made.take({&three, 1}, 2, 1, names).ends_with("does not have a row for each of the inputs"));
  CHECK(made.take({&none, 1}, 1, 1, names).ends_with("does not have a row for each of the inputs"));
  CHECK(made.take({&three, 1}, 1, 3, names) == "");
  const RowAlone known{.answers = floats({{0, 0}}), .nudged = {}};
  CHECK_FALSE(row_agrees(known.answers, 0, floats({{0, 0, 0}}), 0, known, kTight));
  CHECK_FALSE(row_agrees(known.answers, 0, answers<double>(DType::kFloat64, {{0, 0}}), 0, known, kTight));
}

}  // namespace sconce::server::scheduling
