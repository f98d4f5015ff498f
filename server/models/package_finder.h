// PackageFinder: which packages lie where `serve` points, and under which names their models are served.
//
// Reads directories and opens packages; keeps nothing of either. A name that a client gives is compared with what a
// directory holds and never made part of a path. Immutable; its calls block on the file system.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"
#include "server/base/config.h"

namespace sconce::server {

// Tells one content of a path from the next: writing changes size or time, a rename into place the inode. Of an
// unpacked package: of everything below it.
struct FileStamp {
  uint64_t identity = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

struct PackageFile {
  std::string stem;  // what its models' names begin with
  int64_t version = 1;
  std::filesystem::path path;
  FileStamp stamp;
  friend bool operator==(const PackageFile&, const PackageFile&) = default;
};

// One version of one model, and where it comes from.
struct PackageEntry {
  std::string name;
  PackageFile file;
  std::string model;                       // inside the package
  std::shared_ptr<const Package> package;  // null if it could not be opened
};

class PackageFinder {
 public:
  using Note = void (*)(const std::string&);

  // kNotFound for a path of `serve` that is not there.
  explicit PackageFinder(const ServerConfig& config);

  // All files. A repository's entries that are no models are passed over, `note` is told of each.
  std::vector<PackageFile> files(Note note) const;
  // Files in which the model of that name may be, longest stem first, then by version: of a package with several models
  // the name goes on behind the stem. Once a stem has the model, shorter ones are not to be looked at.
  std::vector<PackageFile> candidates(std::string_view name) const;
  bool has_repository() const noexcept;
  // Whether it was found in a repository; else it was named by itself.
  bool in_repository(const PackageFile& file) const noexcept;
  // The files of the repositories, by stem and version. None is opened.
  std::vector<PackageFile> repository_files() const;

  // The models of one file, whose names decide theirs. Errors of Package::open, kInvalidArgument for names.
  static std::vector<PackageEntry> open(const PackageFile& file);
  // By name and version. kAlreadyExists if a version is there twice.
  static void sort(std::vector<PackageEntry>& entries);

 private:
  struct Source {
    std::filesystem::path path;
    std::string stem;  // empty: a repository
    bool repository() const noexcept { return stem.empty(); }
  };
  class Listing;

  void add_source(const std::string& argument);
  template <class Wanted>
  std::vector<PackageFile> files_of(const Source& source, Wanted&& wanted, Note note) const;

  Versions versions_;
  std::vector<Source> sources_;
};

}  // namespace sconce::server
