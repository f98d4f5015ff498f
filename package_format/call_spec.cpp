#include "package_format/call_spec.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "package_format/text/json_text.h"
#include "package_format/text/json_value.h"
#include "package_format/text/source_text.h"
#include "sconce/check.h"
#include "src/support/parse_number.h"

namespace sconce {
namespace {

using json = SortedJson;

// Each level of the tree is a list of children inside an object.
constexpr int kMaxSpecDepth = 100, kMaxLevels = 2 * kMaxSpecDepth + 2;

json parse(std::string_view text) {
  json value = parse_json(text, "call spec", kMaxLevels);
  SCONCE_CHECK(!value.is_discarded(), kCorruptPackage, "call spec is not JSON: ", text.substr(0, 80));
  return value;
}

// The beginning of a value, for messages.
std::string excerpt(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 80) text.replace(80, std::string::npos, "...");
  return text;
}

void add_key(SpecNode& node, const json& key) {
  node.int_keys.push_back(key.is_number_integer());
  node.keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
}

// If `list` has a name for each child, adds these keys and returns true.
bool add_keys(SpecNode& node, const json& list) {
  if (!list.is_array() || list.size() != node.children.size()) return false;
  for (const json& key : list) add_key(node, key);
  return true;
}

bool is_names(const json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const json& key) { return key.is_string(); });
}

// torch.export.register_dataclass lists the names of the children, then the fields that are None.
bool add_fields(SpecNode& node, const json& context) {
  if (!context.is_array() || context.size() != 2 || !is_names(context[0]) || !is_names(context[1])) return false;
  if (!add_keys(node, context[0])) return false;
  for (const json& name : context[1]) {
    add_key(node, name);
    node.children.emplace_back().kind = SpecNode::Kind::kNone;
  }
  return true;
}

// A context is JSON inside a JSON string, unless the type has its own serialiser.
json read_context(const json& context) {
  if (!context.is_string()) return context;
  return parse_json(context.get_ref<const std::string&>(), "a context of the call spec");
}

void read_keys(SpecNode& node, const json& context, const char* kind) {
  SCONCE_CHECK(add_keys(node, context), kCorruptPackage, "call spec's ", kind, " does not name its ",
               node.children.size(), " children: ", excerpt(context));
}

// Whether the spec is that of a call: a tuple of the argument tuple and the keyword dict.
bool is_call(const SpecNode& node) {
  using Kind = SpecNode::Kind;
  return node.kind == Kind::kTuple && node.children.size() == 2 && node.children[0].kind == Kind::kTuple &&
         node.children[1].kind == Kind::kDict;
}

// For each user input of an ExportedProgram, in order: whether it is a tensor. nullopt if the JSON has another form.
std::optional<std::vector<bool>> tensor_leaves(std::string_view program) {
  const json value = parse_json(program, "the ExportedProgram");
  const json::json_pointer path("/graph_module/signature/input_specs");
  if (!value.is_object() || !value.contains(path) || !value[path].is_array()) return std::nullopt;
  std::vector<bool> tensors;
  for (const json& input : value[path]) {
    if (!input.is_object()) return std::nullopt;
    const json::json_pointer tensor("/user_input/arg/as_tensor");
    if (input.contains("user_input") || input.contains("constant_input")) tensors.push_back(input.contains(tensor));
  }
  return tensors;
}

// N of "argN_1"; -1 for other names.
int64_t argument_number(std::string_view name) noexcept {
  if (!name.starts_with("arg") || !name.ends_with("_1") || name.size() < 6) return -1;
  return parse_number<int64_t>(name.substr(3, name.size() - 5)).value_or(-1);
}

