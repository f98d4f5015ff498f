#include "server/registry/repositories/package_finder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "sconce/check.h"
#include "server/registry/repositories/version_policy.h"
#include "server/support/failure.h"
#include "src/support/error_context.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

// Failures that say nothing about the folder.
bool is_shortage(const std::error_code& problem) {
  return problem == std::errc::too_many_files_open || problem == std::errc::too_many_files_open_in_system ||
         problem == std::errc::not_enough_memory;
}

std::optional<int64_t> version_of(const std::string& text) {
  const auto version = parse_number<int64_t>(text);
  return version && *version >= 1 && text[0] != '0' ? version : std::nullopt;
}

[[noreturn]] void fail_to_read(const fs::path& directory, const std::error_code& problem) {
  SCONCE_FAIL(kIo, "cannot read directory: ", directory.native(), ": ", problem.message());
}

constexpr std::string_view kPipeline = ".pipeline.json";

bool is_pipeline(const fs::path& path) { return path.filename().native().ends_with(kPipeline); }

scheduling::TritonConfig read_config(const fs::path& path) {
  const std::string& where = path.native();
  const ErrorContext context(where);
  return scheduling::read_triton_config(read_settings_text(path), path.parent_path());
}

std::string stem_of(const fs::path& path) {
  std::string name = path.filename().native();
  if (is_pipeline(path)) return name.substr(0, name.size() - kPipeline.size());
  return path.stem().string();
}

// The settings in a config.pbtxt that the server's own settings leave open.
std::vector<ModelSetting> settings_of(const ServerConfig& config, const scheduling::TritonConfig& triton,
                                      const fs::path& origin) {
  std::vector<ModelSetting> settings;
  for (const auto& [key, value] : triton.settings) {
    // `versions` is set by the user of the server, if it was given.
    const bool overruled = key == "version_policy" && std::ranges::count(config.given, "versions") > 0;
    if (!overruled) settings.push_back({{}, key, value, origin.native()});
  }
  return settings;
}

VersionPolicy version_policy(const ServerConfig& config, const std::string& name,
                             std::span<const ModelSetting> beside) {
  const ModelConfig model = config.model(name, beside);
  if (model.version_policy.empty() && config.versions == Versions::kAll) return parse_version_policy("all");
  return parse_version_policy(model.version_policy);
}

// A package with a reference that keeps its file in place while the package is in use.
std::shared_ptr<const Package> keep_with(std::shared_ptr<const Package> package, std::shared_ptr<const void> use) {
  struct Both {
    std::shared_ptr<const void> use;  // destroyed last
    std::shared_ptr<const Package> package;
  };
  const auto both = std::make_shared<const Both>(Both{std::move(use), std::move(package)});
  return {both, both->package.get()};
}

void no_note(const std::string&) {}
constexpr auto kAny = [](const std::string&) { return true; };

}  // namespace

ServedVersions served_versions(const ServerConfig& config, const std::string& model, const fs::path& pbtxt) {
  ServedVersions served;
  if (pbtxt.empty()) {
    served.policy = version_policy(config, model, {});
    return served;
  }
  succeeds([&] {
    const scheduling::TritonConfig read = read_config(pbtxt);
    served.ensemble = read.ensemble;
    served.policy = version_policy(config, model, settings_of(config, read, pbtxt));
  });
  return served;
}

// The package files of a repository whose stem is wanted.
class PackageFinder::Listing {
 public:
  Listing(const PackageFinder& finder, const FolderView& view, Note note, std::vector<PackageFile>& files)
      : finder_(finder), view_(view), note_(note), files_(files) {}

  template <class Wanted>
  void add(const fs::path& directory, Wanted&& wanted) {
    const size_t before = files_.size();
    std::error_code problem;
    const std::vector<std::string> names = view_.names(directory, problem);
    if (problem) fail_to_read(directory, problem);
    for (const std::string& name : names)
      if (!name.starts_with('.')) add_child(directory / name, name, wanted);
    if (files_.size() == before) note_("repository without a model: " + directory.string());
  }

  // Adds the files of one stem, without listing the folder.
  void add_stem(const fs::path& directory, const std::string& stem) {
    const auto wanted = [&](const std::string& found) { return found == stem; };
    for (const std::string& name : {stem, stem + ".pt2", stem + std::string(kPipeline)})
      if (view_.exists(directory / name)) add_child(directory / name, name, wanted);
  }

