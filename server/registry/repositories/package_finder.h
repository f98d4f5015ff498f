// PackageFinder: finds the packages and pipelines in the locations of `serve`, and the names of their models.
//
// Reads directories and opens packages, and caches neither. A client's name is compared with the entries of a
// directory; it never becomes part of a path. Immutable; calls block on the file system.
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

namespace sconce::server::registry {

struct PackageFile {
  std::string stem;  // the prefix of its models' names
  int64_t version = 1;
  std::filesystem::path path;
  std::filesystem::path config;  // the model's config.pbtxt; empty: none
  // Of both files, of everything below an unpacked package, and of the signature if one is required.
  FileStamps stamp;
  bool on_demand = false;  // its models are loaded on demand
  friend bool operator==(const PackageFile&, const PackageFile&) = default;
};

// A repository that could not be read.
struct UnreadFolder {
  std::filesystem::path folder;  // as named in `serve`
  std::string reason;
};

// The files of all readable repositories, and the unreadable repositories.
struct FoundFiles {
  std::vector<PackageFile> files;
  std::vector<UnreadFolder> unread;
  // Whether the file is below an unreadable repository.
  bool misses(const PackageFile& file) const;
};

// One version of one model or pipeline, and its source.
struct PackageEntry {
  std::string name;
  PackageFile file;
  std::string model{};                       // name in the package
  std::shared_ptr<const Package> package{};  // null for a pipeline, and if it could not be opened
  std::shared_ptr<const scheduling::PipelineSpec> pipeline{};
  std::shared_ptr<const scheduling::TritonConfig> triton{};  // null: none
  std::vector<ModelSetting> settings{};                      // from config.pbtxt

  bool opened() const noexcept { return package || pipeline; }
};

// Which versions of a model are served. pbtxt: its config.pbtxt; empty: none. Errors in the file are reported when the
// model is opened.
struct ServedVersions {
  VersionPolicy policy;
  bool ensemble = false;  // the config.pbtxt is the model; its version folders are empty
};
ServedVersions served_versions(const ServerConfig& config, const std::string& model,
                               const std::filesystem::path& pbtxt);

class PackageFinder {
 public:
  using Note = void (*)(const std::string&);
  using RemoteFolders = std::map<std::filesystem::path, RemoteFolder*>;

  // config and signatures outlive the object, and so do the entries of `remote`, the folders of `serve` with remote
  // files. With exit_on_error, kNotFound for a path of `serve` that does not exist. Without it, the path may be created
  // later: it is a package if its name says so, else a repository.
  PackageFinder(const ServerConfig& config, const signing::SignatureRule& signatures, RemoteFolders remote = {});

  const signing::SignatureRule& signatures() const noexcept { return signatures_; }
  // All files. Entries of a repository that are not models are passed to `note` and skipped.
  FoundFiles files(Note note) const;
  // Files that may contain the model (in a package with several models, the name continues after the stem): longest
  // stem first, then by version. Once a stem has the model, ignore shorter stems.
  FoundFiles candidates(std::string_view name) const;
  static void sort_candidates(std::vector<PackageFile>& files);
  bool has_repository() const noexcept;
  std::vector<std::filesystem::path> repositories() const;
  // Whether models of a repository are loaded on demand.
  bool loads_on_demand() const noexcept;
  // Whether the file was found in a repository, rather than named in `serve`.
  bool in_repository(const PackageFile& file) const noexcept;
  // The files of the repositories by stem and version, unopened.
  FoundFiles repository_files() const;
  static void sort_by_stem(std::vector<PackageFile>& files);

  // For folders with remote files.

  // Queries the remote servers for the current files of a model. Throws the error of a server that may have the model
  // and did not answer.
  void ask(const std::string& name) const;
  // Whether a model that is not among the files may still exist, because the first listing is in progress.
  bool may_have_more() const noexcept;
  bool is_elsewhere(const PackageFile& file) const noexcept { return remote_source_of(file.path) != nullptr; }
  // The files of a stem, after the files that select the served versions were downloaded.
  std::vector<PackageFile> prepared(const PackageFile& file) const;

  // Opens one file, after downloading it if it is remote; its model names decide the served names. Errors of
  // Package::open; kInvalidArgument for names and for an invalid pipeline or config.pbtxt; kForbidden for a package
  // without a valid signature.
  std::vector<PackageEntry> open(const PackageFile& file) const;
  // Sorts by name and version. kAlreadyExists if a version occurs twice.
  static void sort(std::vector<PackageEntry>& entries);

 private:
  struct Source {
    std::filesystem::path path;
    std::string stem;  // empty: a repository
    bool on_demand = false;
    RemoteFolder* remote = nullptr;  // null: local
    bool repository() const noexcept { return stem.empty(); }
  };
  class Listing;

  void add_source(const std::string& argument);
  const Source* remote_source_of(const std::filesystem::path& path) const noexcept;
  FileStamps stamp(const FolderView& view, const std::filesystem::path& path,
                   const std::filesystem::path& config = {}) const;
  std::shared_ptr<const Package> open_package(const std::filesystem::path& path) const;
  // An unreadable repository is added to `found.unread` and contributes no files.
  template <class Wanted>
  void add_files(const Source& source, Wanted&& wanted, Note note, FoundFiles& found) const;

  const ServerConfig& config_;
  const signing::SignatureRule& signatures_;
  const RemoteFolders remote_;
  std::vector<Source> sources_;
};

// Reads a small text file of settings. kIo, kInvalidArgument if it is too large.
std::string read_settings_text(const std::filesystem::path& path);

}  // namespace sconce::server::registry
