#include "server/repositories/package_finder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "package_format/files/directory.h"
#include "sconce/check.h"
#include "sconce/error_context.h"
#include "sconce/parse_number.h"
#include "server/base/failure.h"
#include "server/repositories/version_policy.h"

namespace sconce::server {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

// Whether a directory is itself a package: it has an archive's layout.
bool is_package_directory(const fs::path& path) {
  return is_there(path / "archive_format") || is_there(path / "data" / "aotinductor");
}

bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

void add_below(const fs::path& folder, FileStamps& stamp) {
  std::error_code ec;
  for (const std::string& name : names_in(folder, ec)) {
    const fs::path child = folder / name;
    stamp.add(child.c_str());
    if (fs::symlink_status(child, ec).type() == fs::file_type::directory) add_below(child, stamp);
  }
}

FileStamps stamp_of(const fs::path& path) {
  FileStamps stamp;
  stamp.add(path.c_str());
  if (is_folder(path)) add_below(path, stamp);
  return stamp;
}

std::optional<int64_t> version_of(const std::string& text) {
  const auto version = parse_number<int64_t>(text);
  return version && *version >= 1 && text[0] != '0' ? version : std::nullopt;
}

std::vector<fs::path> children(const fs::path& directory) {
  std::error_code ec;
  const std::vector<std::string> names = names_in(directory, ec);
  SCONCE_CHECK(!ec, kIo, "cannot read directory: ", directory.native(), ": ", ec.message());
  std::vector<fs::path> paths;
  for (const std::string& name : names) paths.push_back(directory / name);
  return paths;
}

constexpr std::string_view kPipeline = ".pipeline.json";

bool is_pipeline(const fs::path& path) { return path.filename().native().ends_with(kPipeline); }

TritonConfig read_config(const fs::path& path) {
  const std::string& where = path.native();
  const ErrorContext context(where);
  return read_triton_config(read_settings_text(path), path.parent_path());
}

std::string stem_of(const fs::path& path) {
  std::string name = path.filename().native();
  if (is_pipeline(path)) return name.substr(0, name.size() - kPipeline.size());
  return path.stem().string();
}

void no_note(const std::string&) {}
constexpr auto kAny = [](const std::string&) { return true; };

}  // namespace

// The package files of a repository with a wanted stem.
class PackageFinder::Listing {
 public:
  Listing(const PackageFinder& finder, Note note, std::vector<PackageFile>& files)
      : finder_(finder), note_(note), files_(files) {}

  template <class Wanted>
  void add(const fs::path& directory, Wanted&& wanted) {
    const size_t before = files_.size();
    for (const fs::path& child : children(directory)) {
      const std::string name = child.filename().string();
      if (name.starts_with('.')) continue;
      if (is_folder(child) && !is_package_directory(child)) {
        if (wanted(name)) add_versions(child, name);
      } else if (child.extension() == ".pt2" || is_pipeline(child) || is_package_directory(child)) {
        const std::string stem = stem_of(child);
        if (!is_model_name(stem)) {
          note_("passed over, its stem is not a model's name: " + child.string());
        } else if (wanted(stem)) {
          files_.push_back({stem, 1, child, {}, finder_.stamp(child)});
        }
      }
    }
    if (files_.size() == before) note_("repository without a model: " + directory.string());
  }

 private:
  void add_versions(const fs::path& directory, const std::string& name) {
    if (!is_model_name(name)) return note_("passed over, not a model's name: " + directory.string());
    std::map<int64_t, fs::path> versions;
    for (const fs::path& child : children(directory)) {
      const std::optional<int64_t> version = version_of(child.filename().string());
      if (version && is_there(child / "model.pt2")) versions.emplace(*version, child / "model.pt2");
    }
    fs::path config = directory / "config.pbtxt";
    if (!is_there(config)) config.clear();
    VersionPolicy policy;
    if (!config.empty()) {
      bool ensemble = false;
      // What is wrong with the file is said when it is opened.
      succeeds([&] {
        const TritonConfig read = read_config(config);
        ensemble = read.ensemble;
        policy = finder_.version_policy(name, finder_.settings_of(read, config));
      });
      // An ensemble is the file itself; its versions are empty folders.
      if (ensemble) return files_.push_back({name, newest_folder(directory), config, config, stamp_of(config)});
    } else {
      policy = finder_.version_policy(name, {});
    }
    std::vector<int64_t> numbers;
    for (const auto& [version, path] : versions) numbers.push_back(version);
    if (numbers.empty()) return note_("passed over, no VERSION/model.pt2 in it: " + directory.string());
    for (const auto& [version, path] : versions)
      if (policy.serves(version, numbers)) files_.push_back({name, version, path, config, finder_.stamp(path, config)});
  }

  static int64_t newest_folder(const fs::path& directory) {
    int64_t newest = 1;
    for (const fs::path& child : children(directory))
      newest = std::max(newest, version_of(child.filename().string()).value_or(1));
    return newest;
  }

  const PackageFinder& finder_;
  const Note note_;
  std::vector<PackageFile>& files_;
};

std::string read_settings_text(const fs::path& path) {
  constexpr size_t kMostText = 1 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostText + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  SCONCE_CHECK(file.is_open() && !file.bad(), kIo, "cannot read ", path.native());
  text.resize(static_cast<size_t>(file.gcount()));
  SCONCE_CHECK(text.size() <= kMostText, kInvalidArgument, path.native(), " has more than ", kMostText, " bytes");
  return text;
}

