#include "src/custom_ops/extern_nodes.h"

#include <algorithm>
#include <optional>
#include <set>

#include "package_format/text/json_text.h"
#include "package_format/text/json_value.h"
#include "sconce/check.h"
#include "src/custom_ops/registry.h"

namespace sconce::custom_ops {
namespace {

using json = SortedJson;

const json kNull;

const json& member(const json& object, const char* name) {
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

// Converts dtype numbers of torch/_export/serde/schema.py to c10's.
std::optional<int64_t> dtype_number(int64_t serialized) {
  switch (serialized) {
    case 28:
      return 27;  // uint16
    case 29:
      return 24;  // float8_e4m3fn
    case 30:
      return 23;  // float8_e5m2
    case 31:
      return 26;  // float8_e4m3fnuz
    case 32:
      return 25;  // float8_e5m2fnuz
    case 33:
      return 44;  // float8_e8m0fnu
    case 34:
      return 28;  // uint32
    case 35:
      return 29;  // uint64
    case 13:
      return 15;  // bfloat16
    default:
      break;
  }
  if (serialized >= 1 && serialized <= 12) return serialized - 1;  // uint8 ... bool
  return std::nullopt;
}
std::optional<int64_t> layout_number(int64_t serialized) {
  constexpr int64_t kNumbers[] = {-1, 1, 2, 4, 5, 6, 3, 0};
  if (serialized < 1 || serialized > 7) return std::nullopt;
  return kNumbers[serialized];
}
std::optional<int64_t> memory_format_number(int64_t serialized) {
  constexpr int64_t kNumbers[] = {-1, 0, 2, 3, 1};
  if (serialized < 1 || serialized > 4) return std::nullopt;
  return kNumbers[serialized];
}

class NodeReader {
 public:
  NodeReader(ExternNode& node, const Schema& schema) : node_(node), schema_(schema) {}

  // Returns the first problem.
  std::string read(const json& node) {
    const size_t count = schema_.arguments.size();
    node_.arguments.resize(count);
    std::vector<bool> given(count, false);
    std::vector<std::pair<size_t, const json*>> inputs;
    size_t position = 0;
    for (const json& input : member(node, "inputs")) {
      const std::string name = text(member(input, "name"));
      int index = schema_.argument(name);
      if (index < 0 && name.empty() && position < count) index = static_cast<int>(position);
      if (index < 0) return "it has no argument '" + name + "'";
      if (given[static_cast<size_t>(index)]) return "argument '" + name + "' is given twice";
      given[static_cast<size_t>(index)] = true;
      inputs.emplace_back(static_cast<size_t>(index), &member(input, "arg"));
      ++position;
    }
    // Dynamic values arrive in the order of the schema, regardless of the order of the inputs in the file.
    std::sort(inputs.begin(), inputs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [index, arg] : inputs) {
      index_ = index;
      if (!arg->is_object() || arg->size() != 1) return about("it has no value");
      const auto item = arg->items().begin();
      if (std::string wrong = take(schema_.arguments[index].type, item.key(), item.value()); !wrong.empty())
        return about(wrong);
    }
    for (size_t i = 0; i < count; ++i) {
      if (given[i]) continue;
      const SchemaArgument& argument = schema_.arguments[i];
      if (argument.default_value)
        node_.arguments[i] = *argument.default_value;
      else if (!argument.type.optional())
        return "argument '" + argument.name + "' is missing";
    }
    return outputs(member(node, "outputs"));
  }

 private:
  std::string about(const std::string& what) const {
    return "argument '" + schema_.arguments[index_].name + "': " + what;
  }

  static std::string misfit(const Type& type, const std::string& tag) { return tag + " for " + type.text(); }

  void dynamic(DynamicArgument::Kind kind, size_t ints, size_t tensors, std::vector<bool> present = {}) {
    node_.ints += ints;
    node_.tensors += tensors;
    node_.dynamic.push_back({kind, static_cast<uint32_t>(index_), std::move(present)});
  }

  std::string constant(std::optional<int64_t> number, const std::string& tag) {
    if (!number) return "an unknown " + tag;
    node_.arguments[index_] = *number;
    return {};
  }

  std::string take(const Type& type, const std::string& tag, const json& value) {
    Value& to = node_.arguments[index_];
    if (type.optional()) return tag == "as_none" ? std::string() : take_optional(*type.element, tag, value);
    switch (type.kind) {
      case TypeKind::kTensor:
        if (tag != "as_tensor") return misfit(type, tag);
        dynamic(DynamicArgument::Kind::kTensor, 0, 1);
        return {};
      case TypeKind::kInt:
        if (tag != "as_int" && tag != "as_sym_int") return misfit(type, tag);
        dynamic(DynamicArgument::Kind::kInt, 1, 0);
        return {};
      case TypeKind::kScalar:
        if (tag == "as_int" || tag == "as_sym_int") {
          dynamic(DynamicArgument::Kind::kInt, 1, 0);
          return {};
        }
        return number(type, tag, value, to);
      case TypeKind::kFloat:
        if (value.is_number()) {
          to = value.get<double>();
          return {};
        }
        return number(type, tag, value, to);
      case TypeKind::kBool:
        if (tag != "as_bool" || !value.is_boolean()) return misfit(type, tag);
        to = value.get<bool>();
        return {};
      case TypeKind::kString:
        if (tag != "as_string" || !value.is_string()) return misfit(type, tag);
        to = value.get<std::string>();
        return {};
      case TypeKind::kDType:
      case TypeKind::kLayout:
      case TypeKind::kMemoryFormat:
        return enumeration(type, tag, value);
      case TypeKind::kDevice:
        if (tag != "as_device") return misfit(type, tag);
        to = Device{};  // the device that runs the model, regardless of the file
        return {};
      case TypeKind::kList:
        return list(*type.element, type, tag, value);
      default:
        return "values of type " + type.text() + " are not supported (" + tag + ")";
    }
  }

  std::string take_optional(const Type& type, const std::string& tag, const json& value) {
    if (tag == "as_optional_tensor") {
      if (!member(value, "as_none").is_null()) return {};
      return take(type, "as_tensor", member(value, "as_tensor"));
    }
    return take(type, tag, value);
  }

  static std::string number(const Type& type, const std::string& tag, const json& value, Value& to) {
    if (tag == "as_float" && value.is_number()) {
      to = value.get<double>();
    } else if (tag == "as_float" && value.is_string()) {  // a string, because JSON has no infinities
      const std::string name = value.get<std::string>();
      if (name != "Infinity" && name != "-Infinity" && name != "NaN") return misfit(type, tag);
      to = name == "NaN" ? std::numeric_limits<double>::quiet_NaN()
                         : (name[0] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
    } else if (tag == "as_bool" && value.is_boolean() && type.kind == TypeKind::kScalar) {
      to = value.get<bool>();
    } else if (tag == "as_complex" && member(value, "real").is_number() && member(value, "imag").is_number() &&
               type.kind == TypeKind::kScalar) {
      to = std::complex<double>(member(value, "real").get<double>(), member(value, "imag").get<double>());
    } else {
      return misfit(type, tag);
    }
    return {};
  }

  std::string enumeration(const Type& type, const std::string& tag, const json& value) {
    const bool numeric = value.is_number_integer();
    if (type.kind == TypeKind::kDType && tag == "as_scalar_type" && numeric)
      return constant(dtype_number(value.get<int64_t>()), "element type");
    if (type.kind == TypeKind::kLayout && tag == "as_layout" && numeric)
      return constant(layout_number(value.get<int64_t>()), "layout");
    if (type.kind == TypeKind::kMemoryFormat && tag == "as_memory_format" && numeric)
      return constant(memory_format_number(value.get<int64_t>()), "memory format");
    return misfit(type, tag);
  }

  std::string list(const Type& element, const Type& type, const std::string& tag, const json& value) {
    Value& to = node_.arguments[index_];
    if (!value.is_array()) return misfit(type, tag);
    const size_t count = value.size();
    switch (element.kind) {
      case TypeKind::kInt:
        if (tag != "as_ints" && tag != "as_sym_ints") return misfit(type, tag);
        to = Value::Ints(count);
        dynamic(DynamicArgument::Kind::kInts, count, 0, std::vector<bool>(count, true));
        return {};
      case TypeKind::kTensor:
        if (tag != "as_tensors") return misfit(type, tag);
        to = Value::List(count);
        dynamic(DynamicArgument::Kind::kTensors, 0, count, std::vector<bool>(count, true));
        return {};
      case TypeKind::kFloat: {
        Value::Reals values(count);
        for (size_t i = 0; i < count; ++i) {
          if (!value[i].is_number()) return misfit(type, tag);
          values[i] = value[i].get<double>();
        }
        to = std::move(values);
        return {};
      }
      case TypeKind::kScalar:
        if (tag == "as_ints" || tag == "as_sym_ints") {
          to = Value::List(count);
          dynamic(DynamicArgument::Kind::kInts, count, 0, std::vector<bool>(count, true));
          return {};
        }
        return items(element, tag == "as_floats" ? "as_float" : "as_bool", value);
      case TypeKind::kBool:
        return items(element, "as_bool", value);
      case TypeKind::kString:
        return items(element, "as_string", value);
      case TypeKind::kOptional:
        if (element.element->kind == TypeKind::kTensor && (tag == "as_optional_tensors" || tag == "as_tensors")) {
          std::vector<bool> present(count, true);
          for (size_t i = 0; i < count && tag == "as_optional_tensors"; ++i)
            present[i] = member(value[i], "as_none").is_null();
          const auto tensors = static_cast<size_t>(std::count(present.begin(), present.end(), true));
          to = Value::List(count);
          dynamic(DynamicArgument::Kind::kTensors, 0, tensors, std::move(present));
          return {};
        }
        return misfit(type, tag);
      default:
        return "values of type " + type.text() + " are not supported (" + tag + ")";
    }
  }

  // Lists of constants.
  std::string items(const Type& element, const char* tag, const json& value) {
    Value::List list(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      if (element.kind == TypeKind::kBool && value[i].is_boolean())
        list[i] = value[i].get<bool>();
      else if (element.kind == TypeKind::kString && value[i].is_string())
        list[i] = value[i].get<std::string>();
      else if (std::string wrong = number(element, tag, value[i], list[i]); !wrong.empty())
        return wrong;
    }
    node_.arguments[index_] = std::move(list);
    return {};
  }

  std::string outputs(const json& outputs) {
    if (outputs.size() > schema_.results.size())
      return std::to_string(outputs.size()) + " outputs, but it has " + std::to_string(schema_.results.size()) +
             " results";
    for (const json& output : outputs) {
      if (!output.is_object() || output.size() != 1) return "an output has no value";
      std::string tag = output.items().begin().key();
      const json& value = output.items().begin().value();
      ExternOutput to{ExternOutput::Kind::kNone};
      if (tag == "as_optional_tensor") tag = member(value, "as_none").is_null() ? "as_tensor" : "as_none";
      if (tag == "as_tensor") {
        to.kind = ExternOutput::Kind::kTensor;
        ++node_.tensors;
      } else if (tag == "as_tensors" && value.is_array()) {
        to.kind = ExternOutput::Kind::kTensors;
        to.count = static_cast<uint32_t>(value.size());
        node_.tensors += value.size();
      } else if (tag == "as_int" && value.is_number_integer()) {
        to.kind = ExternOutput::Kind::kInt;
        to.expected = value.get<int64_t>();
        ++node_.ints;
      } else if (tag != "as_none") {
        return "outputs " + tag + " are not supported";
      }
      node_.outputs.push_back(to);
    }
    return {};
  }

  ExternNode& node_;
  const Schema& schema_;
  size_t index_ = 0;
};

}  // namespace

ExternNodes ExternNodes::parse(std::string_view text_of_nodes) {
  const json document = parse_json(text_of_nodes, "the list of operator calls beside the model's code");
  const json& nodes = member(document, "nodes");
  SCONCE_CHECK(nodes.is_array(), kCorruptPackage,
               "the list of operator calls beside the model's code is no JSON of nodes");
  ExternNodes result;
  std::set<std::string> missing;
  for (const json& entry : nodes) {
    const json& node = member(entry, "node");
    ExternNode& made = result.nodes_.emplace_back();
    made.target = text(member(node, "target"));
    SCONCE_CHECK(!made.target.empty(), kCorruptPackage, "operator call ", result.nodes_.size() - 1, " has no target");
    if (made.target.ends_with(".default")) made.target.resize(made.target.size() - 8);
    made.op = find_operator(made.target);
    if (!made.op) {
      missing.insert(made.target);
      continue;
    }
    if (!made.op->runnable()) result.problems_.push_back(made.target + ": its library defines it without a kernel");
    if (const std::string wrong = NodeReader(made, made.op->schema()).read(node); !wrong.empty())
      result.problems_.push_back(made.target + ": " + wrong);
  }
  result.missing_.assign(missing.begin(), missing.end());
  return result;
}

}  // namespace sconce::custom_ops
