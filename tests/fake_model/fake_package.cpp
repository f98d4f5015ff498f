#include "fake_package.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "package_format/archive/archive_writer.h"

namespace fake {
namespace {

constexpr uint64_t kMagic = 0x5ce4c0deba5eba11;  // as in fake_weights.S
constexpr size_t kPage = 16384;
constexpr const char* kStem = "cfake000000000000000000000000000000000000000000000";

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void append(std::vector<std::byte>& to, const void* from, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  to.insert(to.end(), begin, begin + bytes);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.native());
}

std::string concat(std::initializer_list<std::string_view> parts) {
  std::string result;
  for (const std::string_view part : parts) result.append(part);
  return result;
}

struct Constant {
  std::string name, fqn, type;
  int64_t size;
  bool folded;
  size_t data_size() const { return (static_cast<size_t>(size) * sizeof(float) + 63) / 64 * 64; }
};

std::vector<Constant> constants(const Model& model) {
  std::vector<Constant> result{{"scale_w", "scale.w", "Parameter", model.features, false},
                               {"scale_b", "scale.b", "Parameter", model.features, false}};
  if (model.state) result.push_back({"steps", "steps", "Buffer", 1, false});
  if (model.folded) result.push_back({"_FOLDED_CONST_w2", "_FOLDED_CONST_w2", "FoldedConstant", model.features, true});
  for (Constant& constant : result)
    if (!model.typed && !constant.folded) constant.type = "Unknown";
  return result;
}

// The signature and the run of y = x * w + b, all of them in the words of the generated source.
void declare_rows(std::ostream& text, const Model& model, const std::vector<Constant>& all) {
  std::ostringstream take, folding;
  for (size_t i = 0; i < all.size(); ++i)
    take << "    [[maybe_unused]] auto& " << all[i].name << " = constants_->at(" << i << ");\n";
  if (model.folded && model.state)
    folding << "void AOTInductorModel::_const_run_impl(\n) {\n"
            << take.str() << "    cpp_fused_mul_1((const float*)(scale_w.data_ptr()), (float*)(steps.data_ptr()));\n"
            << "} // AOTInductorModel::_const_run_impl\n\n";
  text << "    in_spec_ = R\"([1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": ["
       << "{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": ["
       << "{\"type\": null, \"context\": null, \"children_spec\": []}]}, "
       << "{\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}])\";\n"
       << "    out_spec_ = R\"([1, {\"type\": null, \"context\": null, \"children_spec\": []}])\";\n"
       << "    outputs_info_[0].name = \"output0\";\n}\n\n"
       << "static void check_input_0(\n    AtenTensorHandle* input_handles\n) {\n"
       << "    ConstantHandle arg0_1 = ConstantHandle(input_handles[0]);\n"
       << "    int32_t arg0_1_expected_dtype = aoti_torch_dtype_float32();\n"
       << "    auto arg0_1_size = arg0_1.sizes();\n\n"
       << "    if (" << model.features << " != arg0_1_size[1]) {\n    }\n"
       << "    auto arg0_1_stride = arg0_1.strides();\n\n"
       << "    if (" << model.features << " != arg0_1_stride[0]) {\n    }\n\n"
       << "    if (1 != arg0_1_stride[1]) {\n    }\n"
       << "    int32_t arg0_1_expected_device_type = " << (model.cuda ? 1 : 0) << ";\n}\n\n"
       << folding.str()
       << "void AOTInductorModel::run_impl(\n    AtenTensorHandle*\n        input_handles,\n    AtenTensorHandle*\n"
       << "        output_handles,\n    DeviceStreamType stream,\n    AOTIProxyExecutorHandle proxy_executor\n) {\n"
       << "    __check_inputs_outputs(input_handles, output_handles);\n"
       << "    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 1);\n"
       << "    auto arg0_1 = std::move(inputs[0]);\n"
       << take.str()
       << "    auto arg0_1_size = arg0_1.sizes();\n    int64_t s6 = arg0_1_size[0];\n    inputs.clear();\n"
       << "    const int64_t int_array_0[] = {s6, " << model.features << "L};\n"
       << "    static constexpr int64_t int_array_1[] = {" << model.features << "L, 1L};\n"
       << "    AtenTensorHandle buf0_handle;\n"
       << "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, int_array_0, int_array_1, "
       << "cached_torch_dtype_float32, cached_torch_device_type_" << (model.cuda ? "cuda" : "cpu")
       << ", this->device_idx_, &buf0_handle));\n"
       << "    RAIIAtenTensorHandle buf0(buf0_handle);\n    cpp_fused_add_mul_0((const float*)(arg0_1.data_ptr()), "
       << "(const float*)(" << (model.folded ? "_FOLDED_CONST_w2" : "scale_w") << ".data_ptr()), "
       << "(const float*)(scale_b.data_ptr()), "
       << (!model.state   ? ""
           : model.folded ? "(const float*)(steps.data_ptr()), "
                          : "(const float*)(steps.data_ptr()), (float*)(steps.data_ptr()), ")
       << "(float*)(buf0.data_ptr()), s6);\n    arg0_1.reset();\n    output_handles[0] = buf0.release();\n";
}

// The same of the step of a loop: fake_loop.h.
void declare_loop(std::ostream& text, const Model& model) {
  const std::string_view device = model.cuda ? "cuda" : "cpu";
  const std::string leaf = R"({"type": null, "context": null, "children_spec": []})";
  const std::string pair =
      concat({R"({"type": "builtins.tuple", "context": "null", "children_spec": [)", leaf, ", ", leaf, "]}"});
  text << "    in_spec_ = R\"([1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [" << pair
       << ", {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}])\";\n"
       << "    out_spec_ = R\"([1, " << pair << "])\";\n"
       << "    inputs_info_[1].name = \"arg1_1\";\n"
       << "    outputs_info_[0].name = \"output0\";\n    outputs_info_[1].name = \"output1\";\n}\n\n";
  for (const int i : {0, 1}) {
    const int64_t columns = i == 0 ? 1 : 4;
    const std::string name = concat({"arg", std::to_string(i), "_1"});
    text << "static void check_input_" << i << "(\n    AtenTensorHandle* input_handles\n) {\n"
         << "    ConstantHandle " << name << " = ConstantHandle(input_handles[" << i << "]);\n"
         << "    int32_t " << name << "_expected_dtype = aoti_torch_dtype_" << (i == 0 ? "int64" : "float32") << "();\n"
         << "    auto " << name << "_size = " << name << ".sizes();\n\n"
         << "    if (" << columns << " != " << name << "_size[1]) {\n    }\n"
         << "    auto " << name << "_stride = " << name << ".strides();\n\n"
         << "    if (" << columns << " != " << name << "_stride[0]) {\n    }\n\n"
         << "    if (1 != " << name << "_stride[1]) {\n    }\n"
         << "    int32_t " << name << "_expected_device_type = " << (model.cuda ? 1 : 0) << ";\n}\n\n";
  }
  text << "void AOTInductorModel::run_impl(\n    AtenTensorHandle*\n        input_handles,\n    AtenTensorHandle*\n"
       << "        output_handles,\n    DeviceStreamType stream,\n    AOTIProxyExecutorHandle proxy_executor\n) {\n"
       << "    __check_inputs_outputs(input_handles, output_handles);\n"
       << "    auto inputs = steal_from_raw_handles_to_raii_handles(input_handles, 2);\n"
       << "    auto arg0_1 = std::move(inputs[0]);\n    auto arg1_1 = std::move(inputs[1]);\n"
       << "    auto arg0_1_size = arg0_1.sizes();\n    auto arg1_1_size = arg1_1.sizes();\n"
       << "    int64_t s6 = arg0_1_size[0];\n    inputs.clear();\n";
  for (const int i : {0, 1}) {
    const std::string columns = i == 0 ? "200L" : "4L", sizes = concat({"int_array_", std::to_string(2 * i)}),
                      strides = concat({"int_array_", std::to_string(2 * i + 1)}),
                      name = concat({"buf", std::to_string(i)});
    text << "    const int64_t " << sizes << "[] = {s6, " << columns << "};\n"
         << "    static constexpr int64_t " << strides << "[] = {" << columns << ", 1L};\n"
         << "    AtenTensorHandle " << name << "_handle;\n"
         << "    AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(2, " << sizes << ", " << strides
         << ", cached_torch_dtype_float32, cached_torch_device_type_" << device << ", this->device_idx_, &" << name
         << "_handle));\n    RAIIAtenTensorHandle " << name << "(" << name << "_handle);\n";
  }
  text << "    cpp_fused_loop_0((const int64_t*)(arg0_1.data_ptr()), (const float*)(arg1_1.data_ptr()), "
       << "(float*)(buf0.data_ptr()), (float*)(buf1.data_ptr()), s6);\n    arg0_1.reset();\n    arg1_1.reset();\n"
       << "    output_handles[0] = buf0.release();\n    output_handles[1] = buf1.release();\n";
}

}  // namespace

Model model(const std::string& name) {
  Model result;
  result.name = name;
  result.state = name.find("_state") != std::string::npos;
  result.folded = name.starts_with("fake_folded");
  result.typed = !name.ends_with("_untyped");
  result.loop = name.starts_with("fake_loop");
  result.cuda = name.ends_with("_cuda");
  if (name.ends_with("_appended")) result.weights = Model::Weights::kAppended;
  if (name.ends_with("_external")) result.weights = Model::Weights::kExternal;
  if (name == "fake_weightless") result.weights = Model::Weights::kNone;
  if (name == "fake_large") result.features = 2097152;
  if (name.starts_with("fake_wide") || !result.typed) result.features = 131072;
  if (name == "fake_narrower") result.features = 131056;
  return result;
}

std::vector<std::byte> weights(const Model& model) {
  std::vector<float> values;
  const size_t padded = (static_cast<size_t>(model.features) + 15) / 16 * 16;
  for (size_t i = 0; i < padded; ++i) values.push_back(static_cast<float>(1 + i % 16));
  for (size_t i = 0; i < padded; ++i) values.push_back(static_cast<float>(10 * (i % 16)));
  if (model.state) values.insert(values.end(), 16, 0.0F);
  std::vector<std::byte> result;
  append(result, values.data(), values.size() * sizeof(float));
  return result;
}

std::vector<std::byte> library(const Model& model) {
  const std::string path = concat({FAKE_MODELS, "/", model.name, ".so"});
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("no such fake model: " + path);
  std::vector<std::byte> result = bytes_of({std::istreambuf_iterator<char>(file), {}});
  if (model.weights != Model::Weights::kAppended) return result;
  result.resize((result.size() + kPage - 1) / kPage * kPage, std::byte{' '});
  const std::vector<std::byte> stored = weights(model);
  append(result, stored.data(), stored.size());
  append(result, &kMagic, sizeof(kMagic));
  return result;
}

std::string source(const Model& model) {
  const bool include = model.weights == Model::Weights::kEmbedded || model.weights == Model::Weights::kAppended;
  const std::vector<Constant> all = constants(model);
  std::ostringstream text;
  text << "AOTInductorModel::AOTInductorModel(std::shared_ptr<ConstantMap> constants_map)\n"
       << "    : AOTInductorModelBase(" << (model.loop ? 2 : 1) << ",\n                           "
       << (model.loop ? 2 : 1) << ",\n                           " << all.size()
       << ",\n                           device_str,\n                           std::move(cubin_dir),\n"
       << "                           " << (include ? "true" : "false") << ") {\n"
       << "    inputs_info_[0].name = \"arg0_1\";\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const auto field = [&](const char* name, const std::string& value) {
      text << "    constants_info_[" << i << "]." << name << " = " << value << ";\n";
    };
    field("name", concat({"\"", all[i].name, "\""}));
    field("dtype", "cached_torch_dtype_float32");
    field("device_type", "cached_torch_device_type_cpu");
    field("offset", "0");
    field("data_size", std::to_string(all[i].data_size()));
    field("from_folded", all[i].folded ? "true" : "false");
    field("type", concat({"static_cast<int32_t>(torch::aot_inductor::ConstantType::", all[i].type, ")"}));
    field("shape", concat({"{", std::to_string(all[i].size), "}"}));
    field("stride", "{1}");
    field("layout", "static_cast<int32_t>(cached_torch_layout_strided)");
    field("original_fqn", concat({"\"", all[i].fqn, "\""}));
  }
  text << "    update_constants_map(std::move(constants_map));\n";
  model.loop ? declare_loop(text, model) : declare_rows(text, model, all);
  text << "} // AOTInductorModel::run_impl\n} // namespace torch::aot_inductor\n\n"
       << "// Compile cmd\n// g++ model.wrapper.cpp -march=x86-64-v3 -fPIC -c -o model.wrapper.o\n";
  return text.str();
}

