#include "package_format/manifest.h"

#include <algorithm>
#include <map>

#include "package_format/text/json_text.h"
#include "package_format/text/json_value.h"
#include "sconce/check.h"

namespace sconce {
namespace {

constexpr std::string_view kModels = "data/aotinductor/";

// "a/b/c.so" -> "a/b/"
std::string_view folder_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash + 1);
}

std::string concat(std::string_view a, std::string_view b) { return std::string(a).append(b); }

bool any_ends_with(std::span<const ArchiveMember* const> members, std::string_view ending) {
  return std::any_of(members.begin(), members.end(),
                     [&](const ArchiveMember* member) { return member->name.ends_with(ending); });
}

// Refuses a folder without a library, and names its content.
[[noreturn]] void refuse_folder(std::string_view model, std::span<const ArchiveMember* const> members) {
  const bool sources =
      any_ends_with(members, ".cpp") || any_ends_with(members, ".o") || any_ends_with(members, "_compile_flags.json");
  SCONCE_CHECK(!sources, kUnsupported,
               "package has sources only (package_cpp_only or compile_standalone), no compiled library: ", "model ",
               model);
  SCONCE_FAIL(kUnsupported, "package has no compiled library: model ", model);
}

// Refuses an archive without models, and names its content.
[[noreturn]] void refuse_archive(const ArchiveReader& archive) {
  const std::string path = archive.path().native();
  SCONCE_CHECK(
      archive.list("models/").empty(), kUnsupported,
      "package holds an ExportedProgram only; compile it with torch._inductor.aoti_compile_and_package: ", path);
  const auto any = [&](auto holds) {
    return std::any_of(archive.members().begin(), archive.members().end(),
                       [&](const ArchiveMember& member) { return holds(std::string_view(member.path)); });
  };
  SCONCE_CHECK(!any([](std::string_view name) { return name.find("/code/__torch__") != std::string_view::npos; }),
               kUnsupported, "file is a TorchScript archive, not an AOTInductor package: ", path);
  SCONCE_CHECK(!any([](std::string_view name) { return name == "data.pkl" || name.ends_with("/data.pkl"); }),
               kUnsupported, "file is a torch.save checkpoint, not an AOTInductor package: ", path);
  SCONCE_FAIL(kUnsupported, "archive is not an AOTInductor package: it has no member below ", kModels, ": ", path);
}

void refuse_torchbind(const ArchiveReader& archive, const std::string& model, std::string_view folder) {
  const ArchiveMember* config = archive.find(concat(folder, "custom_objs_config.json"));
  if (config == nullptr) return;
  const auto objects = parse_json(archive.read_text(*config), "member " + config->path);
  SCONCE_CHECK(objects.is_object(), kCorruptPackage, "member is not a JSON object: ", config->path);
  SCONCE_CHECK(objects.empty(), kUnsupported, "package needs TorchBind objects, which only libtorch has: model ", model,
               ": ", objects.begin().key());
}

// The folder's library; there must be exactly one.
const ArchiveMember& library_of(std::string_view folder, std::span<const ArchiveMember* const> members) {
  const std::string_view model = folder.substr(kModels.size(), folder.size() - kModels.size() - 1);
  const ArchiveMember* so = nullptr;
  for (const ArchiveMember* member : members) {
    if (!member->name.ends_with(".so")) continue;
    SCONCE_CHECK(so == nullptr, kUnsupported,
                 "package has several libraries for one model (Triton kernels for CPU): model ", model, ": ", so->name,
                 " and ", member->name);
    so = member;
  }
  if (so == nullptr) refuse_folder(model, members);
  return *so;
}

}  // namespace

std::vector<ModelFiles> read_manifest(const ArchiveReader& archive) {
  std::vector<ModelFiles> models;
  if (archive.kind() == ArchiveReader::Kind::kSharedObject) {
    models.push_back(find_files(archive, archive.members().front().name));
    return models;
  }
  std::map<std::string_view, std::vector<const ArchiveMember*>> folders;
  for (const ArchiveMember* member : archive.list(kModels)) {
    const std::string_view folder = folder_of(member->name);
    if (folder.size() > kModels.size()) folders[folder].push_back(member);
  }
  if (folders.empty()) refuse_archive(archive);
  for (const auto& [folder, members] : folders) {
    const ArchiveMember& so = library_of(folder, members);
    models.push_back(find_files(archive, so.name));
    refuse_torchbind(archive, models.back().name, folder);
  }
  return models;
}

ModelFiles find_files(const ArchiveReader& archive, std::string_view so_member) {
  ModelFiles files;
  files.so = archive.find(so_member);
  SCONCE_CHECK(files.so != nullptr, kNotFound, "package has no such member: ", so_member);
  files.folder = folder_of(so_member);
  files.name = "model";
  if (files.folder.empty()) return files;  // a bare .so
  files.name = files.folder.substr(kModels.size(), files.folder.size() - kModels.size() - 1);
  for (const ArchiveMember* member : archive.list(files.folder))
    if (member->name.ends_with(".kernel.cpp") && folder_of(member->name) == files.folder)
      files.kernels.push_back(member);
  std::string_view stem = so_member;
  stem.remove_suffix(3);  // ".so"
  files.wrapper = archive.find(concat(stem, ".cpp"));
  files.metadata = archive.find(concat(stem, "_metadata.json"));
  files.extern_nodes = archive.find(concat(stem, ".json"));
  files.weights_blob = archive.find(concat(stem, "_weights.blob"));
  files.weights_config = archive.find(concat(files.folder, "weights_config.json"));
  files.program = archive.find("models/" + files.name + ".json");
  files.program_weights = archive.find("data/weights/" + files.name + "_weights_config.json");
  files.program_constants = archive.find("data/constants/" + files.name + "_constants_config.json");
  return files;
}

}  // namespace sconce
