#include "src/runner/constants/tied_names.h"

#include <doctest/doctest.h>

#include <cstring>

#include "src/runner/constants/staging.h"
#include "tests/runner/fake_runner.h"

using namespace sconce;
using namespace sconce::runner;
using namespace sconce::test;

namespace {

using Names = std::vector<std::vector<std::string>>;

Names groups(const std::string& text) {
  ModelSpec spec;
  spec.metadata["sconce_tied"] = text;
  return tied_names(spec);
}

std::string refusal(const std::string& text) {
  return error_from(ErrorCode::kCorruptPackage, [&] { groups(text); });
}

WeightEntry entry(const std::string& name, const std::vector<std::string>& tied = {}) {
  return {name, DType::kFloat32, {2, 3}, tied};
}

// A model with constants "w" and "turned", of two layouts, "x" and "y".
struct Tied {
  explicit Tied(const std::string& names) {
    spec.metadata["sconce_tied"] = R"({"version": 1, "names": {)" + names + "}}";
    for (const char* name : {"w", "turned", "x", "y"}) {
      listed.push_back({std::string("c_") + name, name, false, static_cast<int32_t>(ConstantType::kParameter),
                        static_cast<int32_t>(DType::kFloat32), 0});
      Tensor value = Tensor::empty_strided(Ints{2, 3}, *name == 't' ? Ints{1, 2} : Ints{3, 1}, DType::kFloat32);
      std::memset(value.storage()->data(), 0, value.storage()->bytes());
      values.push_back(value);
    }
    table = std::make_unique<ConstantTable>(listed, values, spec);
  }

  // The first element of each constant after an update, whose entries are completed in this order.
  std::vector<float> staged(const std::vector<WeightEntry>& entries, const std::vector<float>& first,
                            std::vector<size_t> order = {}, Staging::Rules rules = {}) const {
    const bool gradual = rules.gradual, keep = rules.keep;
    Staging staging(*table, gradual ? std::span(entries).first(1) : std::span(entries), std::move(rules));
    staging.allocate();
    for (size_t i = order.size(); i < entries.size(); ++i) order.push_back(i);
    for (const size_t i : order) {
      if (gradual && i > 0) {
        staging.add(std::span(entries).subspan(i, 1));
        staging.allocate();
      }
      const std::vector<float> elements{first[i], 1, 2, 3, 4, 5};
      const std::span<std::byte> memory = staging.memory(i);
      REQUIRE(memory.size() == 24);
      std::memcpy(memory.data(), elements.data(), 24);
      staging.complete(i);
    }
    staging.check_complete();
    std::vector<float> result;
    if (!keep) return result;
    const auto set = staging.finish(ConstantSet(values));
    for (const Tensor& tensor : set->tensors()) result.push_back(tensor.data_as<float>()[0]);
    return result;
  }
  std::string refused(const std::vector<WeightEntry>& entries, const std::vector<float>& first,
                      const std::vector<size_t>& order = {}, const Staging::Rules& rules = {}) const {
    return error_from(ErrorCode::kInvalidArgument, [&] { staged(entries, first, order, rules); });
  }

  ModelSpec spec;
  std::vector<loader::ContainerConstant> listed;
  std::vector<Tensor> values;
  std::unique_ptr<ConstantTable> table;
};

}  // namespace

TEST_CASE("tied names: groups, and metadata that says no such thing") {
  CHECK(tied_names(ModelSpec{}).empty());
  CHECK(groups(R"({"version": 2, "names": 7})").empty());
  CHECK(groups(R"({"version": 1, "names": {"a": "c", "b": "c", "x": "y"}})") == Names{{"c", "a", "b"}, {"y", "x"}});
  CHECK(refusal("[]") == "metadata sconce_tied: no JSON object with a version");
  CHECK(refusal(R"({"version": 1})") == "metadata sconce_tied: no object of names");
  CHECK(refusal(R"({"version": 1, "names": {"a": 7}})") == "metadata sconce_tied: 'a' stands for no name");
  CHECK(refusal(R"({"version": 1, "names": {"a": "b", "b": "a"}})") ==
        "metadata sconce_tied: 'a' stands for 'b', which stands for another");
  CHECK(refusal(R"({"version": 1, "names": {"a": "a"}})") ==
        "metadata sconce_tied: 'a' stands for 'a', which stands for another");
  CHECK(contains(refusal(std::string(100000, '[')), "metadata sconce_tied"));
}

TEST_CASE("tied names: a constant takes any of its names, alone") {
  const Tied model(R"("a": "w", "b": "w", "t": "turned", "nobody": "folded")");
  for (const char* name : {"a", "b", "w"}) {
    CHECK(model.staged({entry(name)}, {7}) == std::vector<float>{7, 0, 0, 0});
    CHECK(model.staged({entry(name), entry("turned"), entry("x"), entry("y")}, {7, 8, 9, 10}, {}, {.full = true}) ==
          std::vector<float>{7, 8, 9, 10});
  }
  CHECK(model.staged({entry("t")}, {7}) == std::vector<float>{0, 7, 0, 0});
  CHECK(!model.table->has("nobody"));
  CHECK(model.table->has("a"));
  CHECK(model.table->is_tied(0));
  CHECK(!model.table->is_tied(2));
  CHECK(contains(error_from(ErrorCode::kInvalidArgument,
                            [&] {
                              Staging(*model.table, std::vector<WeightEntry>{{"a", DType::kFloat32, {3, 2}}}, {});
                            }),
                 "'a': expected shape [2, 3], got [3, 2]"));
}

