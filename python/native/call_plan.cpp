#include "python/native/call_plan.h"

#include <algorithm>
#include <utility>

#include "python/native/dlpack_tensors.h"
#include "python/native/errors.h"
#include "python/native/host_arrays.h"
#include "python/native/numbers.h"
#include "python/native/tensor_object.h"
#include "sconce/check.h"

namespace sconce::python {
namespace {

using Kind = SpecNode::Kind;

nb::object key_of(const SpecNode& node, size_t i) {
  if (i < node.int_keys.size() && node.int_keys[i]) return owned(PyLong_FromString(node.keys[i].c_str(), nullptr, 10));
  PyObject* text =
      PyUnicode_DecodeUTF8(node.keys[i].data(), static_cast<Py_ssize_t>(node.keys[i].size()), "backslashreplace");
  if (text) PyUnicode_InternInPlace(&text);
  return owned(text);
}

std::string list_of(const std::vector<nb::object>& keys) {
  std::string text;
  for (const nb::object& key : keys) text += (text.empty() ? "" : ", ") + text_of(nb::repr(key));
  return text.empty() ? "none" : text;
}

// "[key]"
std::string step_to(std::string_view key) {
  std::string step;
  return step.append("[").append(key).append("]");
}

const char* word_for(Kind kind) noexcept {
  constexpr const char* kWords[] = {"array",       "None",        "tuple",      "list",  "dict",
                                    "OrderedDict", "defaultdict", "namedtuple", "deque", "dataclass"};
  return kWords[static_cast<int>(kind)];
}

bool is_sequence(nb::handle object) {
  if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) return true;
  static PyObject* const deque = imported("collections", "deque");
  const int is = PyObject_IsInstance(object.ptr(), deque);
  if (is < 0) throw nb::python_error();
  return is == 1;
}

bool is_mapping(nb::handle object) {
  if (PyDict_Check(object.ptr())) return true;
  static PyObject* const mapping = imported("collections.abc", "Mapping");
  const int is = PyObject_IsInstance(object.ptr(), mapping);
  if (is < 0) throw nb::python_error();
  return is == 1;
}

// Whether the object is an array or a tensor of any library. NumPy's scalars, which have dtype and shape too, are not.
bool has_elements(nb::handle object) {
  return !object.is_none() && !is_number(object) && nb::hasattr(object, "__dlpack__");
}

}  // namespace

struct CallPlan::Flattening {
  Arguments& arguments;
  std::span<Tensor> inputs;
  std::vector<std::pair<const Node*, nb::object>> leaves;  // if it is not known which of them are inputs
};

CallPlan::CallPlan(const ModelSpec& spec, bool to_call) : to_call_(to_call), known_(spec.call_spec.known) {
  const CallSpec& call = spec.call_spec;
  std::vector<std::string> paths(spec.inputs.size());
  for (size_t i = 0; i < paths.size(); ++i) paths[i] = "args" + step_to(std::to_string(i));
  if (known_) {
    const std::vector<size_t>& leaf_of = call.input_leaf;
    mapped_ = leaf_of.size() == spec.inputs.size();
    std::vector<int> input_of_leaf(call.args.leaves() + call.kwargs.leaves(), -1);
    for (size_t i = 0; i < leaf_of.size(); ++i) {
      SCONCE_CHECK(leaf_of[i] < input_of_leaf.size(), kCorruptPackage, "call spec has fewer leaves than inputs");
      input_of_leaf[leaf_of[i]] = static_cast<int>(i);
    }
    size_t leaf = 0;
    args_ = node_of(call.args, "args", leaf, &input_of_leaf);
    kwargs_ = node_of(call.kwargs, "kwargs", leaf, &input_of_leaf);
    const auto name = [&](const auto& self, const Node& node) -> void {
      if (node.input >= 0) paths[static_cast<size_t>(node.input)] = node.path;
      for (const Node& child : node.children) self(self, child);
    };
    name(name, args_);
    name(name, kwargs_);
    leaf = 0;
    result_ = node_of(call.result, "result", leaf, nullptr);
    if (leaf != spec.outputs.size()) result_ = {};  // outputs come as a tuple then
    const auto name_output = [&](const auto& self, const Node& node) -> void {
      if (node.kind == Kind::kLeaf) output_paths_.push_back(node.path);
      for (const Node& child : node.children) self(self, child);
    };
    if (leaf == spec.outputs.size()) name_output(name_output, result_);
  }
  if (output_paths_.size() != spec.outputs.size()) {
    output_paths_.clear();
    for (size_t i = 0; i < spec.outputs.size(); ++i) output_paths_.push_back("result" + step_to(std::to_string(i)));
    result_ = {};
    result_.kind = Kind::kTuple;
    result_.children.resize(spec.outputs.size());
  }
  rules_.reserve(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) rules_.emplace_back(spec.inputs[i], paths[i]);
}