 private:
  template <class Wanted>
  void add_child(const fs::path& child, const std::string& name, Wanted&& wanted) {
    if (view_.is_folder(child) && !view_.is_package(child)) {
      if (wanted(name)) add_versions(child, name);
    } else if (child.extension() == ".pt2" || is_pipeline(child) || view_.is_package(child)) {
      const std::string stem = stem_of(child);
      if (!is_model_name(stem)) {
        note_("passed over, its stem is not a model's name: " + child.string());
      } else if (wanted(stem)) {
        files_.push_back({stem, 1, child, {}, finder_.stamp(view_, child)});
      }
    }
  }

  void add_versions(const fs::path& directory, const std::string& name) {
    if (!is_model_name(name)) return note_("passed over, not a model's name: " + directory.string());
    std::error_code problem;
    const std::vector<std::string> names = view_.names(directory, problem);
    if (is_shortage(problem)) fail_to_read(directory, problem);
    if (problem == std::errc::no_such_file_or_directory) return;  // it was just removed
    // The problem concerns only this model, and is reported when it is opened.
    if (problem) return files_.push_back({name, 1, directory, {}, finder_.stamp(view_, directory)});
    std::map<int64_t, fs::path> versions;
    int64_t newest_folder = 1;
    for (const std::string& child : names) {
      const std::optional<int64_t> version = version_of(child);
      newest_folder = std::max(newest_folder, version.value_or(1));
      const fs::path package = directory / child / "model.pt2";
      if (version && view_.exists(package)) versions.emplace(*version, package);
    }
    fs::path config = directory / "config.pbtxt";
    if (!view_.exists(config)) config.clear();
    // Before the download, its content is unknown.
    const bool unread = !config.empty() && !is_there(config);
    const ServedVersions served = served_versions(finder_.config_, name, unread ? fs::path() : config);
    if (served.ensemble || (unread && versions.empty()))
      return files_.push_back({name, newest_folder, config, config, finder_.stamp(view_, config)});
    std::vector<int64_t> numbers;
    for (const auto& [version, path] : versions) numbers.push_back(version);
    if (numbers.empty()) return note_("passed over, no VERSION/model.pt2 in it: " + directory.string());
    for (const auto& [version, path] : versions)
      if (served.policy.serves(version, numbers))
        files_.push_back({name, version, path, config, finder_.stamp(view_, path, config)});
  }

  const PackageFinder& finder_;
  const FolderView& view_;
  const Note note_;
  std::vector<PackageFile>& files_;
};

bool FoundFiles::misses(const PackageFile& file) const {
  return std::any_of(unread.begin(), unread.end(), [&](const UnreadFolder& one) {
    const std::string below = (one.folder / "").native();
    return file.path.native().starts_with(below);
  });
}

std::string read_settings_text(const fs::path& path) {
  constexpr size_t kMaxText = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxText + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  SCONCE_CHECK(file.is_open() && !file.bad(), kIo, "cannot read ", path.native());
  text.resize(static_cast<size_t>(file.gcount()));
  SCONCE_CHECK(text.size() <= kMaxText, kInvalidArgument, path.native(), " has more than ", kMaxText, " bytes");
  return text;
}

PackageFinder::PackageFinder(const ServerConfig& config, const signing::SignatureRule& signatures, RemoteFolders remote)
    : config_(config), signatures_(signatures), remote_(std::move(remote)) {
  SCONCE_CHECK(!config.serve.empty(), kInvalidArgument, "nothing to serve: name a package or a repository");
  for (const std::string& argument : config.serve) add_source(argument);
  for (const std::string& folder : config.load_on_demand)
    SCONCE_CHECK(std::any_of(sources_.begin(), sources_.end(),
                             [&](const Source& source) { return source.repository() && source.path == folder; }),
                 kInvalidArgument, "setting load_on_demand names '", folder,
                 "', which is no repository that is served");
}

