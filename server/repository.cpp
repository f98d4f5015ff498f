#include "server/repository.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "sconce/check.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

// A directory that is itself a package: it has what the archive has.
bool is_package_directory(const fs::path& path) {
  return fs::exists(path / "archive_format") || fs::exists(path / "data" / "aotinductor");
}

class Finder {
 public:
  Finder(const ServerConfig& config, void (*note)(const std::string&)) : config_(config), note_(note) {}

  void add_argument(const std::string& argument) {
    const size_t equals = argument.find('=');
    // A path may have a '=' too: the part before it is a name only if it looks like one.
    if (equals != std::string::npos && is_model_name(std::string_view(argument).substr(0, equals))) {
      return add_package(argument.substr(equals + 1), argument.substr(0, equals), 1);
    }
    const fs::path path = argument;
    SCONCE_CHECK(fs::exists(path), kNotFound, "no such package or repository: ", argument);
    if (fs::is_directory(path) && !is_package_directory(path)) return add_repository(path);
    const fs::path file = path.has_filename() ? path : path.parent_path();
    add_package(path, file.stem().string(), 1);
  }

  std::vector<PackageEntry> take() {
    std::sort(entries_.begin(), entries_.end(), [](const PackageEntry& a, const PackageEntry& b) {
      return a.name != b.name ? a.name < b.name : a.version < b.version;
    });
    return std::move(entries_);
  }

 private:
  void add_package(const fs::path& path, const std::string& name, int64_t version) {
    SCONCE_CHECK(fs::exists(path), kNotFound, "no such package: ", path.string());
    SCONCE_CHECK(is_model_name(name), kInvalidArgument, "not a model's name (letters, digits, '_', '-', '.'): '", name,
                 "', give another with NAME=", path.string());
    const std::shared_ptr<const Package> package = Package::open(path);
    const bool several = package->models().size() > 1;
    for (const ModelSpec& model : package->models()) {
      PackageEntry entry{several ? name + "." + model.name : name, version, path, model.name, package};
      SCONCE_CHECK(is_model_name(entry.name), kInvalidArgument, "not a model's name: '", entry.name, "' in ",
                   path.string());
      for (const PackageEntry& other : entries_) {
        SCONCE_CHECK(other.name != entry.name || other.version != version, kAlreadyExists, "two packages for model '",
                     entry.name, "' version ", version, ": ", other.path.string(), " and ", path.string());
      }
      entries_.push_back(std::move(entry));
    }
  }

  void add_repository(const fs::path& directory) {
    std::vector<fs::path> children;
    for (const fs::directory_entry& child : fs::directory_iterator(directory)) children.push_back(child.path());
    std::sort(children.begin(), children.end());
    const size_t before = entries_.size();
    for (const fs::path& child : children) {
      const std::string file = child.filename().string();
      if (file.starts_with('.')) continue;
      if (fs::is_directory(child) && !is_package_directory(child)) {
        add_versions(child, file);
      } else if (child.extension() == ".pt2" || is_package_directory(child)) {
        if (is_model_name(child.stem().string())) {
          add_package(child, child.stem().string(), 1);
        } else {
          note_("passed over, its stem is not a model's name: " + child.string());
        }
      }
    }
    if (entries_.size() == before) note_("repository without a model: " + directory.string());
  }

  void add_versions(const fs::path& directory, const std::string& name) {
    if (!is_model_name(name)) return note_("passed over, not a model's name: " + directory.string());
    std::map<int64_t, fs::path> versions;
    for (const fs::directory_entry& child : fs::directory_iterator(directory)) {
      const std::string text = child.path().filename().string();
      int64_t version = 0;
      const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), version);
      if (ec != std::errc() || end != text.data() + text.size() || version < 1 || text[0] == '0') continue;
      if (fs::exists(child.path() / "model.pt2")) versions.emplace(version, child.path() / "model.pt2");
    }
    if (versions.empty()) return note_("passed over, no VERSION/model.pt2 in it: " + directory.string());
    if (config_.versions == Versions::kLatest) versions.erase(versions.begin(), std::prev(versions.end()));
    for (const auto& [version, path] : versions) add_package(path, name, version);
  }

  const ServerConfig& config_;
  void (*note_)(const std::string&);
  std::vector<PackageEntry> entries_;
};

std::optional<int64_t> parse_version(std::string_view digits) {
  int64_t version = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  if (ec != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return version;
}

}  // namespace

