#include "src/runner/constants/staging.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "src/runner/constants/set_digest.h"
#include "tests/runner/counted_memory.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

// Constants without a model: the list that a container would give and the values that the archive would hold.
struct Constants {
  std::vector<loader::ContainerConstant> listed;
  std::vector<Tensor> values;

  void add(const std::string& name, const std::string& fqn, const Ints& sizes, const Ints& strides,
           ConstantType type = ConstantType::kParameter) {
    listed.push_back({name, fqn, false, static_cast<int32_t>(type), static_cast<int32_t>(DType::kFloat32), 0});
    Tensor value = Tensor::empty_strided(sizes, strides, DType::kFloat32);
    std::memset(value.storage()->data(), 0, value.storage()->bytes());
    values.push_back(value);
  }
  ConstantTable table() const { return {listed, values, ModelSpec{}}; }
};

Constants some() {
  Constants constants;
  constants.add("plain", "a.plain", {2, 3}, {3, 1});
  constants.add("turned", "a.turned", {2, 3}, {1, 2});
  constants.add("shared_0", "a.shared", {2, 3}, {1, 2});
  constants.add("shared_1", "a.shared", {2, 3}, {3, 1});
  constants.add("shared_2", "a.shared", {2, 3}, {3, 1});
  constants.add("buffer", "a.buffer", {4}, {1}, ConstantType::kBuffer);
  constants.add("empty", "a.empty", {0, 3}, {3, 1});
  constants.add("unnamed", "", {}, {});
  return constants;
}

WeightEntry entry(const std::string& name, const Ints& shape = {2, 3}, DType dtype = DType::kFloat32) {
  return {name, dtype, shape};
}

void write(std::span<std::byte> memory, const std::vector<float>& values) {
  REQUIRE(memory.size() == values.size() * sizeof(float));
  std::memcpy(memory.data(), values.data(), memory.size());
}

std::vector<float> elements(const Tensor& t) {
  std::vector<float> result;
  for (int64_t i = 0; i < t.size(0); ++i)
    for (int64_t j = 0; j < t.size(1); ++j) result.push_back(t.data_as<float>()[i * t.stride(0) + j * t.stride(1)]);
  return result;
}

const std::vector<float> kSix{1, 2, 3, 4, 5, 6};

}  // namespace

TEST_CASE("staging: values get to the model's strides, and what is not named stays where it is") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const ConstantSet base(constants.values);
  const std::vector<WeightEntry> entries{entry("a.plain"), entry("a.turned")};
  Staging staging(table, entries, {});
  staging.allocate();
  for (size_t i = 0; i < 2; ++i) {
    const std::span<std::byte> memory = staging.memory(i);
    CHECK(reinterpret_cast<uintptr_t>(memory.data()) % 64 == 0);
    CHECK(staging.memory(i).data() == memory.data());
    write(memory, kSix);
    staging.complete(i);
  }
  const auto set = staging.finish(base);
  CHECK(elements(set->tensors()[0]) == kSix);
  CHECK(elements(set->tensors()[1]) == kSix);
  CHECK(set->tensors()[1].stride(0) == 1);
  CHECK(set->tensors()[0].storage()->immutable());
  for (size_t i = 2; i < constants.values.size(); ++i)
    CHECK(set->tensors()[i].storage() == constants.values[i].storage());
  CHECK(set->bytes(&base) == 48);
}

TEST_CASE("staging: constants of one name share memory where their strides agree") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const std::vector<WeightEntry> entries{entry("a.shared")};
  Staging staging(table, entries, {});
  staging.allocate();
  write(staging.memory(0), kSix);
  staging.complete(0);
  const auto set = staging.finish(ConstantSet(constants.values));
  for (size_t i = 2; i < 5; ++i) CHECK(elements(set->tensors()[i]) == kSix);
  CHECK(set->tensors()[3].storage() == set->tensors()[4].storage());
  CHECK(set->tensors()[2].storage() != set->tensors()[3].storage());
}

TEST_CASE("staging: what does not fit is refused with its name") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const auto refused = [&](const std::vector<WeightEntry>& entries, ErrorCode code, const char* text,
                           bool full = false) {
    CHECK(contains(error_from(code, [&] { Staging(table, entries, {.full = full}); }), text));
  };
  refused({entry("nope")}, ErrorCode::kNotFound, "no constant 'nope'");
  refused({entry("a.plain", {3, 2})}, ErrorCode::kInvalidArgument, "'a.plain': expected shape [2, 3], got [3, 2]");
  refused({entry("a.plain", {2, 3, 1})}, ErrorCode::kInvalidArgument, "got [2, 3, 1]");
  refused({entry("a.plain", {-2, -3})}, ErrorCode::kInvalidArgument, "got [-2, -3]");
  refused({entry("a.plain", {2, 3}, DType::kFloat64)}, ErrorCode::kInvalidArgument, "expected float32, got float64");
  refused({entry("a.plain"), entry("a.plain")}, ErrorCode::kInvalidArgument, "'a.plain' is given twice");
  refused({entry("a.plain"), entry("plain")}, ErrorCode::kInvalidArgument, "'plain' is given twice");
  refused({entry("a.plain"), entry("a.turned"), entry("a.shared")}, ErrorCode::kInvalidArgument,
          "must name constant 'unnamed'", true);
  // Buffers and empty parameters may be left out.
  Staging full(table, std::vector{entry("a.plain"), entry("a.turned"), entry("a.shared"), entry("unnamed", {})},
               {.full = true});
}