void PackageFinder::add_source(const std::string& argument) {
  const size_t equals = argument.find('=');
  // A path may also contain '=': the part before it is a name only if it has the form of one.
  if (equals != std::string::npos && is_model_name(std::string_view(argument).substr(0, equals))) {
    const fs::path path = argument.substr(equals + 1);
    SCONCE_CHECK(is_there(path) || !config_.exit_on_error, kNotFound, "no such package: ", path.string());
    sources_.push_back({path, argument.substr(0, equals)});
    return;
  }
  const fs::path path = argument;
  const bool there = is_there(path);
  SCONCE_CHECK(there || !config_.exit_on_error, kNotFound, "no such package or repository: ", argument);
  const FolderView& here = local_folders();
  if (there ? here.is_folder(path) && !here.is_package(path) : path.extension() != ".pt2" && !is_pipeline(path)) {
    const bool named = std::find(config_.load_on_demand.begin(), config_.load_on_demand.end(), argument) !=
                       config_.load_on_demand.end();
    const auto remote = remote_.find(path);
    sources_.push_back(
        {path, {}, config_.load == LoadWhen::kDemand || named, remote == remote_.end() ? nullptr : remote->second});
    return;
  }
  const std::string stem = stem_of(path.has_filename() ? path : path.parent_path());
  SCONCE_CHECK(is_model_name(stem), kInvalidArgument, "not a model's name (letters, digits, '_', '-', '.'): '", stem,
               "', give another with NAME=", path.string());
  sources_.push_back({path, stem});
}

template <class Wanted>
void PackageFinder::add_files(const Source& source, Wanted&& wanted, Note note, FoundFiles& found) const {
  if (source.repository()) {
    const std::shared_ptr<const FolderView> there = source.remote ? source.remote->view() : nullptr;
    std::vector<PackageFile> own;
    const std::string problem =
        problem_of([&] { Listing(*this, there ? *there : local_folders(), note, own).add(source.path, wanted); });
    if (!problem.empty()) return found.unread.push_back({source.path, problem});
    for (PackageFile& file : own) {
      file.on_demand = source.on_demand;
      found.files.push_back(std::move(file));
    }
  } else if (wanted(source.stem)) {
    found.files.push_back({source.stem, 1, source.path, {}, stamp(local_folders(), source.path)});
  }
}

FileStamps PackageFinder::stamp(const FolderView& view, const fs::path& path, const fs::path& config) const {
  FileStamps stamp;
  view.add_stamp(path, stamp);
  if (!config.empty()) view.add_stamp(config, stamp);
  if (signatures_.on()) view.add_stamp(signing::signature_beside(path), stamp);
  return stamp;
}

const PackageFinder::Source* PackageFinder::remote_source_of(const fs::path& path) const noexcept {
  for (const Source& source : sources_)
    if (source.remote && path.native().starts_with(source.path.native() + "/")) return &source;
  return nullptr;
}

void PackageFinder::ask(const std::string& name) const {
  std::exception_ptr first;
  const Source* failed = nullptr;
  for (const Source& source : sources_) {
    if (!source.remote) continue;
    const std::exception_ptr problem = exception_of([&] { source.remote->ask(name); });
    if (!problem || first) continue;
    first = problem;
    failed = &source;
  }
  if (!first) return;
  // If another folder has the model, the error does not matter.
  const std::vector<PackageFile> files = candidates(name).files;
  if (files.empty() || remote_source_of(files.front().path) == failed) std::rethrow_exception(first);
}

bool PackageFinder::may_have_more() const noexcept {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const Source& source) { return source.remote && !source.remote->is_complete(); });
}

std::vector<PackageFile> PackageFinder::prepared(const PackageFile& file) const {
  const Source* const source = remote_source_of(file.path);
  if (!source) return {file};
  source->remote->prepare(file.stem);
  std::vector<PackageFile> found;
  const std::shared_ptr<const FolderView> view = source->remote->view();
  Listing(*this, *view, no_note, found).add_stem(source->path, file.stem);
  for (PackageFile& each : found) each.on_demand = source->on_demand;
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.version < b.version; });
  return found;
}

std::shared_ptr<const Package> PackageFinder::open_package(const fs::path& path) const {
  if (!signatures_.on()) return Package::open(path);
  if (local_folders().is_folder(path)) signatures_.refuse_unsigned(path.native() + ": a directory");
  const std::shared_ptr<const PrivateCopy> copy = signatures_.read(path).copy;
  return Package::open(copy->bytes(), copy, path.native());
}

