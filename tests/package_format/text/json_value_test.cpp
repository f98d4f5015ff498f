// Values of JSON are destroyed where there is no memory at all.
#include "package_format/text/json_value.h"

#include <doctest/doctest.h>

#include <optional>
#include <utility>

#include "tests/runner/counted_memory.h"

namespace sconce {
namespace {

template <class Json>
Json sample(int depth = 10'000) {
  Json json = {{"name", "a name that is too long to be kept in place"}, {"list", {1, 2.5, "three", nullptr, true}}};
  json["nested"] = {{"objects", {{{"x", 1}}, {{"x", 2}, {"y", Json::array({Json::array({Json::object()})})}}}}};
  json["empty"] = Json::array();
  Json deep = "the end";
  for (int i = 0; i < depth; ++i) deep = Json::array({std::move(deep), i});
  json["deep"] = std::move(deep);
  return json;
}

}  // namespace

TEST_CASE_TEMPLATE("json values: destroyed without memory", Json, SortedJson, OrderedJson) {
  std::optional<Json> json(sample<Json>());
  const int64_t before = test::counts().allocations;
  json.reset();
  CHECK(test::counts().allocations == before);
}

TEST_CASE_TEMPLATE("json values: no memory at any step of building them", Json, SortedJson, OrderedJson) {
  int64_t failures = 0;
  for (int64_t nth = 1;; ++nth) {
    const test::FailingMemory none(nth);
    try {
      // Of a list of initialisers nlohmann loses what it has made so far: docs/faults.md.
      Json json = Json::parse(R"({"name":[1,2,[3,"a text that is too long to be kept in place"]],"list":[[{"x":1}]]})");
      Json name = json["name"];
      // Of a null value nlohmann's operator[] makes an object before it has the memory: values begin as what they are.
      json["more"] = Json::object();
      json["more"]["object"] = std::move(name);
      const Json copy = Json::parse(json.dump());
      if (copy != json) FAIL_CHECK("another value");
    } catch (const std::bad_alloc&) {
      ++failures;
      continue;
    }
    if (!none.failed()) break;
  }
  CHECK(failures > 20);
}

TEST_CASE_TEMPLATE("json values: copied, compared and printed as nlohmann's own", Json, SortedJson, OrderedJson) {
  const Json json = sample<Json>(500);  // copying and comparing take a frame of the stack a level
  CHECK(Json(json) == json);
  CHECK(Json::parse(R"({"b":[1,{"c":null}],"a":-2})").at("b")[1].at("c").is_null());
  CHECK(json.at("nested").dump() == R"({"objects":[{"x":1},{"x":2,"y":[[{}]]}]})");
}

TEST_CASE("json values: the order of keys") {
  CHECK(SortedJson::parse(R"({"b":1,"a":2})").dump() == R"({"a":2,"b":1})");
  CHECK(OrderedJson::parse(R"({"b":1,"a":2})").dump() == R"({"b":1,"a":2})");
}

}  // namespace sconce