CallPlan::Node CallPlan::node_of(const SpecNode& spec, const std::string& path, size_t& leaf,
                                 const std::vector<int>* input_of_leaf) {
  Node node;
  node.kind = spec.kind;
  node.path = path;
  node.type = spec.type;
  if (spec.kind == Kind::kLeaf) {
    if (input_of_leaf) node.input = (*input_of_leaf)[leaf];
    ++leaf;
    node.needed = !input_of_leaf || node.input >= 0 || !mapped_;
    return node;
  }
  nb::list fields;
  for (size_t i = 0; i < spec.children.size(); ++i) {
    std::string step = step_to(std::to_string(i));
    if (i < spec.keys.size()) {
      node.keys.push_back(key_of(spec, i));
      fields.append(node.keys.back());
      step = spec.kind == Kind::kDataclass ? "." + spec.keys[i] : step_to(text_of(nb::repr(node.keys.back())));
    }
    node.children.push_back(node_of(spec.children[i], path + step, leaf, input_of_leaf));
    node.needed = node.needed || node.children.back().needed;
  }
  if (to_call_ && spec.kind != Kind::kTuple && spec.kind != Kind::kList && spec.kind != Kind::kDict &&
      spec.kind != Kind::kNone) {
    nb::object maker = nb::module_::import_("sconce._structure").attr("maker");
    node.make = maker(word_for(spec.kind), nb::str(spec.type.c_str()), nb::tuple(fields),
                      static_cast<int64_t>(spec.children.size()));
  }
  return node;
}

void CallPlan::flatten(PyObject* args, PyObject* kwargs, Arguments& arguments, std::span<Tensor> inputs) const {
  Flattening to{arguments, inputs, {}};
  const auto given = static_cast<size_t>(PyTuple_Size(args));
  if (!known_) {
    SCONCE_CHECK(!kwargs || PyDict_Size(kwargs) == 0, kInvalidArgument,
                 "kwargs: the package does not record the model's arguments; pass its ", inputs.size(),
                 " inputs in flat order");
    SCONCE_CHECK(given == inputs.size(), kInvalidArgument, "args: expected ", inputs.size(), " inputs, got ", given);
    for (size_t i = 0; i < given; ++i)
      inputs[i] = arguments.take(PyTuple_GetItem(args, static_cast<Py_ssize_t>(i)), rules_[i]);
    return;
  }
  const std::vector<Node>& children = args_.children;
  for (size_t i = 0; i < children.size(); ++i) {
    if (i < given)
      walk(children[i], PyTuple_GetItem(args, static_cast<Py_ssize_t>(i)), to);
    else if (children[i].needed)
      refuse_count(given, kwargs);
  }
  if (given > children.size()) refuse_count(given, kwargs);
  if (kwargs || !kwargs_.children.empty()) {
    const nb::object named = kwargs ? nb::borrow(kwargs) : nb::object(nb::dict());
    walk_mapping(kwargs_, named, to);
  }
  if (!mapped_) assign_leaves(to);
}

