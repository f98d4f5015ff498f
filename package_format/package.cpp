#include "sconce/package.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "package_format/archive_reader.h"
#include "package_format/call_spec.h"
#include "package_format/elf_reader.h"
#include "package_format/manifest.h"
#include "package_format/weights_index.h"
#include "package_format/wrapper_source.h"
#include "sconce/check.h"

namespace sconce {
namespace {

using nlohmann::json;

json parse_json(const ArchiveReader& archive, const ArchiveMember& member) {
  json value = json::parse(archive.read_text(member), nullptr, /*allow_exceptions=*/false);
  SCONCE_CHECK(!value.is_discarded(), kCorruptPackage, "member is not JSON: ", member.path);
  return value;
}

void read_metadata(const ArchiveReader& archive, const ArchiveMember& member, ModelSpec& spec) {
  const json values = parse_json(archive, member);
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
  const json value = parse_json(archive, member);
  const json* nodes = value.is_object() && value.contains("nodes") ? &value["nodes"] : nullptr;
  SCONCE_CHECK(nodes && nodes->is_array(), kCorruptPackage, "member has no list of nodes: ", member.path);
  for (const json& entry : *nodes) {
    const bool sound = entry.is_object() && entry.contains("node") && entry["node"].is_object() &&
                       entry["node"].contains("target") && entry["node"]["target"].is_string();
    SCONCE_CHECK(sound, kCorruptPackage, "member has a node without a target: ", member.path);
    spec.proxy_targets.push_back(entry["node"]["target"].get<std::string>());
  }
}

ModelSpec read_model(const ArchiveReader& archive, const ModelFiles& files) {
  ModelSpec spec;
  spec.name = files.name;
  spec.so_member = files.so->name;
  spec.so_bytes = files.so->size;
  if (files.metadata) read_metadata(archive, *files.metadata, spec);
  if (files.extern_nodes) read_extern_nodes(archive, *files.extern_nodes, spec);
  const ElfReader so(archive.read(*files.so), files.so->path);
  spec.imports = so.imports();
  bool include_weights = true;
  if (files.wrapper) {
    const std::string_view text = archive.read_text(*files.wrapper);
    const WrapperSource source = read_wrapper_source(text, spec);
    spec.has_source = source.found;
    include_weights = source.include_weights;
    if (!source.in_spec.empty() && !source.out_spec.empty())
      spec.call_spec = parse_call_spec(source.in_spec, source.out_spec, spec.inputs.size());
    spec.threads = kernel_threads(text);
  }
  for (const ArchiveMember* kernel : files.kernels)
    spec.threads = std::max(spec.threads, kernel_threads(archive.read_text(*kernel)));
  const WeightsSummary weights = summarise_weights(archive, files, so, include_weights, spec);
  spec.weights_form = weights.form;
  spec.weights_bytes = weights.bytes;
  return spec;
}

}  // namespace

std::shared_ptr<const Package> Package::open(const std::filesystem::path& path) {
  std::shared_ptr<Package> package(new Package);
  package->path_ = path;
  package->archive_ = ArchiveReader::open(path);
  for (const ModelFiles& files : read_manifest(*package->archive_))
    package->models_.push_back(read_model(*package->archive_, files));
  return package;
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

void Package::verify() const { archive_->verify(); }

}  // namespace sconce