std::vector<PackageEntry> PackageFinder::open(const PackageFile& file) const {
  std::shared_ptr<const void> use;
  if (const Source* const source = remote_source_of(file.path)) {
    if (!file.config.empty()) source->remote->bring(file.config);
    use = source->remote->bring(file.path);
  } else if (const FolderView& here = local_folders(); here.is_folder(file.path) && !here.is_package(file.path)) {
    std::error_code problem;
    here.names(file.path, problem);
    SCONCE_CHECK(!problem, kUnavailable, "cannot read directory: ", file.path.native(), ": ", problem.message());
  }
  std::shared_ptr<const scheduling::TritonConfig> triton;
  std::vector<ModelSetting> settings;
  if (!file.config.empty()) {
    triton = std::make_shared<const scheduling::TritonConfig>(read_config(file.config));
    settings = settings_of(config_, *triton, file.config);
    config_.model(file.stem, settings);  // throws for an invalid value
  }
  if (triton ? triton->ensemble : is_pipeline(file.path)) {
    scheduling::PipelineSpec spec = triton
                                        ? scheduling::pipeline_of(*triton, file.config.native())
                                        : scheduling::read_pipeline(read_settings_text(file.path), file.path.native());
    return {{file.stem,
             file,
             {},
             nullptr,
             std::make_shared<const scheduling::PipelineSpec>(std::move(spec)),
             std::move(triton),
             std::move(settings)}};
  }
  std::shared_ptr<const Package> package = open_package(file.path);
  if (use) package = keep_with(std::move(package), std::move(use));
  const bool several = package->models().size() > 1;
  std::vector<PackageEntry> entries;
  for (const ModelSpec& model : package->models()) {
    entries.push_back(
        {several ? file.stem + "." + model.name : file.stem, file, model.name, package, nullptr, triton, settings});
    SCONCE_CHECK(is_model_name(entries.back().name), kInvalidArgument, "not a model's name: '", entries.back().name,
                 "' in ", file.path.string());
  }
  return entries;
}

void PackageFinder::sort(std::vector<PackageEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const PackageEntry& a, const PackageEntry& b) {
    return a.name != b.name ? a.name < b.name : a.file.version < b.file.version;
  });
  const auto twice = std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.name == b.name && a.file.version == b.file.version;
  });
  if (twice == entries.end()) return;
  SCONCE_FAIL(kAlreadyExists, "two packages for model '", twice->name, "' version ", twice->file.version, ": ",
              twice->file.path.string(), " and ", std::next(twice)->file.path.string());
}

FoundFiles PackageFinder::files(Note note) const {
  FoundFiles found;
  for (const Source& source : sources_) add_files(source, kAny, note, found);
  return found;
}

FoundFiles PackageFinder::candidates(std::string_view name) const {
  const auto wanted = [name](const std::string& stem) {
    return name == stem || (name.size() > stem.size() && name.starts_with(stem) && name[stem.size()] == '.');
  };
  FoundFiles found;
  for (const Source& source : sources_) add_files(source, wanted, no_note, found);
  sort_candidates(found.files);
  return found;
}

void PackageFinder::sort_candidates(std::vector<PackageFile>& files) {
  std::stable_sort(files.begin(), files.end(), [](const PackageFile& a, const PackageFile& b) {
    return a.stem != b.stem ? a.stem.size() > b.stem.size() : a.version < b.version;
  });
}

bool PackageFinder::has_repository() const noexcept {
  return std::any_of(sources_.begin(), sources_.end(), [](const Source& source) { return source.repository(); });
}

std::vector<fs::path> PackageFinder::repositories() const {
  std::vector<fs::path> paths;
  for (const Source& source : sources_)
    if (source.repository()) paths.push_back(source.path);
  return paths;
}

bool PackageFinder::loads_on_demand() const noexcept {
  return std::any_of(sources_.begin(), sources_.end(), [](const Source& source) { return source.on_demand; });
}

bool PackageFinder::in_repository(const PackageFile& file) const noexcept {
  return std::none_of(sources_.begin(), sources_.end(),
                      [&](const Source& source) { return source.stem == file.stem && source.path == file.path; });
}

FoundFiles PackageFinder::repository_files() const {
  FoundFiles found;
  for (const Source& source : sources_) {
    if (source.repository()) add_files(source, kAny, no_note, found);
  }
  sort_by_stem(found.files);
  return found;
}

void PackageFinder::sort_by_stem(std::vector<PackageFile>& files) {
  std::stable_sort(files.begin(), files.end(), [](const PackageFile& a, const PackageFile& b) {
    return a.stem != b.stem ? a.stem < b.stem : a.version < b.version;
  });
}

}  // namespace sconce::server::registry