void CallPlan::refuse_count(size_t given, PyObject* kwargs) const {
  std::string also;
  if (kwargs && PyDict_Size(kwargs) > 0) {
    std::vector<nb::object> named;
    for (const nb::handle key : nb::borrow(kwargs)) named.push_back(nb::borrow(key));
    also = " and the keyword arguments " + list_of(named) + "; the model was exported with " + list_of(kwargs_.keys);
  }
  const size_t count = args_.children.size();
  SCONCE_FAIL(kInvalidArgument, "args: expected ", count, count == 1 ? " positional argument" : " positional arguments",
              ", got ", given, also);
}

void CallPlan::walk(const Node& node, nb::handle object, Flattening& to) const {
  switch (node.kind) {
    case Kind::kLeaf:
      if (!mapped_)
        to.leaves.emplace_back(&node, nb::borrow(object));
      else if (node.input >= 0)
        to.inputs[static_cast<size_t>(node.input)] = to.arguments.take(object, rules_[static_cast<size_t>(node.input)]);
      else
        // A tensor that the model makes no use of would be an input of the package.
        SCONCE_CHECK(!has_elements(object), kInvalidArgument, node.path,
                     " cannot be a tensor: it was None, a number or a string when the model was exported, and the "
                     "package takes no tensor there");
      return;
    case Kind::kNone:
      SCONCE_CHECK(object.is_none(), kInvalidArgument, node.path, ": expected None, got an object of type ",
                   class_name(object));
      return;
    case Kind::kDict:
    case Kind::kOrderedDict:
    case Kind::kDefaultDict:
      SCONCE_CHECK(is_mapping(object), kInvalidArgument, node.path, ": expected a dict with the keys ",
                   list_of(node.keys), ", got an object of type ", class_name(object));
      return walk_mapping(node, object, to);
    case Kind::kDataclass:
      return walk_fields(node, object, to);
    default:
      return walk_sequence(node, object, to);
  }
}

void CallPlan::walk_sequence(const Node& node, nb::handle object, Flattening& to) const {
  SCONCE_CHECK(is_sequence(object), kInvalidArgument, node.path, ": expected a ", word_for(node.kind), " of ",
               node.children.size(), ", got an object of type ", class_name(object));
  const nb::object items = PyTuple_Check(object.ptr()) ? nb::borrow(object) : owned(PySequence_Tuple(object.ptr()));
  const auto size = static_cast<size_t>(PyTuple_Size(items.ptr()));
  SCONCE_CHECK(size == node.children.size(), kInvalidArgument, node.path, ": expected a ", word_for(node.kind), " of ",
               node.children.size(), ", got ", size, " items");
  for (size_t i = 0; i < size; ++i)
    walk(node.children[i], PyTuple_GetItem(items.ptr(), static_cast<Py_ssize_t>(i)), to);
}

void CallPlan::walk_mapping(const Node& node, nb::handle object, Flattening& to) const {
  size_t found = 0;
  const bool dict = PyDict_Check(object.ptr());
  for (size_t i = 0; i < node.children.size(); ++i) {
    nb::object value;
    if (dict) {
      value = nb::borrow(PyDict_GetItemWithError(object.ptr(), node.keys[i].ptr()));
      if (!value && PyErr_Occurred()) throw nb::python_error();
    } else if (nb::cast<bool>(object.attr("__contains__")(node.keys[i]))) {
      value = object[node.keys[i]];
    }
    if (!value) {
      SCONCE_CHECK(!node.children[i].needed, kInvalidArgument, node.path, ": ", text_of(nb::repr(node.keys[i])),
                   " is missing, expected ", list_of(node.keys));
      continue;
    }
    ++found;
    walk(node.children[i], value, to);
  }
  const auto size = static_cast<size_t>(nb::len(object));
  if (size == found) return;
  for (const nb::handle key : object)
    SCONCE_CHECK(std::any_of(node.keys.begin(), node.keys.end(), [&](const nb::object& k) { return k.equal(key); }),
                 kInvalidArgument, node.path, ": unexpected ", text_of(nb::repr(key)), ", expected ",
                 list_of(node.keys));
}

