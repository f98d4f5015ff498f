#include "src/runner/constants/set_weights.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/errors.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

struct Layouts {
  const char* name;
  Ints sizes, strides;
};

const std::vector<Layouts> kLayouts = {
    {"plain", {2, 3}, {3, 1}},    {"turned", {5, 7}, {1, 5}}, {"channels_last", {2, 3, 4, 5}, {60, 1, 15, 3}},
    {"expanded", {4, 6}, {0, 1}}, {"gaps", {3, 4}, {8, 2}},   {"ones", {1, 6, 1}, {1, 1, 1}},
    {"scalar", {}, {}},           {"empty", {0, 3}, {1, 7}}};

// The elements in row-major order, read one by one through the strides.
std::vector<float> row_major(const Tensor& tensor) {
  std::vector<float> values;
  const auto count = static_cast<size_t>(tensor.numel());
  for (size_t i = 0; i < count; ++i) {
    int64_t rest = static_cast<int64_t>(i), offset = 0;
    for (int64_t d = tensor.dim(); d-- > 0; rest /= tensor.size(d)) offset += rest % tensor.size(d) * tensor.stride(d);
    values.push_back(tensor.data_as<float>()[offset]);
  }
  return values;
}

struct Set {
  std::vector<loader::ContainerConstant> listed;
  std::vector<Tensor> values;

  Set() {
    float next = 1;
    for (const auto& [name, sizes, strides] : kLayouts) {
      listed.push_back({name, std::string("m.") + name, false, 0, static_cast<int32_t>(DType::kFloat32), 0});
      Tensor value = Tensor::empty_strided(sizes, strides, DType::kFloat32);
      auto* const data = static_cast<float*>(value.storage()->data());
      const size_t room = value.storage()->bytes() / sizeof(float);
      for (size_t i = 0; i < room; ++i) data[i] = next++;
      values.push_back(value);
    }
  }
};

}  // namespace

TEST_CASE("set weights: any strides, in pieces of any size, are row-major") {
  const Set set;
  const ConstantTable table(set.listed, set.values, ModelSpec{});
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
    SetWeights weights(
        table, std::make_shared<ConstantSet>(set.values), {}, [] {}, nullptr);
    REQUIRE(weights.entries().size() == kLayouts.size());
    CHECK(std::is_sorted(weights.entries().begin(), weights.entries().end(),
                         [](const WeightEntry& a, const WeightEntry& b) { return a.name < b.name; }));
    for (size_t e = 0; e < weights.entries().size(); ++e) {
      const std::string& name = weights.entries()[e].name;
      CAPTURE(name);
      const auto at = std::find_if(kLayouts.begin(), kLayouts.end(),
                                   [&](const auto& l) { return "m." + std::string(l.name) == name; });
      const Tensor& tensor = set.values[static_cast<size_t>(at - kLayouts.begin())];
      const std::vector<float> expected = row_major(tensor);
      REQUIRE(weights.bytes(e) == expected.size() * sizeof(float));
      std::vector<float> got(expected.size());
      for (size_t done = 0; done < got.size(); done += piece)
        weights.read(e, std::as_writable_bytes(std::span(got).subspan(done, std::min(piece, got.size() - done))));
      CHECK(got == expected);
      CHECK(weights.in_place(e).empty() == (!tensor.is_contiguous() || tensor.numel() == 0));
      std::byte more[4];
      CHECK(code_of([&] { weights.read(e, more); }) == ErrorCode::kInvalidArgument);
    }
  }
}

TEST_CASE("set weights: values that may be wrong end the reading") {
  const Set set;
  const ConstantTable table(set.listed, set.values, ModelSpec{});
  SetWeights weights(
      table, std::make_shared<ConstantSet>(set.values), {}, [] { throw Error(ErrorCode::kUnavailable, "rewritten"); },
      nullptr);
  CHECK(code_of([&] { weights.digest(); }) == ErrorCode::kUnavailable);
  CHECK(code_of([&] { weights.check_whole(); }) == ErrorCode::kUnavailable);
}
