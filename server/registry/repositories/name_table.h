// NameTable: the names and versions of models that are loaded on demand, as their directories list them. No package is
// opened for it: a package of several models counts under its stem, until someone has opened it and says what it holds.
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

namespace sconce::server {

class NameTable {
 public:
  struct Known {
    std::string name;
    std::vector<int64_t> versions;  // ascending
  };

  // Puts these files in the place of those that the stem had; none: the stem is forgotten.
  void set(const std::string& stem, std::span<const PackageFile> files);
  // The models of the stem's package, when it was opened.
  void learn(const std::string& stem, std::vector<std::string> models);
  // Files that may have the model of that name: those of the longest stem. Empty: it is not known.
  std::vector<PackageFile> find(std::string_view name) const;
  bool knows(std::string_view name) const;
  std::vector<PackageFile> files_of(std::string_view stem) const;
  // The names whose models the stem has, as far as they are known.
  std::vector<std::string> names_of(std::string_view stem) const;
  std::vector<Known> all() const;  // by name
  size_t size() const;

 private:
  // As PackageFile, in less memory: a path of the standard library keeps a copy of each of its parts.
  struct File {
    int64_t version = 1;
    std::string path, config;
    FileStamps stamp;
  };
  struct Stem {
    std::vector<File> files;
    std::vector<std::string> models;  // if it was opened
    bool opened = false;
  };
  using Stems = std::map<std::string, Stem, std::less<>>;
  Stems::const_iterator stem_of(std::string_view name) const SCONCE_REQUIRES(mutex_);
  static std::vector<PackageFile> files_of(const Stems::value_type& stem);

  mutable Mutex mutex_;
  Stems stems_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