void CallPlan::walk_fields(const Node& node, nb::handle object, Flattening& to) const {
  for (size_t i = 0; i < node.children.size(); ++i) {
    // ModelOutput of transformers is a mapping, too.
    const nb::object value = nb::getattr(object, node.keys[i], nb::object());
    SCONCE_CHECK(value, kInvalidArgument, node.path, ": expected a ", node.type, " with the fields ",
                 list_of(node.keys), ", got an object of type ", class_name(object));
    walk(node.children[i], value, to);
  }
}

// The compiler drops numbers that it wrote into the code. If the package does not say which, arrays and tensors are the
// inputs, and numbers are only if otherwise the count is wrong.
void CallPlan::assign_leaves(Flattening& to) const {
  const auto assign = [&](const auto& counts) {
    if (static_cast<size_t>(std::count_if(to.leaves.begin(), to.leaves.end(), counts)) != to.inputs.size())
      return false;
    size_t input = 0;
    for (const auto& leaf : to.leaves)
      if (counts(leaf)) {
        to.inputs[input] = to.arguments.take(leaf.second, rules_[input]);
        ++input;
      }
    return true;
  };
  const auto is_tensor = [](const auto& leaf) {
    const nb::handle object = leaf.second;
    return !is_number(object) && !object.is_none() && !PyUnicode_Check(object.ptr());
  };
  const auto is_value = [](const auto& leaf) { return !leaf.second.is_none() && !PyUnicode_Check(leaf.second.ptr()); };
  SCONCE_CHECK(assign(is_tensor) || assign(is_value), kInvalidArgument, "the call has ", to.leaves.size(),
               " arguments, the model takes ", to.inputs.size(),
               " of them, and its package does not say which; pass these as arrays and the others as numbers or None");
}

nb::object CallPlan::unflatten(std::span<Tensor> outputs, OutputForm form) const {
  size_t next = 0;
  return build(result_, outputs, next, form);
}

nb::object CallPlan::leaf(Tensor& output, size_t index, OutputForm form) const {
  if (!output.defined()) return nb::none();
  if (form == OutputForm::kNumpy && output.is_cpu()) {
    nb::object dtype;
    try {
      dtype = numpy_dtype(output.dtype());
    } catch (const Error& error) {
      SCONCE_FAIL(kUnsupported, output_paths_[index], ": ", error.what());
    }
    return array_on(output, dtype);
  }
  return form == OutputForm::kTorch ? torch_tensor(output) : object_of_tensor(std::move(output));
}

nb::object CallPlan::build(const Node& node, std::span<Tensor>& outputs, size_t& next, OutputForm form) const {
  if (node.kind == Kind::kLeaf) {
    const size_t index = next++;
    return leaf(outputs[index], index, form);
  }
  const auto size = static_cast<Py_ssize_t>(node.children.size());
  if (node.kind == Kind::kNone) return nb::none();
  if (node.kind == Kind::kTuple) {
    nb::object made = owned(PyTuple_New(size));
    for (Py_ssize_t i = 0; i < size; ++i)
      PyTuple_SetItem(made.ptr(), i, build(node.children[static_cast<size_t>(i)], outputs, next, form).release().ptr());
    return made;
  }
  if (node.kind == Kind::kDict) {
    nb::object made = owned(PyDict_New());
    for (size_t i = 0; i < node.children.size(); ++i) {
      const nb::object value = build(node.children[i], outputs, next, form);
      if (PyDict_SetItem(made.ptr(), node.keys[i].ptr(), value.ptr()) != 0) throw nb::python_error();
    }
    return made;
  }
  nb::object list = owned(PyList_New(size));
  for (Py_ssize_t i = 0; i < size; ++i)
    PyList_SetItem(list.ptr(), i, build(node.children[static_cast<size_t>(i)], outputs, next, form).release().ptr());
  return node.make ? node.make(list) : list;
}

}  // namespace sconce::python