TEST_CASE("staging: packed constants cannot be replaced") {
  Constants constants = some();
  constants.values[0] =
      Tensor(constants.values[0].storage(), DType::kFloat32, Ints{2, 3}, Ints{3, 1}, 0, Layout::kMkldnn);
  const ConstantTable table = constants.table();
  const std::vector<WeightEntry> named{entry("a.plain")}, none;
  CHECK_THROWS_WITH_AS(Staging(table, named, {}), doctest::Contains("'a.plain' is packed"), Error);
  CHECK_THROWS_WITH_AS(Staging(table, none, {.full = true}), doctest::Contains("full update is not possible"), Error);
}

TEST_CASE("staging: values that are not finite are refused where that is asked for") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const std::vector<WeightEntry> entries{entry("a.plain"), entry("a.turned")};
  std::vector<float> bad = kSix;
  bad[4] = std::numeric_limits<float>::quiet_NaN();
  for (const bool keep : {true, false}) {
    Staging staging(table, entries, {.check_finite = true, .keep = keep});
    staging.allocate();
    for (size_t i = 0; i < 2; ++i) {
      write(staging.memory(i), bad);
      CHECK_THROWS_WITH_AS(staging.complete(i), doctest::Contains("element 4 of [2, 3] is not finite"), Error);
    }
    CHECK_THROWS_WITH_AS(staging.check_complete(), doctest::Contains("'a.plain' is not complete"), Error);
  }
  Staging any(table, entries, {});
  any.allocate();
  write(any.memory(0), bad);
  any.complete(0);
}

TEST_CASE("staging: steps out of order are refused") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const std::vector<WeightEntry> entries{entry("a.plain"), entry("a.empty", {0, 3})};
  Staging staging(table, entries, {});
  CHECK_THROWS_AS(staging.memory(0), Error);
  staging.allocate();
  CHECK_THROWS_AS(staging.complete(0), Error);
  CHECK_THROWS_AS(staging.memory(2), Error);
  CHECK(staging.memory(1).empty());
  staging.complete(1);
  CHECK_THROWS_WITH_AS(staging.finish(ConstantSet(constants.values)), doctest::Contains("'a.plain' is not complete"),
                       Error);
  write(staging.memory(0), kSix);
  staging.complete(0);
  CHECK_THROWS_AS(staging.complete(0), Error);
  CHECK_THROWS_AS(staging.memory(0), Error);
  CHECK(staging.finish(ConstantSet(constants.values))->tensors()[6].numel() == 0);
}

TEST_CASE("set digest: of values, not of layouts; of every part of a constant") {
  const auto digest = [](const std::string& name, const Ints& sizes, const Ints& strides) {
    Constants constants;
    constants.add("c", name, sizes, strides);
    const ConstantTable table = constants.table();
    const std::vector<WeightEntry> entries{entry(name, sizes)};
    Staging staging(table, entries, {});
    staging.allocate();
    write(staging.memory(0), kSix);
    staging.complete(0);
    return staging.finish(ConstantSet(constants.values))->digest(table);
  };
  // Python: hashlib.sha256(b'a\0float32\0' + b'2,3\0' + struct.pack('<6f', 1, 2, 3, 4, 5, 6)).hexdigest()
  const std::string known = digest("a", {2, 3}, {3, 1});
  CHECK(known == "sha-256:4b68cc3508b21eafb1bfb60d9169c07ca26b64bc1a60033b6b7c47faab407411");
  CHECK(digest("a", {2, 3}, {1, 2}) == known);
  CHECK(digest("b", {2, 3}, {3, 1}) != known);
  CHECK(digest("a", {3, 2}, {2, 1}) != known);
}