std::map<std::string, std::vector<std::byte>> members(const std::map<std::string, Model>& models, bool with_source) {
  std::map<std::string, std::vector<std::byte>> result{{"archive_format", bytes_of("pt2")},
                                                       {"archive_version", bytes_of("0")},
                                                       {"byteorder", bytes_of("little")},
                                                       {".data/version", bytes_of("6\n")}};
  for (const auto& [name, model] : models) {
    const std::string stem = concat({"data/aotinductor/", name, "/", kStem, ".wrapper"});
    result[stem + ".so"] = library(model);
    if (with_source) result[stem + ".cpp"] = bytes_of(source(model));
    result[stem + "_metadata.json"] = bytes_of(concat({R"({"AOTI_DEVICE_KEY": ")", model.cuda ? "cuda" : "cpu",
                                                       R"(", "AOTI_PLATFORM": "linux", "AOTI_MACHINE": "x86_64", )"
                                                       R"("AOTI_CPU_ISA": "AVX2", "AOTI_COMPUTE_CAPABILITY": "", )"
                                                       // As sconce.export proves it: the kernel has no source.
                                                       R"("sconce_rows": "{\"version\":1,\"independent\":true}"})"}));
    if (model.weights == Model::Weights::kExternal) result[stem + "_weights.blob"] = weights(model);
  }
  return result;
}

