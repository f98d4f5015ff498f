#include "sconce/package.h"

#include <algorithm>

#include "package_format/archive/archive_reader.h"
#include "package_format/call_spec.h"
#include "package_format/elf_image.h"
#include "package_format/manifest.h"
#include "package_format/producer.h"
#include "package_format/sizes/recorded_sizes.h"
#include "package_format/text/json_text.h"
#include "package_format/text/json_value.h"
#include "package_format/weights_index.h"
#include "package_format/wrapper/rows/row_proof.h"
#include "package_format/wrapper/rows/small_sizes.h"
#include "package_format/wrapper/wrapper_mutation.h"
#include "package_format/wrapper/wrapper_source.h"
#include "package_format/wrapper/wrapper_values.h"
#include "sconce/check.h"
#include "src/support/error_context.h"

namespace sconce {
namespace {

using json = SortedJson;

json read_json(const ArchiveReader& archive, const ArchiveMember& member) {
  json value = parse_json(archive.read_text(member), "member " + member.path);
  SCONCE_CHECK(!value.is_discarded(), kCorruptPackage, "member is not JSON: ", member.path);
  return value;
}

void read_metadata(const ArchiveReader& archive, const ArchiveMember& member, ModelSpec& spec) {
  const json values = read_json(archive, member);
  SCONCE_CHECK(values.is_object(), kCorruptPackage, "member is not a JSON object: ", member.path);
  for (const auto& [key, value] : values.items())
    if (value.is_string()) spec.metadata[key] = value.get<std::string>();
  const auto known = [&](const char* key) {
    const auto at = spec.metadata.find(key);
    return at == spec.metadata.end() ? std::string() : at->second;
  };
  spec.device_key = known("AOTI_DEVICE_KEY");
  spec.platform = known("AOTI_PLATFORM");
  spec.machine = known("AOTI_MACHINE");
  spec.cpu_isa = known("AOTI_CPU_ISA");
  spec.compute_capability = known("AOTI_COMPUTE_CAPABILITY");
}

// {"nodes": [{"name", "node": {"target": "aten::mm", ...}}]}
void read_extern_nodes(const ArchiveReader& archive, const ArchiveMember& member, ModelSpec& spec) {
  const json value = read_json(archive, member);
  const json* nodes = value.is_object() && value.contains("nodes") ? &value["nodes"] : nullptr;
  SCONCE_CHECK(nodes && nodes->is_array(), kCorruptPackage, "member has no list of nodes: ", member.path);
  for (const json& entry : *nodes) {
    const bool sound = entry.is_object() && entry.contains("node") && entry["node"].is_object() &&
                       entry["node"].contains("target") && entry["node"]["target"].is_string();
    SCONCE_CHECK(sound, kCorruptPackage, "member has a node without a target: ", member.path);
    spec.proxy_targets.push_back(entry["node"]["target"].get<std::string>());
  }
}

// Opening a package compares the CRC of libraries up to this size, and of larger ones that are mostly code. For a
// library that is mostly weights, all of them would have to be read: verify() does that.
constexpr uint64_t kCheckedLibraryBytes = uint64_t{16} << 20;

// A bare library has no metadata; neither has a package older than torch 2.4.
std::string infer_device_key(const ModelSpec& spec) {
  const auto cuda = [](const std::string& name) { return name.starts_with("cuda") || name.starts_with("cuMod"); };
  return std::any_of(spec.imports.begin(), spec.imports.end(), cuda) ? "cuda" : "cpu";
}

// A CPU package has everything on the CPU; sources before torch 2.8 check no device.
void complete_devices(ModelSpec& spec) {
  if (spec.device_key != "cpu") return;
  for (std::vector<TensorSpec>* tensors : {&spec.inputs, &spec.outputs})
    for (TensorSpec& tensor : *tensors)
      if (!tensor.device && !tensor.none) tensor.device = Device{};
}

struct ReadModel {
  ModelSpec spec;
  std::string producer;
};

ReadModel read_model(const ArchiveReader& archive, const ModelFiles& files) {
  ReadModel result;
  ModelSpec& spec = result.spec;
  spec.name = files.name;
  spec.so_member = files.so->name;
  spec.so_bytes = files.so->size;
  if (files.metadata) read_metadata(archive, *files.metadata, spec);
  if (files.extern_nodes) read_extern_nodes(archive, *files.extern_nodes, spec);

  const bool small = spec.so_bytes <= kCheckedLibraryBytes;
  const ElfImage so(small ? archive.read(*files.so) : archive.view(*files.so), files.so->path);
  spec.imports = so.imports();
  if (spec.device_key.empty()) spec.device_key = infer_device_key(spec);

  WrapperSource source;
  std::string_view text;
  if (files.wrapper) {
    text = archive.read_text(*files.wrapper);
    source = read_wrapper_source(text, spec);
    spec.has_source = source.found;
    apply_recorded_sizes(spec);
    spec.threads = kernel_threads(text);
  }
  result.producer = find_producer(so, text, files.so->path);
  std::vector<std::string_view> kernels;
  if (source.found) kernels.push_back(text.substr(0, static_cast<size_t>(source.body.data() - text.data())));
  for (const ArchiveMember* kernel : files.kernels) {
    kernels.push_back(archive.read_text(*kernel));
    spec.threads = std::max(spec.threads, kernel_threads(kernels.back()));
  }

  if (!source.in_spec.empty() && !source.out_spec.empty()) {
    spec.call_spec = parse_call_spec(source.in_spec, source.out_spec);
    map_inputs(spec.call_spec, spec.inputs, files.program ? archive.read_text(*files.program) : std::string_view());
  } else if (!spec.has_source) {
    spec.call_spec = find_call_spec(so);
  }

  const WeightsSummary weights = summarise_weights(archive, files, so, source.include_weights, spec);
  spec.weights_form = weights.form;
  spec.weights_bytes = weights.bytes;
  const bool inside = weights.form == WeightsForm::kEmbedded || weights.form == WeightsForm::kAppended;
  if (!small && spec.so_bytes / 2 > (inside ? weights.bytes : 0)) archive.read(*files.so);
  spec.may_write_constants = weights.writable;
  find_mutated(text, source, weights.writable, spec);
  rows::ParsedCode code(source, kernels);
  prove_rows(code, spec);
  find_small_sizes(code, spec);
  find_values(source, kernels, spec);
  complete_devices(spec);
  return result;
}

}  // namespace

std::shared_ptr<const Package> Package::open(const std::filesystem::path& path) {
  std::shared_ptr<Package> package(new Package);
  package->path_ = path;
  const ErrorContext context(package->path_.native());
  package->archive_ = ArchiveReader::open(path);
  package->read_models();
  return package;
}

std::shared_ptr<const Package> Package::open(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                             const std::string& name) {
  std::shared_ptr<Package> package(new Package);
  package->path_ = name;
  const ErrorContext context(package->path_.native());
  package->archive_ = ArchiveReader::open(bytes, std::move(owner), package->path_);
  package->read_models();
  return package;
}

std::shared_ptr<const Package> Package::open(std::span<const MemoryFile> files, std::shared_ptr<const void> owner,
                                             const std::string& name) {
  std::shared_ptr<Package> package(new Package);
  package->path_ = name;
  const ErrorContext context(package->path_.native());
  package->archive_ = ArchiveReader::open(files, std::move(owner), package->path_);
  package->read_models();
  return package;
}

void Package::read_models() {
  for (const ModelFiles& files : read_manifest(*archive_)) {
    ReadModel model = read_model(*archive_, files);
    models_.push_back(std::move(model.spec));
    producer_ = std::move(model.producer);
  }
  archive_->check_files();
}

std::vector<int64_t> strides_for(const TensorSpec& spec, std::span<const int64_t> sizes) {
  SCONCE_CHECK(sizes.size() == spec.strides.size(), kInvalidArgument, "strides_for: ", sizes.size(), " sizes for ",
               spec.strides.size(), " strides");
  int64_t dense = 1;
  for (size_t d = sizes.size(); d-- > 0;)
    if (spec.strides[d]) dense = std::max(dense, *spec.strides[d] * std::max<int64_t>(sizes[d], 1));
  std::vector<int64_t> strides(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = spec.strides[d].value_or(dense);
    if (!spec.strides[d]) dense *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

Package::~Package() = default;

const ModelSpec& Package::model(std::string_view name) const {
  if (name.empty() && models_.size() == 1) return models_.front();
  const std::string_view wanted = name.empty() ? "model" : name;
  const auto found = std::find_if(models_.begin(), models_.end(), [&](const ModelSpec& m) { return m.name == wanted; });
  if (found != models_.end()) return *found;
  std::string names;
  for (const ModelSpec& model : models_) names.append(names.empty() ? "" : ", ").append(model.name);
  SCONCE_FAIL(kNotFound, "package has no such model: \"", wanted, "\"; it has: ", names);
}

std::vector<PackageMember> Package::members() const {
  std::vector<PackageMember> members;
  for (const ArchiveMember& member : archive_->members())
    members.push_back({std::string(member.name), member.size, member.deflated, member.path});
  return members;
}

std::span<const std::byte> Package::content(size_t member) const {
  const std::span<const ArchiveMember> members = archive_->members();
  SCONCE_CHECK(member < members.size(), kInvalidArgument, "package has ", members.size(), " members, not one numbered ",
               member);
  return archive_->read(members[member]);
}

void Package::verify(const Progress& progress) const {
  const ErrorContext context(path_.native());
  archive_->verify(progress);
  archive_->check_files();
}

}  // namespace sconce
