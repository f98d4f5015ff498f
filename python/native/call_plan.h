// CallPlan: how the objects of a Python call become a model's inputs, and its outputs the model's own structure. Made
// once, when a model is loaded. All need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string>
#include <vector>

#include "python/native/arguments.h"
#include "sconce/package.h"
#include "sconce/tensor.h"

namespace sconce::python {

enum class OutputForm : int8_t { kNumpy, kDlpack, kTorch };

class CallPlan {
 public:
  // to_call: finds the classes that the call spec names, which may import their modules. Otherwise the plan has paths
  // only.
  explicit CallPlan(const ModelSpec& spec, bool to_call = true);
  CallPlan(const CallPlan&) = delete;
  CallPlan& operator=(const CallPlan&) = delete;

  size_t inputs() const noexcept { return rules_.size(); }
  const InputRule& rule(size_t input) const noexcept { return rules_[input]; }
  const std::string& output_path(size_t output) const noexcept { return output_paths_[output]; }

  // Fills one tensor for each input. kwargs may be null. kInvalidArgument says where the structure differs.
  void flatten(PyObject* args, PyObject* kwargs, Arguments& arguments, std::span<Tensor> inputs) const;
  nb::object unflatten(std::span<Tensor> outputs, OutputForm form) const;

 private:
  struct Node {
    SpecNode::Kind kind = SpecNode::Kind::kLeaf;
    std::string path;
    std::string type;              // for errors
    int input = -1;                // of a leaf; -1: the model dropped it
    bool needed = false;           // an input is below
    std::vector<nb::object> keys;  // one for each child
    nb::object make;               // called with a list of the children; null: a builtin
    std::vector<Node> children;
  };
  struct Flattening;

  Node node_of(const SpecNode& spec, const std::string& path, size_t& leaf, const std::vector<int>* input_of_leaf);
  // A call with too few or too many positional arguments.
  [[noreturn]] void refuse_count(size_t given, PyObject* kwargs) const;
  void walk(const Node& node, nb::handle object, Flattening& to) const;
  void walk_sequence(const Node& node, nb::handle object, Flattening& to) const;
  void walk_mapping(const Node& node, nb::handle object, Flattening& to) const;
  void walk_fields(const Node& node, nb::handle object, Flattening& to) const;
  void assign_leaves(Flattening& to) const;
  nb::object build(const Node& node, std::span<Tensor>& outputs, size_t& next, OutputForm form) const;
  nb::object leaf(Tensor& output, size_t index, OutputForm form) const;

  bool to_call_;
  bool known_ = false;
  bool mapped_ = true;  // it is known which leaf each input is
  Node args_, kwargs_, result_;
  std::vector<InputRule> rules_;
  std::vector<std::string> output_paths_;
};

}  // namespace sconce::python
