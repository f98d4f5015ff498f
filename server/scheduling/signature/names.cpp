#include "server/scheduling/signature/names.h"

#include "sconce/check.h"
#include "server/support/json_cursor.h"
#include "src/support/excerpt.h"

namespace sconce::server::scheduling {
namespace {

bool has_keys(const SpecNode& node) noexcept {
  using Kind = SpecNode::Kind;
  return node.kind == Kind::kDict || node.kind == Kind::kOrderedDict || node.kind == Kind::kDefaultDict ||
         node.kind == Kind::kDataclass;
}

// Collects the names of the leaves below `node`, in flat order.
void collect(const SpecNode& node, const std::string& path, std::vector<std::string>& names) {
  if (node.kind == SpecNode::Kind::kLeaf) {
    names.push_back(path);
    return;
  }
  for (size_t i = 0; i < node.children.size(); ++i) {
    const std::string key = has_keys(node) ? node.keys[i] : std::to_string(i);
    collect(node.children[i], path + "[" + key + "]", names);
  }
}

}  // namespace

TensorNames::TensorNames(std::vector<std::string> names, std::string_view alias,
                         const std::vector<TensorSpec>& tensors) {
  names.resize(tensors.size());
  const auto alias_of = [&](size_t i) { return std::string(alias) + std::to_string(i); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    // Two keys may have the same text (1 and "1"): the second tensor then has only its alias.
    if (names[i].empty() || !index_.emplace(names[i], i).second) names[i] = alias_of(i);
  }
  for (size_t i = 0; i < tensors.size(); ++i) index_.emplace(alias_of(i), i);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].name.empty()) index_.emplace(tensors[i].name, i);
  }
  first_ = std::move(names);
  for (const std::string& name : first_) append_json_string(json_.emplace_back(), name);
}

TensorNames TensorNames::of_inputs(const ModelSpec& spec) {
  std::vector<std::string> names(spec.inputs.size());
  if (const std::vector<size_t>& leaf_of = spec.call_spec.input_leaf; leaf_of.size() == names.size()) {
    std::vector<std::string> leaves;
    collect(spec.call_spec.args, "ARGS", leaves);
    collect(spec.call_spec.kwargs, "KWARGS", leaves);
    for (size_t i = 0; i < names.size(); ++i) {
      if (leaf_of[i] < leaves.size()) names[i] = leaves[leaf_of[i]];
    }
  }
  return {std::move(names), "INPUT__", spec.inputs};
}

TensorNames TensorNames::of_outputs(const ModelSpec& spec) {
  std::vector<std::string> names;
  if (spec.call_spec.known) collect(spec.call_spec.result, "RESULT", names);
  if (names.size() != spec.outputs.size()) names.assign(spec.outputs.size(), {});
  return {std::move(names), "OUTPUT__", spec.outputs};
}

TensorNames TensorNames::renamed(std::vector<std::string> names) const {
  SCONCE_CHECK(names.size() == size(), kInternal, names.size(), " names for ", size(), " tensors");
  TensorNames other;
  for (size_t i = 0; i < names.size(); ++i)
    SCONCE_CHECK(other.index_.emplace(names[i], i).second, kInvalidArgument, "two tensors have the name '",
                 excerpt(names[i]), "'");
  other.index_.insert(index_.begin(), index_.end());
  for (const std::string& name : names) append_json_string(other.json_.emplace_back(), name);
  other.first_ = std::move(names);
  return other;
}

std::string TensorNames::list() const {
  std::string text;
  for (const std::string& name : first_) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

}  // namespace sconce::server::scheduling
