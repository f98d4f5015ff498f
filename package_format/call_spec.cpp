#include "package_format/call_spec.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sconce/check.h"

namespace sconce {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 100;

// Deep nesting would exhaust the stack of whoever walks the tree; it is refused before anything is built.
void check_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      // Every level of the tree is a list of children and an object.
      SCONCE_CHECK(++depth <= 2 * kMaxDepth + 2, kCorruptPackage, "call spec is nested deeper than ", kMaxDepth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
}

json parse(std::string_view text) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  SCONCE_CHECK(!value.is_discarded(), kCorruptPackage, "call spec is not JSON: ", text.substr(0, 80));
  return value;
}

void add_key(SpecNode& node, const json& key) {
  node.int_keys.push_back(key.is_number_integer());
  node.keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
}

// True, with keys added, if `list` names each child.
bool add_keys(SpecNode& node, const json& list) {
  if (!list.is_array() || list.size() != node.children.size()) return false;
  for (const json& key : list) add_key(node, key);
  return true;
}

bool is_names(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& key) { return key.is_string(); });
}

// torch.export.register_dataclass: the names of the children, then the names of fields that are None.
bool add_fields(SpecNode& node, const json& context) {
  if (!context.is_array() || context.size() != 2 || !is_names(context[0]) || !is_names(context[1])) return false;
  if (!add_keys(node, context[0])) return false;
  for (const json& name : context[1]) {
    add_key(node, name);
    node.children.emplace_back().kind = SpecNode::Kind::kNone;
  }
  return true;
}

// Contexts are JSON inside a JSON string, except those that a type's own serialiser makes.
json read_context(const json& context) {
  if (!context.is_string()) return context;
  return json::parse(context.get_ref<const std::string&>(), nullptr, /*allow_exceptions=*/false);
}

void read_keys(SpecNode& node, const json& context, const char* kind) {
  SCONCE_CHECK(add_keys(node, context), kCorruptPackage, "call spec's ", kind, " does not name its ",
               node.children.size(), " children: ", context.dump(-1, ' ', false, json::error_handler_t::replace));
}

SpecNode read_node(const json& value) {
  SCONCE_CHECK(value.is_object() && value.contains("type") && value.contains("context") &&
                   value.contains("children_spec") && value["children_spec"].is_array(),
               kCorruptPackage, "call spec has a node without type, context and children");
  SpecNode node;
  const json& type = value["type"];
  const json& children = value["children_spec"];
  if (type.is_null()) {
    SCONCE_CHECK(children.empty(), kCorruptPackage, "call spec has a leaf with children");
    return node;
  }
  SCONCE_CHECK(type.is_string(), kCorruptPackage, "call spec has a node whose type is not a name");
  node.type = type.get<std::string>();
  for (const json& child : children) node.children.push_back(read_node(child));

  const json context = read_context(value["context"]);
  using Kind = SpecNode::Kind;
  if (node.type == "builtins.tuple") {
    node.kind = Kind::kTuple;
  } else if (node.type == "builtins.list") {
    node.kind = Kind::kList;
  } else if (node.type == "builtins.dict") {
    node.kind = Kind::kDict;
    read_keys(node, context, "dict");
  } else if (node.type == "collections.OrderedDict") {
    node.kind = Kind::kOrderedDict;
    read_keys(node, context, "OrderedDict");
  } else if (node.type == "collections.defaultdict") {
    node.kind = Kind::kDefaultDict;
    read_keys(node, context.is_object() ? context.value("dict_context", json()) : json(), "defaultdict");
  } else if (node.type == "collections.deque") {
    node.kind = Kind::kDeque;
  } else if (node.type == "collections.namedtuple") {
    // The context is the class's name, not JSON; field names are not recorded.
    node.kind = Kind::kNamedTuple;
    if (value["context"].is_string()) node.type = value["context"].get<std::string>();
  } else if (node.type.starts_with("torch.return_types.")) {
    node.kind = Kind::kNamedTuple;
  } else if (add_fields(node, context) || (is_names(context) && add_keys(node, context))) {
    node.kind = Kind::kDataclass;  // or an output class of transformers, whose context names the fields that are set
  } else {
    node.kind = Kind::kTuple;  // a class of the user's with a context of its own: the children in order
  }
  return node;
}

}  // namespace

size_t SpecNode::leaves() const noexcept {
  if (kind == Kind::kLeaf) return 1;
  return std::accumulate(children.begin(), children.end(), size_t{0},
                         [](size_t sum, const SpecNode& child) { return sum + child.leaves(); });
}

SpecNode parse_treespec(std::string_view text) {
  check_depth(text);
  const json value = parse(text);
  SCONCE_CHECK(value.is_array() && value.size() == 2 && value[0] == 1, kCorruptPackage,
               "call spec is not of protocol 1: ", text.substr(0, 80));
  return read_node(value[1]);
}

CallSpec parse_call_spec(std::string_view in_spec, std::string_view out_spec, size_t inputs) {
  CallSpec spec;
  SpecNode in = parse_treespec(in_spec);
  using Kind = SpecNode::Kind;
  SCONCE_CHECK(in.kind == Kind::kTuple && in.children.size() == 2 && in.children[0].kind == Kind::kTuple &&
                   in.children[1].kind == Kind::kDict,
               kCorruptPackage, "call spec's input is not a tuple of arguments and a dict of keywords");
  spec.args = std::move(in.children[0]);
  spec.kwargs = std::move(in.children[1]);
  spec.result = parse_treespec(out_spec);
  spec.known = true;
  const size_t leaves = spec.args.leaves() + spec.kwargs.leaves();
  SCONCE_CHECK(inputs <= leaves, kCorruptPackage, "model has more inputs than its call spec has leaves: ", inputs,
               " and ", leaves);
  if (inputs == leaves) {
    spec.input_leaf.resize(inputs);
    std::iota(spec.input_leaf.begin(), spec.input_leaf.end(), size_t{0});
  }
  return spec;
}

}  // namespace sconce