PackageFinder::PackageFinder(const ServerConfig& config, const SignatureRule& signatures)
    : config_(config), signatures_(signatures) {
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
  // A path may contain '=' too: the part before it is a name only if it looks like one.
  if (equals != std::string::npos && is_model_name(std::string_view(argument).substr(0, equals))) {
    const fs::path path = argument.substr(equals + 1);
    SCONCE_CHECK(is_there(path), kNotFound, "no such package: ", path.string());
    sources_.push_back({path, argument.substr(0, equals)});
    return;
  }
  const fs::path path = argument;
  SCONCE_CHECK(is_there(path), kNotFound, "no such package or repository: ", argument);
  if (is_folder(path) && !is_package_directory(path)) {
    const bool named = std::find(config_.load_on_demand.begin(), config_.load_on_demand.end(), argument) !=
                       config_.load_on_demand.end();
    sources_.push_back({path, {}, config_.load == LoadWhen::kDemand || named});
    return;
  }
  const std::string stem = stem_of(path.has_filename() ? path : path.parent_path());
  SCONCE_CHECK(is_model_name(stem), kInvalidArgument, "not a model's name (letters, digits, '_', '-', '.'): '", stem,
               "', give another with NAME=", path.string());
  sources_.push_back({path, stem});
}

template <class Wanted>
void PackageFinder::add_files(const Source& source, Wanted&& wanted, Note note, std::vector<PackageFile>& found) const {
  if (source.repository()) {
    const size_t before = found.size();
    Listing(*this, note, found).add(source.path, wanted);
    for (size_t i = before; source.on_demand && i < found.size(); ++i) found[i].on_demand = true;
  } else if (wanted(source.stem)) {
    found.push_back({source.stem, 1, source.path, {}, stamp(source.path)});
  }
}

FileStamps PackageFinder::stamp(const fs::path& path, const fs::path& config) const {
  FileStamps stamp = stamp_of(path);
  if (!config.empty()) stamp.add(config.c_str());
  if (signatures_.on()) stamp.add(signature_beside(path).c_str());
  return stamp;
}

std::shared_ptr<const Package> PackageFinder::open_package(const fs::path& path) const {
  if (!signatures_.on()) return Package::open(path);
  if (is_folder(path)) signatures_.refuse_unsigned(path.native() + ": a directory");
  const std::shared_ptr<const PrivateCopy> copy = signatures_.read(path).copy;
  return Package::open(copy->bytes(), copy, path.native());
}

std::vector<ModelSetting> PackageFinder::settings_of(const TritonConfig& config, const fs::path& origin) const {
  std::vector<ModelSetting> settings;
  for (const auto& [key, value] : config.settings) {
    // `versions` is of whoever started the server, if it was given.
    const bool overruled = key == "version_policy" && std::ranges::count(config_.given, "versions") > 0;
    if (!overruled) settings.push_back({{}, key, value, origin.native()});
  }
  return settings;
}

VersionPolicy PackageFinder::version_policy(const std::string& name, std::span<const ModelSetting> beside) const {
  const ModelConfig config = config_.model(name, beside);
  if (config.version_policy.empty() && config_.versions == Versions::kAll) return parse_version_policy("all");
  return parse_version_policy(config.version_policy);
}

std::vector<PackageEntry> PackageFinder::open(const PackageFile& file) const {
  std::shared_ptr<const TritonConfig> triton;
  std::vector<ModelSetting> settings;
  if (!file.config.empty()) {
    triton = std::make_shared<const TritonConfig>(read_config(file.config));
    settings = settings_of(*triton, file.config);
    config_.model(file.stem, settings);  // throws what is wrong with a value
  }
  if (triton ? triton->ensemble : is_pipeline(file.path)) {
    PipelineSpec spec = triton ? pipeline_of(*triton, file.config.native())
                               : read_pipeline(read_settings_text(file.path), file.path.native());
    return {{file.stem,
             file,
             {},
             nullptr,
             std::make_shared<const PipelineSpec>(std::move(spec)),
             std::move(triton),
             std::move(settings)}};
  }
  const std::shared_ptr<const Package> package = open_package(file.path);
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

std::vector<PackageFile> PackageFinder::files(Note note) const {
  std::vector<PackageFile> found;
  for (const Source& source : sources_) add_files(source, kAny, note, found);
  return found;
}

std::vector<PackageFile> PackageFinder::candidates(std::string_view name) const {
  const auto wanted = [name](const std::string& stem) {
    return name == stem || (name.size() > stem.size() && name.starts_with(stem) && name[stem.size()] == '.');
  };
  std::vector<PackageFile> found;
  for (const Source& source : sources_) add_files(source, wanted, no_note, found);
  std::stable_sort(found.begin(), found.end(), [](const PackageFile& a, const PackageFile& b) {
    return a.stem != b.stem ? a.stem.size() > b.stem.size() : a.version < b.version;
  });
  return found;
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

std::vector<PackageFile> PackageFinder::repository_files() const {
  std::vector<PackageFile> found;
  for (const Source& source : sources_) {
    if (source.repository()) add_files(source, kAny, no_note, found);
  }
  std::stable_sort(found.begin(), found.end(), [](const PackageFile& a, const PackageFile& b) {
    return a.stem != b.stem ? a.stem < b.stem : a.version < b.version;
  });
  return found;
}

}  // namespace sconce::server
