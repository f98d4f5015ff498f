#include "server/weights/validation/golden_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sconce/check.h"
#include "sconce/tensor_files.h"
#include "sconce/weight_sources.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/failure.h"
#include "server/support/memory/request_memory.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

struct TensorName {
  std::string_view request, name;
  bool is_input = false;
};

// Splits REQUEST/inputs/NAME at the last "/inputs/" or "/outputs/".
TensorName split_name(std::string_view text) {
  constexpr std::string_view kInputs = "/inputs/", kOutputs = "/outputs/";
  const size_t input = text.rfind(kInputs), output = text.rfind(kOutputs);
  const bool is_input = input != std::string_view::npos && (output == std::string_view::npos || input > output);
  const size_t at = is_input ? input : output;
  SCONCE_CHECK(at != std::string_view::npos && at > 0, kInvalidArgument, "tensor '", excerpt(text),
               "' is not named REQUEST/inputs/NAME or REQUEST/outputs/NAME");
  return {text.substr(0, at), text.substr(at + (is_input ? kInputs : kOutputs).size()), is_input};
}

std::optional<double> parse_tolerance(std::string_view text) {
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

using Metadata = std::map<std::string, std::string>;

double tolerance_of(const std::optional<double>& setting, const Metadata& metadata, const char* key, double otherwise) {
  if (setting) return *setting;
  const auto found = metadata.find(key);
  if (found == metadata.end()) return otherwise;
  const std::optional<double> value = parse_tolerance(found->second);
  SCONCE_CHECK(value, kInvalidArgument, "its metadata '", key, "' is not a number of 0 or more: '",
               excerpt(found->second), "'");
  return *value;
}

bool argmax_of(const std::optional<bool>& setting, const Metadata& metadata) {
  if (setting) return *setting;
  const auto found = metadata.find("argmax");
  if (found == metadata.end()) return false;
  SCONCE_CHECK(found->second == "true" || found->second == "false", kInvalidArgument,
               "its metadata 'argmax' is not true or false: '", excerpt(found->second), "'");
  return found->second == "true";
}

void read_tolerance(const ModelConfig& config, const Metadata& metadata, GoldenFile& file) {
  file.tolerance.rtol = tolerance_of(config.golden_rtol, metadata, "rtol", file.tolerance.rtol);
  file.tolerance.atol = tolerance_of(config.golden_atol, metadata, "atol", file.tolerance.atol);
  file.tolerance.argmax = argmax_of(config.golden_argmax, metadata);
  file.pass = tolerance_of(config.golden_pass, metadata, "pass", file.pass);
  SCONCE_CHECK(file.pass > 0 && file.pass <= 1, kInvalidArgument,
               "the share of requests that must pass is above 0 and at most 1, got ", file.pass);
}

void check_entry(const WeightEntry& entry, const TensorSpec& spec) {
  SCONCE_CHECK(!spec.dtype || *spec.dtype == entry.dtype, kInvalidArgument, "tensor '", excerpt(entry.name), "' is ",
               dtype_name(entry.dtype), ", the model has ", dtype_name(*spec.dtype));
  SCONCE_CHECK(!spec.has_shape || spec.dims.size() == entry.shape.size(), kInvalidArgument, "tensor '",
               excerpt(entry.name), "' has ", entry.shape.size(), " dimensions, the model has ", spec.dims.size());
}

// Copies the tensor, so that the file may be changed or removed.
Tensor read_tensor(WeightFile& file, size_t entry) {
  StorageBlock block;
  const uint64_t bytes = file.bytes(entry);
  block.prepare(std::max<size_t>(bytes, 1));
  if (bytes > 0) file.read(entry, {block.data(), bytes});
  const IntSpan sizes(file.entries()[entry].shape);
  std::vector<int64_t> strides(sizes.size());
  contiguous_strides(sizes, strides.data());
  return Tensor(block.storage(), file.entries()[entry].dtype, sizes, strides);
}

class Reader {
 public:
  Reader(const scheduling::ModelSignature& interface, std::vector<GoldenRequest>& requests)
      : interface_(interface), requests_(requests) {}

  void add(WeightFile& file, size_t entry) {
    const WeightEntry& described = file.entries()[entry];
    const TensorName name = split_name(described.name);
    const scheduling::TensorNames& names = name.is_input ? interface_.input_names : interface_.output_names;
    const std::optional<size_t> index = names.find(name.name);
    SCONCE_CHECK(index, kInvalidArgument, "the model has no such ", name.is_input ? "input" : "output", ": '",
                 excerpt(described.name), "'; it has ", excerpt(names.list()));
    check_entry(described, (name.is_input ? interface_.spec.inputs : interface_.spec.outputs)[*index]);
    GoldenRequest& request = request_of(name.request);
    Tensor tensor = read_tensor(file, entry);
    bool twice = false;
    if (name.is_input) {
      twice = request.inputs[*index].defined();
      request.inputs[*index] = std::move(tensor);
    } else {
      for (const GoldenRequest::Output& other : request.outputs) twice |= other.index == *index;
      request.outputs.push_back({*index, std::move(tensor)});
    }
    SCONCE_CHECK(!twice, kInvalidArgument, "two tensors are the same ", name.is_input ? "input" : "output",
                 " of a request: '", excerpt(described.name), "' is one");
  }

 private:
  GoldenRequest& request_of(std::string_view name) {
    const auto [found, fresh] = index_.try_emplace(std::string(name), requests_.size());
    if (fresh) {
      requests_.push_back({std::string(name), {}, {}});
      requests_.back().inputs.resize(interface_.inputs.size());
    }
    return requests_[found->second];
  }

  const scheduling::ModelSignature& interface_;
  std::vector<GoldenRequest>& requests_;
  std::unordered_map<std::string, size_t> index_;
};

void check_request(const GoldenRequest& request, const scheduling::ModelSignature& interface, const Model& model) {
  const std::string name = excerpt(request.name);
  for (size_t i = 0; i < request.inputs.size(); ++i)
    SCONCE_CHECK(request.inputs[i].defined(), kInvalidArgument, "request '", name, "' lacks input '",
                 interface.input_names.name(i), "'");
  const std::string problem = problem_of([&] {
    std::vector<Tensor> inputs = request.inputs;
    TensorScratch scratch;
    for (size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = scheduling::in_recorded_strides(std::move(inputs[i]), interface.spec.inputs[i], scratch);
    model.check_inputs(inputs);
  });
  SCONCE_CHECK(problem.empty(), kInvalidArgument, "request '", name, "': ", problem);
}

bool is_safetensors(const std::filesystem::path& path) { return path.extension() == ".safetensors"; }

GoldenFile read(const ModelConfig& config, const scheduling::ModelSignature& interface, const Model& model) {
  GoldenFile golden;
  golden.path = config.golden;
  golden.requests = read_requests(golden.path, interface, model);
  read_tolerance(config, is_safetensors(golden.path) ? read_safetensors_metadata(golden.path) : Metadata(), golden);
  for (const GoldenRequest& request : golden.requests)
    SCONCE_CHECK(!request.outputs.empty(), kInvalidArgument, "request '", excerpt(request.name), "' has no outputs");
  return golden;
}

}  // namespace

std::vector<GoldenRequest> read_requests(const std::filesystem::path& path, const scheduling::ModelSignature& interface,
                                         const Model& model) {
  SCONCE_CHECK(is_safetensors(path) || path.extension() == ".npz", kInvalidArgument,
               "it is not a .safetensors or .npz file");
  FileOptions options;
  options.format = is_safetensors(path) ? WeightFormat::kSafetensors : WeightFormat::kNpz;
  const std::unique_ptr<WeightFile> file = WeightFile::open(path, options);
  std::vector<GoldenRequest> requests;
  Reader reader(interface, requests);
  for (size_t i = 0; i < file->entries().size(); ++i) reader.add(*file, i);
  file->check_whole();
  SCONCE_CHECK(!requests.empty(), kInvalidArgument, "it has no requests");
  for (const GoldenRequest& request : requests) check_request(request, interface, model);
  return requests;
}

GoldenFile read_golden(const ModelConfig& config, const scheduling::ModelSignature& interface, const Model& model) {
  const std::string where = "golden file " + config.golden;
  const ErrorContext context(where);
  return read(config, interface, model);
}

}  // namespace sconce::server::weights
