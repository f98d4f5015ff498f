// Repository: which models are served, in which versions and states.
//
// The control thread alone changes it; readers take snapshots and never wait for a load. A snapshot is immutable and
// keeps the models it names alive: a request goes on with the model it began with, whatever becomes of the name.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sconce/mutex.h"
#include "server/base/config.h"
#include "server/base/reaper.h"
#include "server/models/package_finder.h"
#include "server/models/served_model.h"

namespace sconce::server {

class Catalog final : public Reaped {
 public:
  enum class State : int8_t { kLoading, kReady, kUnavailable, kUnloaded };
  struct Version {
    PackageFile file;  // what is loaded or was tried last
    State state = State::kLoading;
    // What was wrong with the last load. With kReady: what was loaded before is still served.
    std::string reason;
    // The server is not ready before this is: of the models it started with, until they were loaded or unloaded.
    bool awaited = false;
    std::shared_ptr<ServedModel> model;  // of kReady
    int64_t version() const noexcept { return file.version; }
    // Why a model that is served answers with errors: its package was written to in place. Empty: it does not.
    std::string fault() const { return model ? model->model().package_fault() : std::string(); }
  };
  struct Entry {
    std::string name;
    std::vector<Version> versions;  // ascending, at least one
  };

  // Version digits as in the URL; empty: the highest that is ready, else the highest. kNotFound.
  const Version& find(std::string_view name, std::string_view version) const;
  // The same, if it is ready. Else as Triton: kNotFound if no version was asked for and all are unloaded, kUnavailable.
  const std::shared_ptr<ServedModel>& ready(std::string_view name, std::string_view version) const;
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry& entry(std::string_view name) const;  // kNotFound
  const Entry* look_up(std::string_view name) const noexcept;
  // All that is awaited is there, nothing of it is lost for good, and, if there was ever a model, one is served whose
  // package is what it was.
  bool is_ready() const noexcept;

 private:
  friend class Repository;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
  };
  Entry& edit(const std::string& name);  // made if there is none
  Version& edit(const PackageEntry& package);
  void erase(const std::string& name);
  void index();

  std::vector<Entry> entries_;  // by name
  bool had_models_ = false;     // some time since the start
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;
};

// A model that is loaded and not yet served.
struct LoadedModel {
  ModelInterface interface;
  std::shared_ptr<Model> model;
};

class Repository {
 public:
  // packages: what the server starts with; they are loading from now on. threads: io threads.
  Repository(const ServerConfig& config, AlarmClock& clock, Reaper& reaper, const std::vector<PackageEntry>& packages,
             size_t threads);

  // Grows by one with each published snapshot: a reader that has seen it need not take the lock of snapshot().
  uint64_t revision() const noexcept { return revision_.load(std::memory_order_acquire); }
  std::shared_ptr<const Catalog> snapshot() const;

  // Control thread from here on.

  // Whether the file's content took the place of what was loaded, or tried, before, in the same inode: then it may be
  // half of each, and only its checksums tell.
  bool was_rewritten(const PackageEntry& package) const;
  // Errors of Model::load and of the model's settings. `verify`: checksums of weights too.
  LoadedModel load(const PackageEntry& package, bool verify) const;
  // Unless it is served: its state is kLoading from now on.
  void publish_loading(const PackageEntry& package);
  // Served from now on, in the place of what was.
  void publish(const PackageEntry& package, LoadedModel loaded);
  // What was served stays.
  void publish_failure(const PackageEntry& package, std::string reason);
  // Unloads the model's versions that are not among these; forgets those that were unloaded before.
  void keep_only(const std::string& name, std::span<const PackageEntry> packages);
  // Unloads all versions; what is under way is finished. kNotFound.
  void unload(const std::string& name);
  // The same, and nothing is known of the name any more.
  void forget(const std::string& name);

 private:
  using StatisticsKey = std::pair<std::string, int64_t>;
  template <class Edit>
  void change(Edit&& edit);
  void unload(const std::string& name, Catalog::Version& version);

  const ServerConfig& config_;
  AlarmClock& clock_;
  Reaper& reaper_;
  const size_t threads_;
  std::map<StatisticsKey, std::shared_ptr<Statistics>> statistics_;  // of what is served: survive a reload
  mutable Mutex mutex_;
  std::shared_ptr<const Catalog> catalog_ SCONCE_GUARDED_BY(mutex_);
  std::atomic<uint64_t> revision_{1};
};

}  // namespace sconce::server
