// PackageFinder: finds the packages and pipelines where `serve` points, and the names of their models.
//
// Reads directories and opens packages, and keeps neither. A client's name is compared with what a directory holds; it
// never becomes part of a path. Immutable; calls block on the file system.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"
#include "server/registry/repositories/folder_view.h"
#include "server/registry/repositories/version_policy.h"
#include "server/scheduling/pipelines/pipeline_spec.h"
#include "server/scheduling/triton/model_config.h"
#include "server/signing/signature_rule.h"
#include "server/support/config.h"
#include "server/support/files/file_stamp.h"

namespace sconce::server {

struct PackageFile {
  std::string stem;  // the start of its models' names
  int64_t version = 1;
  std::filesystem::path path;
  std::filesystem::path config;  // Triton's config.pbtxt of the model; empty: there is none
  // Of both, of everything below an unpacked package, and of the signature if there must be one.
  FileStamps stamp;
  bool on_demand = false;  // its models are loaded when they are asked for
  friend bool operator==(const PackageFile&, const PackageFile&) = default;
};

// A repository that could not be read.
struct UnreadFolder {
  std::filesystem::path folder;  // as `serve` names it
  std::string reason;
};

// What was found in the repositories that could be read.
struct FoundFiles {
  std::vector<PackageFile> files;
  std::vector<UnreadFolder> unread;
  // Whether the file is below a repository that could not be read.
  bool misses(const PackageFile& file) const;
};

// One version of one model or pipeline, and its source.
struct PackageEntry {
  std::string name;
  PackageFile file;
  std::string model{};                       // in the package
  std::shared_ptr<const Package> package{};  // null if it could not be opened, and for a pipeline
  std::shared_ptr<const PipelineSpec> pipeline{};
  std::shared_ptr<const TritonConfig> triton{};  // null: there is none
  std::vector<ModelSetting> settings{};          // said there

  bool opened() const noexcept { return package || pipeline; }
};

// Which versions of a model are served. config: its config.pbtxt; empty: there is none. What is wrong with the file is
// said when the model is opened.
struct ServedVersions {
  VersionPolicy policy;
  bool ensemble = false;  // it is the file itself; its versions are empty folders
};
ServedVersions served_versions(const ServerConfig& config, const std::string& model,
                               const std::filesystem::path& pbtxt);

class PackageFinder {
 public:
  using Note = void (*)(const std::string&);
  using RemoteFolders = std::map<std::filesystem::path, RemoteFolder*>;

  // config and signatures outlive it, and so do folders among those of `serve` whose files are elsewhere. With
  // exit_on_error, kNotFound for a path of `serve` that does not exist. Without, it may come later: it is a package if
  // its name says so, else a repository.
  PackageFinder(const ServerConfig& config, const SignatureRule& signatures, RemoteFolders remote = {});

  const SignatureRule& signatures() const noexcept { return signatures_; }
  // All files. Calls `note` for each entry of a repository that is no model, and skips it.
  FoundFiles files(Note note) const;
  // Files that may have the model of that name (in a package with several models, the name continues after the stem):
  // longest stem first, then by version. Once a stem has the model, ignore shorter ones.
  FoundFiles candidates(std::string_view name) const;
  static void sort_candidates(std::vector<PackageFile>& files);
  bool has_repository() const noexcept;
  std::vector<std::filesystem::path> repositories() const;
  // Whether models of a repository are loaded on demand.
  bool loads_on_demand() const noexcept;
  // Whether it was found in a repository, rather than named by itself.
  bool in_repository(const PackageFile& file) const noexcept;
  // The files of the repositories by stem and version, unopened.
  FoundFiles repository_files() const;
  static void sort_by_stem(std::vector<PackageFile>& files);

  // For folders whose files are elsewhere.

  // Asks there for what there is of a model now. Throws what keeps one that may have it from answering.
  void ask(const std::string& name) const;
  // Whether a model that is not among the files may be there all the same: the first listing is under way.
  bool may_have_more() const noexcept;
  bool is_elsewhere(const PackageFile& file) const noexcept { return remote_source_of(file.path) != nullptr; }
  // The files of a stem, once what says which versions are served is here.
  std::vector<PackageFile> prepared(const PackageFile& file) const;

  // Opens one file, which is brought here first; its model names decide the served names. Errors of Package::open,
  // kInvalidArgument for names and for what is no pipeline or config.pbtxt; kForbidden for a package without a good
  // signature.
  std::vector<PackageEntry> open(const PackageFile& file) const;
  // By name and version. kAlreadyExists if a version occurs twice.
  static void sort(std::vector<PackageEntry>& entries);

 private:
  struct Source {
    std::filesystem::path path;
    std::string stem;  // empty: a repository
    bool on_demand = false;
    RemoteFolder* remote = nullptr;  // null: it is here
    bool repository() const noexcept { return stem.empty(); }
  };
  class Listing;

  void add_source(const std::string& argument);
  const Source* remote_source_of(const std::filesystem::path& path) const noexcept;
  FileStamps stamp(const FolderView& view, const std::filesystem::path& path,
                   const std::filesystem::path& config = {}) const;
  std::shared_ptr<const Package> open_package(const std::filesystem::path& path) const;
  // A repository that cannot be read adds to `found.unread`, and no file.
  template <class Wanted>
  void add_files(const Source& source, Wanted&& wanted, Note note, FoundFiles& found) const;

  const ServerConfig& config_;
  const SignatureRule& signatures_;
  const RemoteFolders remote_;
  std::vector<Source> sources_;
};

// A file of settings, not of data. kIo, kInvalidArgument if it is too large.
std::string read_settings_text(const std::filesystem::path& path);

}  // namespace sconce::server