TEST_CASE("staging: where a mapping cannot be had, that is said") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const std::vector<WeightEntry> entries{entry("a.plain"), entry("a.turned")};
  Staging staging(table, entries, {});
  const auto code = [&](int64_t nth, auto&& body) {
    const FailingMemory memory(nth);
    return code_of(body);
  };
  // The object that owns the mapping, then the mapping.
  CHECK(code(2, [&] { staging.allocate(); }) == ErrorCode::kOutOfMemory);
  staging.allocate();
  CHECK(!code(1, [&] { staging.memory(0); }));
  CHECK(code(2, [&] { staging.memory(1); }) == ErrorCode::kOutOfMemory);  // scratch
  CHECK(staging.memory(1).size() == 24);
  size_t total = 0;
  CHECK(code_of([&] { WeightMemory::place(SIZE_MAX, total); }) == ErrorCode::kOutOfMemory);
  CHECK(code_of([] { new WeightMemory(size_t{1} << 56); }) == ErrorCode::kOutOfMemory);
}

namespace {

std::string message_of(const Constants& constants, const std::vector<WeightEntry>& entries, Staging::Rules rules) {
  const ConstantTable table = constants.table();
  try {
    const Staging staging(table, entries, std::move(rules));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("staging: ignored entries are taken and forgotten") {
  const Constants constants = some();
  const ConstantTable table = constants.table();
  const ConstantSet base(constants.values);
  Staging staging(table,
                  std::vector<WeightEntry>{entry("a.plain"), entry("bias", {8}), entry("scale", {}),
                                           entry("none", {0, 7}), entry("deep", {1, 1, 1, 1, 1, 1, 1, 1, 2})},
                  {.check_finite = true, .ignore = {"scale", "bias", "deep", "none", "a.turned"}});
  staging.allocate();
  write(staging.memory(0), {1, 2, 3, 4, 5, 6});
  write(staging.memory(1), std::vector<float>(8, std::numeric_limits<float>::quiet_NaN()));
  write(staging.memory(2), {7});
  CHECK(staging.memory(3).empty());
  write(staging.memory(4), {7, 8});
  for (size_t i = 0; i < 5; ++i) {
    CHECK(!staging.takes(i));
    staging.complete(i);
  }
  const auto set = staging.finish(base);
  CHECK(elements(set->tensors()[0]) == std::vector<float>{1, 2, 3, 4, 5, 6});
  for (size_t i = 1; i < constants.values.size(); ++i)
    CHECK(set->tensors()[i].storage() == constants.values[i].storage());
}

TEST_CASE("staging: names to ignore that nobody has, and what is not ignored") {
  const Constants constants = some();
  CHECK(contains(message_of(constants, {entry("a.plain")}, {.ignore = {"bias"}}),
                 "neither the weights nor the model have 'bias'"));
  CHECK(message_of(constants, {entry("a.plain")}, {.ignore = {"a.turned", "a.plain"}}) == "no error");
  CHECK(contains(message_of(constants, {entry("a.plain")}, {.full = true, .ignore = {"a.plain"}}),
                 "a full update must name constant 'a.plain'"));
  const std::string some_unknown =
      message_of(constants, {entry("bias", {8}), entry("a.plain"), entry("scale", {})}, {});
  CHECK(contains(some_unknown, "the model has no constant 'bias', 'scale': the compiler writes"));
  CHECK(contains(some_unknown, "always_keep_tensor_constants"));
  CHECK(some_unknown.ends_with("ignore=NAME,... leaves such names out"));
  // The compiler writes neither of these into the code: one has more than eight elements, the other two dimensions.
  for (const Ints& shape : {Ints{9}, Ints{2, 2}}) {
    const std::string other = message_of(constants, {entry("bias", {8}), entry("w", shape)}, {});
    CHECK(contains(other, "'bias', 'w': what another model has"));
    CHECK(!contains(other, "always_keep"));
  }
  std::vector<WeightEntry> many;
  for (int i = 0; i < 5000; ++i) many.push_back(entry(std::string(500, 'x') + std::to_string(i), {1}));
  const std::string cut = message_of(constants, many, {});
  CHECK(cut.size() < 700);
  CHECK(contains(cut, " and 4999 more"));
  CHECK(contains(message_of(constants, {entry("huge", {int64_t{1} << 40, int64_t{1} << 40})}, {.ignore = {"huge"}}),
                 "invalid sizes"));
}

TEST_CASE("staging: a constant that is an expanded view takes values that are equal where it has one element") {
  Constants constants;
  constants.add("e", "e", {4, 3}, {0, 1}, ConstantType::kBuffer);
  const ConstantTable table = constants.table();
  const auto staged = [&](const std::vector<float>& values) {
    Staging staging(table, std::vector<WeightEntry>{entry("e", {4, 3})}, {});
    staging.allocate();
    write(staging.memory(0), values);
    staging.complete(0);
    return elements(staging.finish(ConstantSet(constants.values))->tensors()[0]);
  };
  const std::vector<float> equal{5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7};
  CHECK(staged(equal) == equal);
  std::vector<float> other = equal;
  other[7] = 8;
  CHECK_THROWS_WITH_AS(staged(other),
                       "constant 'e': it is an expanded view of 3 of its 12 elements (strides [0, 1]), and the new "
                       "values differ where it has one",
                       Error);
}
