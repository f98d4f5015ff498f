#include "package_format/call_spec.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"

using namespace sconce;
using Kind = SpecNode::Kind;

namespace {

const std::string kLeaf = R"({"type": null, "context": null, "children_spec": []})";

// The JSON of one node; children are JSON.
std::string node(const std::string& type, const std::string& context, const std::vector<std::string>& children) {
  std::string text = R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)";
  for (size_t i = 0; i < children.size(); ++i) text += (i ? ", " : "") + children[i];
  return text + "]}";
}

std::string spec(const std::string& node) { return "[1, " + node + "]"; }

std::string message(const std::string& text) {
  return error_from(ErrorCode::kCorruptPackage, [&] { parse_treespec(text); });
}

std::vector<TensorSpec> unnamed(size_t count) { return std::vector<TensorSpec>(count); }

}  // namespace

// The texts are what torch 2.15's treespec_dumps gives for the values in the comments.
TEST_CASE("treespec: every kind of node that PyTorch writes") {
  SUBCASE("leaf: torch.ones(2), None, 3, slice") {
    const SpecNode got = parse_treespec(spec(kLeaf));
    CHECK(got.kind == Kind::kLeaf);
    CHECK(got.leaves() == 1);
  }
  SUBCASE("dict: {1: t, \"b\": t}") {
    const SpecNode got = parse_treespec(spec(node("builtins.dict", R"("[1, \"b\"]")", {kLeaf, kLeaf})));
    CHECK(got.kind == Kind::kDict);
    CHECK(got.keys == std::vector<std::string>{"1", "b"});
    CHECK(got.int_keys == std::vector<bool>{true, false});
  }
  SUBCASE("dict with other keys: {(1, 2): t, 2.5: t, None: t, True: t}") {
    const SpecNode got =
        parse_treespec(spec(node("builtins.dict", R"("[[1, 2], 2.5, null, true]")", {kLeaf, kLeaf, kLeaf, kLeaf})));
    CHECK(got.keys == std::vector<std::string>{"[1,2]", "2.5", "null", "true"});
    CHECK(got.int_keys == std::vector<bool>(4, false));
  }
  SUBCASE("OrderedDict(a=t), defaultdict(list, {\"k\": t}), deque([t, t], maxlen=3)") {
    CHECK(parse_treespec(spec(node("collections.OrderedDict", R"("[\"a\"]")", {kLeaf}))).keys ==
          std::vector<std::string>{"a"});
    const SpecNode defaults = parse_treespec(spec(node(
        "collections.defaultdict",
        R"({"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["k"]})", {kLeaf})));
    CHECK(defaults.kind == Kind::kDefaultDict);
    CHECK(defaults.keys == std::vector<std::string>{"k"});
    CHECK(parse_treespec(spec(node("collections.deque", R"("3")", {kLeaf, kLeaf}))).kind == Kind::kDeque);
  }
  SUBCASE("namedtuple and torch.return_types") {
    const std::string list = node("builtins.list", R"("null")", {kLeaf, kLeaf});
    const SpecNode point = parse_treespec(spec(node("collections.namedtuple", R"("m.N")", {kLeaf, list})));
    CHECK(point.kind == Kind::kNamedTuple);
    CHECK(point.type == "m.N");
    CHECK(point.leaves() == 3);
    CHECK(parse_treespec(spec(node("torch.return_types.max", R"("null")", {kLeaf, kLeaf}))).kind == Kind::kNamedTuple);
  }
  SUBCASE("registered dataclass: fields that are None keep their name and have no leaf") {
    const SpecNode got = parse_treespec(spec(node("m.D", R"("[[\"a\", \"c\"], [\"b\"]]")", {kLeaf, kLeaf})));
    CHECK(got.kind == Kind::kDataclass);
    CHECK(got.keys == std::vector<std::string>{"a", "c", "b"});
    CHECK(got.children.size() == 3);
    CHECK(got.children[2].kind == Kind::kNone);
    CHECK(got.leaves() == 2);
  }
  SUBCASE("an output class of transformers, and a class whose context is its own") {
    const SpecNode output = parse_treespec(spec(node("t.Output", R"("[\"logits\", \"loss\"]")", {kLeaf, kLeaf})));
    CHECK(output.kind == Kind::kDataclass);
    CHECK(output.keys == std::vector<std::string>{"logits", "loss"});
    const SpecNode other = parse_treespec(spec(node("t.Other", R"("{\"x\": 1}")", {kLeaf, kLeaf})));
    CHECK(other.kind == Kind::kTuple);
    CHECK(other.type == "t.Other");
  }
}

TEST_CASE("treespec: what is not one is refused with the reason") {
  CHECK(message("").find("not JSON") != std::string::npos);
  CHECK(message("[1, {").find("not JSON") != std::string::npos);
  CHECK(message("[2, " + kLeaf + "]").find("protocol 1") != std::string::npos);
  CHECK(message("{}").find("protocol 1") != std::string::npos);
  CHECK(message("[1, {\"type\": null}]").find("without type") != std::string::npos);
  CHECK(message(spec(R"({"type": null, "context": null, "children_spec": [1]})")).find("leaf with children") !=
        std::string::npos);
  CHECK(message(spec(R"({"type": 3, "context": null, "children_spec": []})")).find("not a name") != std::string::npos);
  CHECK(message(spec(node("builtins.dict", R"("[\"a\"]")", {kLeaf, kLeaf}))).find("does not name its 2 children") !=
        std::string::npos);
  CHECK(message(spec(node("builtins.dict", R"("nonsense")", {kLeaf}))).find("does not name") != std::string::npos);
}

TEST_CASE("treespec: depth is bounded") {
  std::string deep = kLeaf;
  for (int i = 0; i < 99; ++i) deep = node("builtins.list", R"("null")", {deep});
  CHECK(parse_treespec(spec(deep)).leaves() == 1);
  for (int i = 0; i < 3; ++i) deep = node("builtins.list", R"("null")", {deep});
  CHECK(message(spec(deep)).find("nested deeper") != std::string::npos);
  CHECK(message(std::string(1000000, '[')).find("nested deeper") != std::string::npos);
}

TEST_CASE("treespec: depth of the JSON within a context is bounded, and messages repeat little of it") {
  // What stands in the string is JSON of its own: walking 300,000 levels of it ended the process.
  const std::string deep = '"' + std::string(300000, '[') + std::string(300000, ']') + '"';
  for (const char* type : {"builtins.dict", "collections.OrderedDict", "collections.defaultdict", "mine.Record"})
    CHECK(message(spec(node(type, deep, {kLeaf}))) == "a context of the call spec is nested deeper than 256 levels");
  std::string keys = "\"[";
  for (int i = 0; i < 100000; ++i) keys += "1,";
  const std::string told = message(spec(node("builtins.dict", keys + "1]\"", {kLeaf})));
  CHECK(told.find("does not name") != std::string::npos);
  CHECK(told.size() < 300);
}

TEST_CASE("call spec: arguments, keywords in recorded order, and the leaf of each input") {
  const std::string kwargs = node("builtins.dict", R"("[\"shift\", \"scale\"]")", {kLeaf, kLeaf});
  const std::string in =
      spec(node("builtins.tuple", R"("null")", {node("builtins.tuple", R"("null")", {kLeaf}), kwargs}));
  CallSpec got = parse_call_spec(in, spec(kLeaf));
  CHECK(got.known);
  CHECK(got.kwargs.keys == std::vector<std::string>{"shift", "scale"});
  CHECK(got.result.kind == Kind::kLeaf);
  CHECK(got.input_leaf.empty());
  CHECK_THROWS_AS(parse_call_spec(spec(kLeaf), spec(kLeaf)), Error);

  map_inputs(got, unnamed(3));
  CHECK(got.input_leaf == std::vector<size_t>{0, 1, 2});
  map_inputs(got, unnamed(2));  // one leaf is no tensor; which one is not recorded
  CHECK(got.input_leaf.empty());
  const std::string program = R"({"graph_module": {"signature": {"input_specs": [
      {"parameter": {"arg": {"name": "p"}}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
      {"constant_input": {"name": "shift", "value": {"as_none": true}}},
      {"user_input": {"arg": {"as_tensor": {"name": "scale"}}}}]}}})";
  map_inputs(got, unnamed(2), program);
  CHECK(got.input_leaf == std::vector<size_t>{0, 2});
  map_inputs(got, unnamed(1), program);  // the program is not this model's
  CHECK(got.input_leaf.empty());
  map_inputs(got, unnamed(2), "{}");
  CHECK(got.input_leaf.empty());
  CHECK_THROWS_AS(map_inputs(got, unnamed(4)), Error);
}

TEST_CASE("call spec: dropped leaves by the numbers in the inputs' names") {
  const std::string three = node("builtins.tuple", R"("null")", {kLeaf, kLeaf, kLeaf});
  CallSpec call = parse_call_spec(
      spec(node("builtins.tuple", R"("null")", {three, node("builtins.dict", R"("[]")", {})})), spec(kLeaf));
  const auto leaves = [&](const std::vector<std::string>& names, std::string_view program = {}) {
    std::vector<TensorSpec> inputs(names.size());
    for (size_t i = 0; i < names.size(); ++i) inputs[i].name = names[i];
    map_inputs(call, inputs, program);
    return call.input_leaf;
  };
  using Leaves = std::vector<size_t>;
  CHECK(leaves({"arg4_1", "arg6_1"}) == Leaves{0, 2});  // the middle one was dropped
  CHECK(leaves({"arg4_1", "arg5_1"}).empty());          // the first or the last one
  CHECK(leaves({"arg1_1", "arg2_1"}).empty());
  CHECK(leaves({"arg0_1", "arg1_1"}) == Leaves{0, 1});  // nothing can stand before the first
  CHECK(leaves({"arg0_1"}) == Leaves{0});
  CHECK(leaves({"arg4_1", "arg9_1"}).empty());  // too far apart
  CHECK(leaves({"arg6_1", "arg4_1"}).empty());  // not in order
  CHECK(leaves({"x", "arg4_1"}).empty());
  CHECK(leaves({"arg_1", "arg2_1"}).empty());
  CHECK(leaves({}).empty());
  CHECK(leaves({"x", "y", "z"}) == Leaves{0, 1, 2});  // every leaf is an input
  // What the program says counts for more.
  const std::string program = R"({"graph_module": {"signature": {"input_specs": [
      {"constant_input": {"name": "n"}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
      {"user_input": {"arg": {"as_tensor": {"name": "y"}}}}]}}})";
  CHECK(leaves({"arg0_1", "arg1_1"}, program) == Leaves{1, 2});
}