TEST_CASE("tied names: several names of a constant must have the same bytes, whichever is complete first") {
  const Tied model(R"("a": "w", "b": "w", "t": "turned")");
  const std::vector<WeightEntry> three{entry("a"), entry("b"), entry("w")}, turned{entry("turned"), entry("t")};
  for (const bool keep : {true, false}) {
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
      CHECK(model.staged(three, {7, 7, 7}, order, {.keep = keep}) ==
            (keep ? std::vector<float>{7, 0, 0, 0} : std::vector<float>{}));
      CHECK(contains(model.refused(three, {7, 7, 8}, order, {.keep = keep}), "are tied in the model"));
      CHECK(contains(model.refused(three, {7, 8, 7}, order, {.keep = keep}), "first at element 0"));
    }
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1}, {1, 0}}) {
      CHECK(model.staged(turned, {7, 7}, order, {.keep = keep}).size() == (keep ? 4 : 0));
      CHECK(contains(model.refused(turned, {7, 8}, order, {.keep = keep}), "'turned'"));
      CHECK(contains(model.refused(turned, {7, 8}, order, {.keep = keep}), "'t'"));
    }
    // Entries that are declared one after the other.
    CHECK(model.staged(three, {7, 7, 7}, {}, {.keep = keep, .gradual = true}).size() == (keep ? 4 : 0));
    CHECK(contains(model.refused(three, {7, 7, 8}, {}, {.keep = keep, .gradual = true}), "their values differ"));
  }
  // Bytes decide: -0 is not 0.
  CHECK(contains(model.refused({entry("a"), entry("w")}, {0.0F, -0.0F}), "'w' and 'a'") !=
        contains(model.refused({entry("a"), entry("w")}, {0.0F, -0.0F}), "'a' and 'w'"));
  CHECK(contains(model.refused({entry("a"), entry("a")}, {7, 7}), "'a' is given twice"));
  CHECK(contains(model.refused({entry("w"), entry("c_w")}, {7, 7}), "'c_w' is given twice"));
  // A name that is ignored is not compared.
  CHECK(model.staged({entry("w"), entry("a")}, {7, 8}, {}, {.ignore = {"a"}}) == std::vector<float>{7, 0, 0, 0});
}

TEST_CASE("tied names: a file's own word for them") {
  const Tied model("");
  // The file kept a name that the model has not.
  CHECK(model.staged({entry("kept", {"w"})}, {7}) == std::vector<float>{7, 0, 0, 0});
  CHECK(model.staged({entry("kept", {"nobody", "w", "turned"})}, {7}) == std::vector<float>{7, 7, 0, 0});
  // The model has several constants for one tensor.
  CHECK(model.staged({entry("x", {"y"}), entry("w")}, {7, 8}) == std::vector<float>{8, 0, 7, 7});
  CHECK(model.staged({entry("x", {"y"}), entry("y")}, {7, 7}) == std::vector<float>{0, 0, 7, 7});
  CHECK(contains(model.refused({entry("x", {"y"}), entry("y")}, {7, 8}), "their values differ"));
  CHECK(contains(model.refused({entry("y"), entry("x", {"y"})}, {7, 8}), "their values differ"));
  CHECK(model.staged({entry("x", {"y"})}, {7}, {}, {.ignore = {"y"}}) == std::vector<float>{0, 0, 7, 0});
  CHECK(contains(error_from(ErrorCode::kNotFound, [&] { model.staged({entry("kept", {"nobody"})}, {7}); }),
                 "the model has no constant 'kept'"));
  // With the package's word.
  const Tied both(R"("a": "w")");
  CHECK(both.staged({entry("kept", {"a", "w"})}, {7}) == std::vector<float>{7, 0, 0, 0});
}

TEST_CASE("tied names: values that differ in one element, in either order") {
  const Tied model(R"("t": "turned")");
  const auto given = [&](float last) {
    for (const size_t first : {size_t{0}, size_t{1}}) {
      Staging staging(*model.table, std::vector<WeightEntry>{entry("turned"), entry("t")}, {});
      staging.allocate();
      for (const size_t i : {first, 1 - first}) {
        const std::vector<float> values{0, 1, 2, 3, 4, i == 0 ? 5 : last};
        std::memcpy(staging.memory(i).data(), values.data(), values.size() * sizeof(float));
        staging.complete(i);
      }
      CHECK(staging.finish(ConstantSet(model.values))->tensors()[1].data_as<float>()[1] == 3);
    }
  };
  given(5);
  CHECK(contains(error_from(ErrorCode::kInvalidArgument, [&] { given(6); }), "first at element 5"));
}
