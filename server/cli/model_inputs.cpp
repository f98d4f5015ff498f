#include "server/cli/model_inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "server/cli/tensor_values.h"
#include "server/scheduling/signature/names.h"
#include "src/runner/dummy_inputs.h"
#include "src/support/parse_number.h"

namespace sconce::server::cli {
namespace {

namespace fs = std::filesystem;

Tensor in_recorded_layout(const Tensor& tensor, TensorSpec spec) {
  if (!spec.has_shape || spec.dims.size() != static_cast<size_t>(tensor.dim())) return tensor;
  spec.strides.resize(spec.dims.size());  // row-major if none are recorded
  const std::vector<int64_t> strides = strides_for(spec, tensor.sizes());
  if (std::equal(strides.begin(), strides.end(), tensor.strides().begin())) return tensor;
  Tensor out = Tensor::empty_strided(tensor.sizes(), strides, tensor.dtype());
  copy_elements(tensor, out);
  return out;
}

std::map<std::string, int64_t> read_sizes(const std::vector<std::string>& arguments) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string number = equals == std::string::npos ? "" : argument.substr(equals + 1);
    const auto value = parse_number<int64_t>(number);
    SCONCE_CHECK(value && *value >= 0 && equals > 0, kInvalidArgument, "--size takes SYMBOL=N, not: ", argument);
    sizes[argument.substr(0, equals)] = *value;
  }
  return sizes;
}

std::vector<Tensor> random_inputs(const ModelSpec& spec, const scheduling::TensorNames& names,
                                  const InputOptions& options) {
  std::vector<TensorSpec> specs = spec.inputs;
  std::vector<std::string> shown;
  for (size_t i = 0; i < specs.size(); ++i) {
    SCONCE_CHECK(specs[i].has_shape && specs[i].dtype, kInvalidArgument,
                 "the package does not record dtype and shape, give a file with --input for: ", names.name(i));
    shown.push_back(names.name(i));
    specs[i].strides.resize(specs[i].dims.size());  // row-major if none are recorded
  }
  std::vector<Tensor> inputs = dummy_inputs(
      specs, {.chosen = read_sizes(options.sizes), .others = 2, .most_elements = INT64_MAX, .bounds = spec.bounds},
      shown);
  for (size_t i = 0; i < inputs.size(); ++i) fill_random(inputs[i], options.seed + i, specs[i].values);
  return inputs;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  SCONCE_CHECK(file, kIo, "cannot open file: ", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

class InputFiles {
 public:
  InputFiles(const ModelSpec& spec, const scheduling::TensorNames& names)
      : spec_(spec), names_(names), inputs_(spec.inputs.size()) {}

  void add(const std::string& argument) {
    const size_t equals = argument.find('=');
    // A file name may contain '='.
    if (equals == std::string::npos || fs::exists(argument))
      add_all(argument);
    else
      add_one(argument.substr(0, equals), argument.substr(equals + 1));
  }

  std::vector<Tensor> finish() {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      SCONCE_CHECK(inputs_[i], kInvalidArgument, "no file given for input: ", names_.name(i));
      tensors.push_back(in_recorded_layout(*inputs_[i], spec_.inputs[i]));
    }
    return tensors;
  }

 private:
  size_t index_of(std::string_view name) const {
    const std::optional<size_t> i = names_.find(name);
    SCONCE_CHECK(i, kInvalidArgument, "no such input: ", name, "; the model has ", names_.list());
    return *i;
  }
  void set(size_t i, Tensor tensor) {
    SCONCE_CHECK(!inputs_[i], kInvalidArgument, "input given twice: ", names_.name(i));
    inputs_[i] = std::move(tensor);
  }
  DType dtype_of(size_t i) const {
    SCONCE_CHECK(spec_.inputs[i].dtype, kInvalidArgument,
                 "the package does not record the dtype, JSON cannot be read for input: ", names_.name(i));
    return *spec_.inputs[i].dtype;
  }
  void add_one(const std::string& name, const fs::path& path) {
    const size_t i = index_of(name);
    if (path.extension() == ".json") {
      const std::string text = read_file(path);
      JsonCursor cursor(text);
      Tensor tensor = read_json_tensor(cursor, dtype_of(i));
      cursor.finish();
      return set(i, std::move(tensor));
    }
    const std::vector<NamedTensor> tensors = read_tensors(path);
    if (tensors.size() == 1) return set(i, tensors[0].tensor);
    for (const NamedTensor& t : tensors)
      if (t.name == name) return set(i, t.tensor);
    SCONCE_FAIL(kInvalidArgument, "file has ", tensors.size(), " tensors, none called ", name, ": ", path.string());
  }
  void add_all(const fs::path& path) {
    if (path.extension() == ".json") {
      const std::string text = read_file(path);
      JsonCursor cursor(text);
      cursor.object("inputs", [&](std::string_view key) {
        const size_t i = index_of(key);
        set(i, read_json_tensor(cursor, dtype_of(i)));
      });
      return cursor.finish();
    }
    const std::vector<NamedTensor> tensors = read_tensors(path);
    // A single tensor for a single input needs no name.
    if (tensors.size() == 1 && inputs_.size() == 1) return set(0, tensors[0].tensor);
    for (const NamedTensor& t : tensors) set(index_of(t.name), t.tensor);
  }

  const ModelSpec& spec_;
  const scheduling::TensorNames& names_;
  std::vector<std::optional<Tensor>> inputs_;
};

}  // namespace

void add_input_options(CommandLine& app, InputOptions& options) {
  app.option("--input", options.files,
             "NAME=FILE, or FILE with tensors named as the inputs: .npy, .npz, .safetensors or .json; random without")
      .one_each();
  app.option("--size", options.sizes, "SYMBOL=N: a dynamic size of random inputs").one_each();
  app.option("--seed", options.seed, "Seed of random inputs and of the model's random numbers");
  app.flag("--random-inputs", options.random_on_device,
           "Run random inputs on a GPU; an index out of bounds would make it unusable for this process");
}

void check_input_options(const InputOptions& options) {
  read_sizes(options.sizes);
  SCONCE_CHECK(options.sizes.empty() || options.files.empty(), kInvalidArgument,
               "--size does not go with --input: it is for random inputs");
}

std::vector<Tensor> make_inputs(const ModelSpec& spec, const InputOptions& options) {
  const scheduling::TensorNames names = scheduling::TensorNames::of_inputs(spec);
  if (options.files.empty()) return random_inputs(spec, names, options);
  InputFiles files(spec, names);
  for (const std::string& argument : options.files) files.add(argument);
  return files.finish();
}

}  // namespace sconce::server::cli
