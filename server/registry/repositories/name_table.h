// NameTable: the names and versions of models that are loaded on demand, as their directories list them. No package is
// opened for it: a package with several models is listed under its stem until it is opened and learn() gets its models.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/registry/repositories/package_finder.h"

namespace sconce::server::registry {

class NameTable {
 public:
  struct Known {
    std::string name;
    std::vector<int64_t> versions;  // ascending
  };

  // Replaces the files of the stem; empty: the stem is removed.
  void set(const std::string& stem, std::span<const PackageFile> files);
  // Sets the models of the stem's package, after it was opened.
  void learn(const std::string& stem, std::vector<std::string> models);
  // Files that may contain the model: those of the longest matching stem. Empty: unknown name.
  std::vector<PackageFile> find(std::string_view name) const;
  bool knows(std::string_view name) const;
  std::vector<PackageFile> files_of(std::string_view stem) const;
  // The known names of the stem's models.
  std::vector<std::string> names_of(std::string_view stem) const;
  std::vector<Known> all() const;  // by name
  size_t size() const;

 private:
  // PackageFile in less memory: std::filesystem::path stores a copy of each of its parts.
  struct File {
    int64_t version = 1;
    std::string path, config;
    FileStamps stamp;
  };
  struct Stem {
    std::vector<File> files;
    std::vector<std::string> models;  // if the package was opened
    bool opened = false;
  };
  using Stems = std::map<std::string, Stem, std::less<>>;
  Stems::const_iterator stem_of(std::string_view name) const SCONCE_REQUIRES(mutex_);
  static std::vector<PackageFile> files_of(const Stems::value_type& stem);

  mutable Mutex mutex_;
  Stems stems_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::registry
