// Model specs written by hand.
#pragma once

#include <string>
#include <vector>

#include "sconce/package.h"

namespace sconce::server {

inline SpecNode spec_node(SpecNode::Kind kind, std::vector<SpecNode> children = {},
                          std::vector<std::string> keys = {}) {
  SpecNode node;
  node.kind = kind;
  node.children = std::move(children);
  node.keys = std::move(keys);
  node.int_keys.resize(node.keys.size());
  return node;
}
inline SpecNode spec_leaf() { return spec_node(SpecNode::Kind::kLeaf); }
inline SpecNode spec_tuple(std::vector<SpecNode> children) {
  return spec_node(SpecNode::Kind::kTuple, std::move(children));
}

inline Dim fixed_dim(int64_t size) { return {size, size, ""}; }
inline Dim variable_dim(std::string symbol, int64_t min = 2, int64_t max = INT64_MAX) {
  return {min, max, std::move(symbol)};
}

inline TensorSpec tensor_spec(std::string name, DType dtype, std::vector<Dim> dims,
                              std::vector<std::optional<int64_t>> strides = {}) {
  TensorSpec spec;
  spec.name = std::move(name);
  spec.dtype = dtype;
  spec.has_shape = true;
  spec.dims = std::move(dims);
  spec.strides = std::move(strides);
  return spec;
}

// Tensors as positional arguments, a single result or a tuple of results.
inline ModelSpec model_spec(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
  ModelSpec spec;
  spec.name = "model";
  spec.call_spec.known = true;
  spec.call_spec.args = spec_tuple(std::vector<SpecNode>(inputs.size(), spec_leaf()));
  spec.call_spec.kwargs = spec_node(SpecNode::Kind::kDict);
  spec.call_spec.result =
      outputs.size() == 1 ? spec_leaf() : spec_tuple(std::vector<SpecNode>(outputs.size(), spec_leaf()));
  for (size_t i = 0; i < inputs.size(); ++i) spec.call_spec.input_leaf.push_back(i);
  spec.inputs = std::move(inputs);
  spec.outputs = std::move(outputs);
  return spec;
}

}  // namespace sconce::server
