#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

#include "sconce/check.h"
#include "sconce/model.h"
#include "sconce/random.h"
#include "sconce/tensor_files.h"
#include "server/cli/command.h"
#include "server/cli/load_settings.h"
#include "server/cli/model_inputs.h"
#include "server/cli/tried_inputs.h"
#include "server/scheduling/signature/names.h"
#include "server/support/json/tensor_json.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  LoadSettings load;
  InputOptions inputs;
  std::string output, format = "npy";
};

// Converts a name to a safe file name: characters that could leave the folder or confuse a shell become '_'.
std::string file_stem(const std::string& name) {
  std::string stem = name;
  for (char& c : stem)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-[]", c)) c = '_';
  if (stem.empty() || stem[0] == '.') stem.insert(0, "_");
  return stem;
}

std::string as_json(const Tensor& tensor) {
  TextBuffer text;
  write_nested(text, tensor);
  return std::string(text.view());
}

void write_json(const fs::path& path, const scheduling::TensorNames& names, const std::vector<Tensor>& outputs) {
  TextBuffer text;
  text.append("{");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) text.append(",");
    text.append(names.json(i));
    text.append(":");
    if (outputs[i].defined())
      write_nested(text, outputs[i]);
    else
      text.append("null");
  }
  text.append("}\n");
  std::ofstream file(path, std::ios::binary);
  file << text.view();
  SCONCE_CHECK(file.flush(), kIo, "cannot write file: ", path.string());
}

void write_files(const RunOptions& options, const scheduling::TensorNames& names, const std::vector<Tensor>& outputs) {
  const fs::path folder = options.output;
  std::error_code error;
  fs::create_directories(folder, error);
  SCONCE_CHECK(fs::is_directory(folder), kIo, "cannot create folder: ", folder.string(), ": ", error.message());
  if (options.format == "json") return write_json(folder / "outputs.json", names, outputs);
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined()) tensors.push_back({names.name(i), outputs[i]});
  if (options.format == "npz") return write_npz(folder / "outputs.npz", tensors);
  if (options.format == "safetensors") return write_safetensors(folder / "outputs.safetensors", tensors);
  std::set<std::string> used;
  for (const NamedTensor& t : tensors) {
    const std::string stem = file_stem(t.name);
    SCONCE_CHECK(used.insert(stem).second, kInvalidArgument, "two outputs would be one file, use --format npz: ", stem);
    write_npy(folder / (stem + ".npy"), t.tensor);
  }
}

void print(const scheduling::TensorNames& names, const std::vector<Tensor>& outputs) {
  constexpr int64_t kShown = 64;  // elements
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    std::cout << bold(names.name(i)) << "  " << (t.defined() ? sconce::describe(t) : "None") << "\n";
    if (t.defined() && t.numel() <= kShown && has_json_form(t.dtype())) std::cout << "  " << as_json(t) << "\n";
  }
}

int run(const RunOptions& options) {
  const std::string untried = try_dummy_inputs(options.load, options.inputs);
  const std::shared_ptr<Model> model = load_for_one_run(options.load);
  SCONCE_CHECK(untried.empty(), kModelFailed, untried);
  const ModelSpec& spec = model->info().spec;
  const std::vector<Tensor> inputs = make_inputs(spec, options.inputs);
  manual_seed(options.inputs.seed);
  std::vector<Tensor> outputs(spec.outputs.size());
  const RunInfo info = model->run(inputs, outputs);
  const scheduling::TensorNames names = scheduling::TensorNames::of_outputs(spec);
  if (!options.output.empty()) write_files(options, names, outputs);
  print(names, outputs);
  std::cout << faint(fmt::format("{} in {}", spec.name,
                                 format_seconds(std::chrono::duration<double>(info.compute).count())))
            << "\n";
  return 0;
}

}  // namespace

Action add_run(CommandLine& app) {
  auto options = std::make_shared<RunOptions>();
  add_load_options(app, options->load);
  add_input_options(app, options->inputs);
  app.option("--output", options->output, "Folder for the outputs; they are only printed without");
  app.option("--format", options->format, "npy (a file per output), npz, safetensors or json")
      .one_of({"npy", "npz", "safetensors", "json"});
  app.checked([options] {
    check_input_options(options->inputs);
    load_options(options->load);
  });
  return [options] { return run(*options); };
}

}  // namespace sconce::server::cli
