// Short sources in the forms that torch 2.6 to 2.15 generate, put together from lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sconce::testing {

inline std::string join(const std::vector<int64_t>& values) {
  std::string text = "{";
  for (size_t i = 0; i < values.size(); ++i) text.append(i ? ", " : "").append(std::to_string(values[i]));
  return text.append("}");
}

struct SourceConstant {
  std::string name, fqn, dtype = "float32";
  int64_t data_size = 64;
  std::vector<int64_t> shape = {16}, stride = {1};
  std::string type = "Parameter";
  bool folded = false;
  int64_t offset = 0;
  std::string more = {};  // further lines
};

// The constructor; `minor` is the version, 2.minor.
inline std::string constructor(int minor, const std::vector<std::string>& inputs, int outputs,
                               const std::vector<SourceConstant>& constants, const std::string& specs,
                               bool include_weights = true) {
  const std::string weights = include_weights ? "true" : "false";
  std::string text = "    : AOTInductorModelBase(" + std::to_string(inputs.size());
  text.append(",\n        ").append(std::to_string(outputs)).append(", ").append(std::to_string(constants.size()));
  text.append(minor >= 8 ? ", device_str,\n std::move(cubin_dir),\n " : ", device_str, cubin_dir, ");
  text.append(weights).append(") {\n");
  for (size_t i = 0; i < inputs.size(); ++i)
    text.append("    inputs_info_[" + std::to_string(i) + "].name = \"" + inputs[i] + "\";\n");
  for (size_t i = 0; i < constants.size(); ++i) {
    const SourceConstant& c = constants[i];
    const std::string row = "    constants_info_[" + std::to_string(i) + "].";
    const std::string dtype = "cached_torch_dtype_" + c.dtype;
    text.append(row + "name = \"" + c.name + "\";\n");
    text.append(row + "dtype = " + (minor >= 11 ? dtype : "static_cast<int32_t>(" + dtype + ")") + ";\n");
    if (minor >= 11) text.append(row + "device_type = cached_torch_device_type_cpu;\n");
    text.append(row + "offset = " + std::to_string(c.offset) + ";\n");
    text.append(row + "data_size = " + std::to_string(c.data_size) + ";\n");
    text.append(row + "from_folded = " + (c.folded ? "true" : "false") + ";\n");
    text.append(row + "type = static_cast<int32_t>(torch::aot_inductor::ConstantType::" + c.type + ");\n");
    text.append(row + "shape = " + join(c.shape) + ";\n");
    text.append(row + "stride = " + join(c.stride) + ";\n");
    text.append(row + "layout = static_cast<int32_t>(cached_torch_layout_strided);\n");
    text.append(c.more);
    text.append(row + "original_fqn = \"" + c.fqn + "\";\n");
  }
  text.append("    update_constants_map(std::move(constants_map));\n").append(specs);
  for (int i = 0; i < outputs; ++i)
    text.append("    outputs_info_[" + std::to_string(i) + "].name = \"output" + std::to_string(i) + "\";\n");
  return text.append("    this->kernels_ = std::make_unique<AOTInductorModelKernels>();\n}\n");
}

inline const char* const kLeafSpec = R"([1, {"type": null, "context": null, "children_spec": []}])";

// The specs of a call with `count` positional arguments and one result, as raw strings.
inline std::string specs(size_t count) {
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  std::string text = R"x(    in_spec_ = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)x"
                     R"x({"type": "builtins.tuple", "context": "null", "children_spec": [)x";
  for (size_t i = 0; i < count; ++i) text.append(i ? ", " : "").append(leaf);
  text.append(R"x(]}, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";)x").append("\n");
  return text.append("    out_spec_ = R\"(").append(kLeafSpec).append(")\";\n");
}

// The checks of one input, without the lines between that say what the message is.
inline std::string check(size_t index, const std::string& name, const std::string& dtype,
                         const std::vector<std::string>& conditions, int device = 0) {
  std::string text =
      "    ConstantHandle " + name + " = ConstantHandle(input_handles[" + std::to_string(index) + "]);\n";
  text.append("    int32_t " + name + "_dtype;\n");
  text.append("    int32_t " + name + "_expected_dtype = aoti_torch_dtype_" + dtype + "();\n");
  text.append("    if (" + name + "_expected_dtype != " + name + "_dtype) {\n        std::stringstream ss;\n    }\n");
  text.append("    auto " + name + "_size = " + name + ".sizes();\n");
  for (const std::string& condition : conditions) text.append("    if (" + condition + ") {\n    }\n");
  if (device >= 0) text.append("    int32_t " + name + "_expected_device_type = " + std::to_string(device) + ";\n");
  return text;
}

inline std::string run_impl(const std::string& body) {
  return "\nvoid AOTInductorModel::run_impl(\n    AtenTensorHandle*\n        input_handles\n) {\n" + body +
         "} // AOTInductorModel::run_impl\n} // namespace torch::aot_inductor\n\n\n"
         "// Compile cmd\n// g++ x.cpp -O1 -fno-tree-loop-vectorize -march=x86-64-v3 -mtune=generic -mavx2 "
         "-mno-avx512f -mfma -fPIC -o x.o\n"
         "// Link cmd\n// g++ x.o -march=native -shared\n";
}

}  // namespace sconce::testing