// The leaf of each input by the numbers in their names; empty if several answers are possible.
std::vector<size_t> numbered_leaves(std::span<const TensorSpec> inputs, size_t leaves) {
  std::vector<int64_t> numbers;
  for (const TensorSpec& input : inputs) {
    const int64_t number = argument_number(input.name);
    if (number < 0 || (!numbers.empty() && number <= numbers.back())) return {};
    numbers.push_back(number);
  }
  if (numbers.empty()) return {};
  const auto last_leaf = static_cast<int64_t>(leaves) - 1;
  const int64_t first = numbers.front();
  // Either nothing was dropped at the ends, or nothing can precede the first.
  if (numbers.back() - first != last_leaf && !(first == 0 && numbers.back() <= last_leaf)) return {};
  std::vector<size_t> result;
  for (const int64_t number : numbers) result.push_back(static_cast<size_t>(number - first));
  return result;
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
    node.kind = Kind::kDataclass;  // or a transformers output class, whose context names the fields that are set
  } else {
    node.kind = Kind::kTuple;  // a user's class with a context of its own: the children in order
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
  const json value = parse(text);
  SCONCE_CHECK(value.is_array() && value.size() == 2 && value[0] == 1, kCorruptPackage,
               "call spec is not of protocol 1: ", text.substr(0, 80));
  return read_node(value[1]);
}

CallSpec parse_call_spec(std::string_view in_spec, std::string_view out_spec) {
  CallSpec spec;
  SpecNode in = parse_treespec(in_spec);
  SCONCE_CHECK(is_call(in), kCorruptPackage, "call spec's input is not a tuple of arguments and a dict of keywords");
  spec.args = std::move(in.children[0]);
  spec.kwargs = std::move(in.children[1]);
  spec.result = parse_treespec(out_spec);
  spec.known = true;
  return spec;
}

void map_inputs(CallSpec& spec, std::span<const TensorSpec> inputs, std::string_view program) {
  spec.input_leaf.clear();
  if (!spec.known) return;
  const size_t leaves = spec.args.leaves() + spec.kwargs.leaves();
  SCONCE_CHECK(inputs.size() <= leaves, kCorruptPackage,
               "model has more inputs than its call spec has leaves: ", inputs.size(), " and ", leaves);
  if (inputs.size() == leaves) {
    spec.input_leaf.resize(leaves);
    std::iota(spec.input_leaf.begin(), spec.input_leaf.end(), size_t{0});
    return;
  }
  if (!program.empty())
    if (const auto tensors = tensor_leaves(program); tensors && tensors->size() == leaves) {
      std::vector<size_t> mapped;
      for (size_t leaf = 0; leaf < leaves; ++leaf)
        if ((*tensors)[leaf]) mapped.push_back(leaf);
      if (mapped.size() == inputs.size()) {
        spec.input_leaf = std::move(mapped);
        return;
      }
    }
  spec.input_leaf = numbered_leaves(inputs, leaves);
}

CallSpec find_call_spec(const ElfImage& so) {
  constexpr std::string_view kStart = "[1, {\"type\": ";
  const auto constants = so.exported("_binary_constants_bin_start");
  std::vector<std::string_view> found;
  for (const Elf64_Phdr& segment : so.segments()) {
    const bool code = (segment.p_flags & PF_X) != 0;
    const bool weights = constants && constants->st_value >= segment.p_vaddr &&
                         constants->st_value - segment.p_vaddr <= segment.p_filesz;
    if (segment.p_type != PT_LOAD || code || weights) continue;
    const std::span<const std::byte> bytes = so.bytes_at(segment.p_vaddr, segment.p_filesz);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (size_t at = find_text(text, kStart); at != std::string_view::npos; at = find_text(text, kStart, at + 1)) {
      const size_t end = text.find('\0', at);
      if (end != std::string_view::npos) found.push_back(text.substr(at, end - at));
    }
  }
  if (found.size() == 1) found.push_back(found.front());  // the linker merged two equal strings
  if (found.size() != 2) return {};
  const bool first = is_call(parse_treespec(found[0])), second = is_call(parse_treespec(found[1]));
  if (first == second && found[0] != found[1]) return {};
  return first ? parse_call_spec(found[0], found[1]) : parse_call_spec(found[1], found[0]);
}

}  // namespace sconce
