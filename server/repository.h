// Repository: which models there are, where their packages lie, and which of them are loaded.
//
// One thread (the control thread) loads; readers take snapshots and never wait for a load. A snapshot is
// immutable.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sconce/package.h"
#include "server/config.h"
#include "server/served_model.h"

namespace sconce {

// One version of one model, and where it comes from.
struct PackageEntry {
  std::string name;
  int64_t version = 1;
  std::filesystem::path path;
  std::string model;  // inside the package
  std::shared_ptr<const Package> package;
};

// What `serve` names. Packages are opened, since their models' names decide theirs. Errors name the path; kNotFound,
// kInvalidArgument for names, kAlreadyExists for two of one name, and those of Package::open. A repository's entries
// that are no models are passed over, `note` is told of each.
std::vector<PackageEntry> find_packages(const ServerConfig& config, void (*note)(const std::string&));

class Catalog {
 public:
  enum class State : int8_t { kLoading, kReady, kUnavailable };
  struct Version {
    int64_t version = 1;
    State state = State::kLoading;
    std::string reason;                  // of kUnavailable
    std::shared_ptr<ServedModel> model;  // of kReady
  };
  struct Entry {
    std::string name;
    std::vector<Version> versions;  // ascending
  };

  // Version digits as in the URL; empty: the highest that is ready, else the highest. kNotFound.
  const Version& find(std::string_view name, std::string_view version) const;
  // The same, if it is ready; kUnavailable if not.
  const std::shared_ptr<ServedModel>& ready(std::string_view name, std::string_view version) const;
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry& entry(std::string_view name) const;  // kNotFound
  bool all_ready() const noexcept;

 private:
  friend class Repository;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  std::vector<Entry> entries_;  // by name
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

// A model that is loaded and not yet served.
struct LoadedModel {
  ModelInterface interface;
  std::shared_ptr<Model> model;
};

class Repository {
 public:
  // threads: io threads.
  Repository(const ServerConfig& config, std::vector<PackageEntry> packages, size_t threads);

  // Grows by one with each published snapshot: a reader that has seen it need not take the lock of snapshot().
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  std::shared_ptr<const Catalog> snapshot() const;

  const std::vector<PackageEntry>& packages() const noexcept { return packages_; }

  // Control thread. Errors of Model::load and of the model's settings.
  LoadedModel load(const PackageEntry& package) const;
  void publish(const PackageEntry& package, LoadedModel loaded);
  void publish_failure(const PackageEntry& package, std::string reason);

 private:
  void publish(const PackageEntry& package, Catalog::Version version);

  const ServerConfig& config_;
  const std::vector<PackageEntry> packages_;
  const size_t threads_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Catalog> catalog_;  // guarded by mutex_
  std::atomic<uint64_t> generation_{1};
};

}  // namespace sconce