std::vector<PackageEntry> find_packages(const ServerConfig& config, void (*note)(const std::string&)) {
  SCONCE_CHECK(!config.serve.empty(), kInvalidArgument, "nothing to serve: name a package or a repository");
  Finder finder(config, note);
  for (const std::string& argument : config.serve) finder.add_argument(argument);
  std::vector<PackageEntry> packages = finder.take();
  std::vector<std::string> names;
  for (const PackageEntry& package : packages) {
    if (names.empty() || names.back() != package.name) names.push_back(package.name);
  }
  config.check_model_names(names);
  return packages;
}

const Catalog::Entry& Catalog::entry(std::string_view name) const {
  const auto it = index_.find(name);
  SCONCE_CHECK(it != index_.end(), kNotFound, "Request for unknown model: '", name, "' is not found");
  return entries_[it->second];
}

const Catalog::Version& Catalog::find(std::string_view name, std::string_view version) const {
  const std::vector<Version>& versions = entry(name).versions;
  if (version.empty()) {
    const auto ready =
        std::find_if(versions.rbegin(), versions.rend(), [](const Version& v) { return v.state == State::kReady; });
    return ready != versions.rend() ? *ready : versions.back();
  }
  const std::optional<int64_t> number = parse_version(version);
  for (const Version& v : versions) {
    if (number && v.version == *number) return v;
  }
  SCONCE_FAIL(kNotFound, "Request for unknown model: '", name, "' version ", version, " is not found");
}

const std::shared_ptr<ServedModel>& Catalog::ready(std::string_view name, std::string_view version) const {
  const Version& found = find(name, version);
  SCONCE_CHECK(found.state == State::kReady, kUnavailable, "'", name, "' version ", found.version,
               " is not at ready state", found.reason.empty() ? "" : ": ", found.reason);
  return found.model;
}

bool Catalog::all_ready() const noexcept {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return std::all_of(entry.versions.begin(), entry.versions.end(),
                       [](const Version& v) { return v.state == State::kReady; });
  });
}

Repository::Repository(const ServerConfig& config, std::vector<PackageEntry> packages, size_t threads)
    : config_(config), packages_(std::move(packages)), threads_(threads) {
  auto catalog = std::make_shared<Catalog>();
  for (const PackageEntry& package : packages_) {
    if (catalog->entries_.empty() || catalog->entries_.back().name != package.name) {
      catalog->index_.emplace(package.name, catalog->entries_.size());
      catalog->entries_.push_back({package.name, {}});
    }
    catalog->entries_.back().versions.push_back({package.version, Catalog::State::kLoading, {}, nullptr});
  }
  catalog_ = std::move(catalog);
}

std::shared_ptr<const Catalog> Repository::snapshot() const {
  const std::lock_guard lock(mutex_);
  return catalog_;
}

void Repository::publish(const PackageEntry& package, Catalog::Version version) {
  auto next = std::make_shared<Catalog>(*snapshot());
  for (Catalog::Version& v : next->entries_[next->index_.find(package.name)->second].versions) {
    if (v.version == version.version) v = version;
  }
  {
    const std::lock_guard lock(mutex_);
    catalog_ = std::move(next);
  }
  generation_.fetch_add(1, std::memory_order_release);
}

LoadedModel Repository::load(const PackageEntry& package) const {
  const ModelConfig config = config_.model(package.name);
  LoadOptions options;
  options.model_name = package.model;
  options.devices.clear();
  for (const std::string& device : config.devices) options.devices.push_back(parse_device(device));
  SCONCE_CHECK(!options.devices.empty(), kInvalidArgument, "setting devices of model '", package.name, "' is empty");
  SCONCE_CHECK(config.replicas >= 1, kInvalidArgument, "setting replicas of model '", package.name,
               "' must be 1 or more");
  options.replicas = static_cast<int>(config.replicas);
  options.threads = static_cast<int>(config.threads);
  options.cpu_set = config.cores();
  options.check_inputs = config.check_inputs;
  options.verify = config.verify;
  for (const std::string& library : config.op_libraries) options.op_libraries.emplace_back(library);
  std::shared_ptr<Model> model = Model::load(package.package, std::move(options));
  ModelInterface interface(package.name, package.version, model->info().spec);
  return {std::move(interface), std::move(model)};
}

void Repository::publish(const PackageEntry& package, LoadedModel loaded) {
  auto served = std::make_shared<ServedModel>(std::move(loaded.interface), std::move(loaded.model),
                                              config_.model(package.name), threads_, config_.inline_below);
  publish(package, Catalog::Version{package.version, Catalog::State::kReady, {}, std::move(served)});
}

void Repository::publish_failure(const PackageEntry& package, std::string reason) {
  publish(package, Catalog::Version{package.version, Catalog::State::kUnavailable, std::move(reason), nullptr});
}

}  // namespace sconce