void write_shared_object(const std::filesystem::path& path, const Model& model) { write_file(path, library(model)); }

void write_directory(const std::filesystem::path& path, const std::map<std::string, Model>& models, bool with_source) {
  std::filesystem::remove_all(path);
  for (const auto& [name, content] : members(models, with_source)) {
    std::filesystem::create_directories((path / name).parent_path());
    write_file(path / name, content);
  }
}

void write_package(const std::filesystem::path& path, const std::map<std::string, Model>& models, bool with_source) {
  sconce::ArchiveWriter writer(path);
  for (const auto& [name, content] : members(models, with_source))
    writer.add(concat({path.stem().native(), "/", name}), content);
  writer.finish();
}

std::vector<FakeKnobs*> loaded() {
  std::vector<FakeKnobs*> result;
  const auto look = [](dl_phdr_info* info, size_t, void* found) {
    void* handle = *info->dlpi_name ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (!handle) return 0;
    auto* function = reinterpret_cast<FakeKnobsFunction*>(dlsym(handle, "fake_model_knobs"));
    Dl_info owner;
    // A library that merely needs one would find it, too.
    if (function && dladdr(reinterpret_cast<void*>(function), &owner) &&
        std::strcmp(owner.dli_fname, info->dlpi_name) == 0)
      static_cast<std::vector<FakeKnobs*>*>(found)->push_back(function());
    dlclose(handle);
    return 0;
  };
  dl_iterate_phdr(look, &result);
  return result;
}

}  // namespace fake
