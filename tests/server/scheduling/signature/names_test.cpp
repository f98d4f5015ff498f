#include "server/scheduling/signature/names.h"

#include <doctest/doctest.h>

#include "tests/server/spec_builder.h"

namespace sconce::server::scheduling {

using Kind = SpecNode::Kind;

namespace {

std::vector<std::string> all(const TensorNames& names) {
  std::vector<std::string> list;
  for (size_t i = 0; i < names.size(); ++i) list.push_back(names.name(i));
  return list;
}

ModelSpec model(size_t inputs, size_t outputs) {
  ModelSpec spec;
  for (size_t i = 0; i < inputs; ++i) spec.inputs.emplace_back().name = "arg" + std::to_string(i) + "_1";
  for (size_t i = 0; i < outputs; ++i) spec.outputs.emplace_back().name = "output" + std::to_string(i);
  return spec;
}

}  // namespace

TEST_CASE("names: arguments, nested and by keyword") {
  ModelSpec spec = model(6, 3);
  spec.call_spec.known = true;
  spec.call_spec.args = spec_tuple({spec_leaf(), spec_node(Kind::kList, {spec_leaf(), spec_leaf()}),
                                    spec_node(Kind::kDict, {spec_leaf()}, {"key"})});
  spec.call_spec.kwargs = spec_node(Kind::kDict, {spec_leaf(), spec_tuple({spec_leaf()})}, {"mask", "pair"});
  spec.call_spec.input_leaf = {0, 1, 2, 3, 4, 5};
  spec.call_spec.result = spec_node(Kind::kDict,
                                    {spec_node(Kind::kNamedTuple, {spec_leaf()}), spec_node(Kind::kNone),
                                     spec_node(Kind::kDataclass, {spec_leaf(), spec_leaf()}, {"a", "b"})},
                                    {"logits", "none", "stats"});
  const TensorNames inputs = TensorNames::of_inputs(spec);
  CHECK(all(inputs) == std::vector<std::string>{"ARGS[0]", "ARGS[1][0]", "ARGS[1][1]", "ARGS[2][key]", "KWARGS[mask]",
                                                "KWARGS[pair][0]"});
  CHECK(inputs.find("ARGS[2][key]") == 3);
  CHECK(inputs.find("INPUT__4") == 4);
  CHECK(inputs.find("arg5_1") == 5);
  CHECK_FALSE(inputs.find("INPUT__6").has_value());
  CHECK_FALSE(inputs.find("").has_value());
  CHECK_FALSE(inputs.find("args[0]").has_value());
  const TensorNames outputs = TensorNames::of_outputs(spec);
  CHECK(all(outputs) == std::vector<std::string>{"RESULT[logits][0]", "RESULT[stats][a]", "RESULT[stats][b]"});
  CHECK(outputs.find("OUTPUT__2") == 2);
  CHECK(outputs.find("output0") == 0);
  CHECK(outputs.list() == "'RESULT[logits][0]', 'RESULT[stats][a]', 'RESULT[stats][b]'");
}

TEST_CASE("names: one tensor and a tuple of one") {
  ModelSpec spec = model(1, 1);
  spec.call_spec.known = true;
  spec.call_spec.result = spec_leaf();
  CHECK(all(TensorNames::of_outputs(spec)) == std::vector<std::string>{"RESULT"});
  spec.call_spec.result = spec_tuple({spec_leaf()});
  CHECK(all(TensorNames::of_outputs(spec)) == std::vector<std::string>{"RESULT[0]"});
}

TEST_CASE("names: dropped leaves") {
  ModelSpec spec = model(2, 1);
  spec.call_spec.known = true;
  spec.call_spec.args = spec_tuple({spec_leaf(), spec_leaf(), spec_leaf()});
  spec.call_spec.kwargs = spec_node(Kind::kDict);
  spec.call_spec.result = spec_leaf();
  spec.call_spec.input_leaf = {0, 2};
  CHECK(all(TensorNames::of_inputs(spec)) == std::vector<std::string>{"ARGS[0]", "ARGS[2]"});
  // If it is unknown which arguments are tensors, inputs are numbered.
  spec.call_spec.input_leaf = {};
  CHECK(all(TensorNames::of_inputs(spec)) == std::vector<std::string>{"INPUT__0", "INPUT__1"});
}

TEST_CASE("names: no call spec, or one that does not fit") {
  ModelSpec spec = model(1, 2);
  CHECK(all(TensorNames::of_inputs(spec)) == std::vector<std::string>{"INPUT__0"});
  CHECK(all(TensorNames::of_outputs(spec)) == std::vector<std::string>{"OUTPUT__0", "OUTPUT__1"});
  spec.call_spec.known = true;
  spec.call_spec.result = spec_leaf();
  CHECK(all(TensorNames::of_outputs(spec)) == std::vector<std::string>{"OUTPUT__0", "OUTPUT__1"});
}

TEST_CASE("names: keys that look alike, and keys that need escaping") {
  ModelSpec spec = model(0, 3);
  spec.call_spec.known = true;
  spec.call_spec.result = spec_node(Kind::kDict, {spec_leaf(), spec_leaf(), spec_leaf()}, {"1", "1", "a\"b"});
  const TensorNames outputs = TensorNames::of_outputs(spec);
  CHECK(all(outputs) == std::vector<std::string>{"RESULT[1]", "OUTPUT__1", "RESULT[a\"b]"});
  CHECK(outputs.find("RESULT[1]") == 0);
  CHECK(outputs.find("OUTPUT__1") == 1);
  CHECK(outputs.json(2) == "\"RESULT[a\\\"b]\"");
}

TEST_CASE("names: other main names beside those of the package") {
  const TensorNames names = TensorNames::of_inputs(model(2, 1)).renamed({"image", "INPUT__0"});
  CHECK(all(names) == std::vector<std::string>{"image", "INPUT__0"});
  CHECK(names.json(0) == "\"image\"");
  CHECK(names.find("image") == 0);
  CHECK(names.find("INPUT__0") == 1);  // the new name, not the old one of the first
  CHECK(names.find("INPUT__1") == 1);
  CHECK(names.find("arg0_1") == 0);
  CHECK_THROWS_WITH(TensorNames::of_inputs(model(2, 1)).renamed({"x", "x"}), "two tensors have the name 'x'");
}

}  // namespace sconce::server::scheduling
